/**
 * Replacing text in a file, the work of `edit`. Every edit is located in the text as it was; all are applied or none. Bytes outside the
 * replaced ranges never change; a replacement takes the line ends of the range that it replaces. Pure; it runs in the sandbox.
 */
import { type Diff, unifiedDiff } from "./diff.ts"
import { nearestPlaces, type Place } from "./nearest-lines.ts"
import { normalizeLines, normalizeLoosely, type Projection } from "./projection.ts"

export interface Edit {
  readonly oldText: string
  readonly newText: string
  readonly replaceAll: boolean
}

export interface EditInput {
  /** The file's text without its byte order mark. */
  readonly text: string
  readonly edits: ReadonlyArray<Edit>
  readonly diffLines: number
}

/** Why one edit of the list (from 0) cannot be applied. */
export type EditFault =
  | { readonly reason: "notFound"; readonly edit: number; readonly places: ReadonlyArray<Place> }
  | {
      readonly reason: "ambiguous"
      readonly edit: number
      readonly lines: ReadonlyArray<number>
      readonly count: number
    }
  | { readonly reason: "overlap"; readonly edit: number; readonly other: number; readonly line: number }
  | { readonly reason: "unchanged"; readonly edit: number }

export type EditOutput =
  | {
      readonly _tag: "Edited"
      readonly text: string
      /** Replacements made per edit. */
      readonly counts: ReadonlyArray<number>
      /** Edits that matched only when blanks and typographic characters were ignored. */
      readonly lenient: ReadonlyArray<number>
      /** Line of the first replacement, from 1. */
      readonly firstLine: number
      readonly diff: Diff
    }
  | { readonly _tag: "Rejected"; readonly faults: ReadonlyArray<EditFault> }

interface Range {
  readonly edit: number
  readonly from: number
  readonly to: number
  readonly replacement: string
}

/** Starts of all occurrences that do not overlap. */
const occurrences = (text: string, wanted: string): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) found.push(at)
  return found
}

/** The line, from 1, of each position; positions ascend. */
const lineNumbers = (text: string, positions: ReadonlyArray<number>): ReadonlyArray<number> => {
  const lines: Array<number> = []
  let [line, at] = [1, 0]
  for (const position of positions) {
    for (let next = text.indexOf("\n", at); next >= 0 && next < position; next = text.indexOf("\n", at)) {
      line++
      at = next + 1
    }
    lines.push(line)
  }
  return lines
}

/** The line end that most lines of a text have, or undefined when it has one line. */
const dominantLineEnd = (text: string): "\n" | "\r\n" | undefined => {
  const all = text.split("\n").length - 1
  if (all === 0) return undefined
  return (text.split("\r\n").length - 1) * 2 > all ? "\r\n" : "\n"
}

/** `text` with the line ends of the range that it replaces, else of the file; as it is where neither has any. */
const withLineEnds = (text: string, replaced: string, file: "\n" | "\r\n" | undefined): string => {
  const end = dominantLineEnd(replaced) ?? file
  return end === undefined ? text : text.replace(/\r\n|\n/g, end)
}

interface Located {
  readonly starts: ReadonlyArray<number>
  readonly length: number
  readonly projection: Projection
  readonly lenient: boolean
}

/** Where an edit's old text is: exactly, else leniently when that is the only place. */
const locate = (edit: Edit, exact: Projection, loose: () => Projection): Located | undefined => {
  const wanted = normalizeLines(edit.oldText).text
  const starts = occurrences(exact.text, wanted)
  if (starts.length > 0) return { starts, length: wanted.length, projection: exact, lenient: false }
  const lenient = normalizeLoosely(edit.oldText).text
  if (lenient.trim() === "") return undefined
  const projection = loose()
  const places = occurrences(projection.text, lenient)
  return places.length === 1 ? { starts: places, length: lenient.length, projection, lenient: true } : undefined
}

/** Applies all edits, or says of each one that fails why. */
export const applyEdits = (input: EditInput): EditOutput => {
  const { text, edits } = input
  const exact = normalizeLines(text)
  let lazyLoose: Projection | undefined
  const loose = () => {
    lazyLoose ??= normalizeLoosely(text)
    return lazyLoose
  }
  const fileEnd = dominantLineEnd(text)
  const faults: Array<EditFault> = []
  const ranges: Array<Range> = []
  const lenient: Array<number> = []
  const counts = edits.map(() => 0)
  for (const [index, edit] of edits.entries()) {
    const located = locate(edit, exact, loose)
    if (located === undefined) {
      faults.push({
        reason: "notFound",
        edit: index,
        places: nearestPlaces(exact.text, normalizeLines(edit.oldText).text),
      })
      continue
    }
    const { starts, length, projection } = located
    if (starts.length > 1 && !edit.replaceAll) {
      const lines = lineNumbers(projection.text, starts.slice(0, 10))
      faults.push({ reason: "ambiguous", edit: index, lines, count: starts.length })
      continue
    }
    if (located.lenient) lenient.push(index)
    counts[index] = starts.length
    for (const start of starts) {
      const [from, to] = [projection.source(start), projection.source(start + length)]
      ranges.push({ edit: index, from, to, replacement: withLineEnds(edit.newText, text.slice(from, to), fileEnd) })
    }
    if (ranges.slice(-starts.length).every(({ from, to, replacement }) => text.slice(from, to) === replacement)) {
      faults.push({ reason: "unchanged", edit: index })
    }
  }
  ranges.sort((left, right) => left.from - right.from || left.to - right.to)
  for (const [index, range] of ranges.entries()) {
    const before = ranges[index - 1]
    if (before !== undefined && range.from < before.to) {
      const [line = 1] = lineNumbers(text, [range.from])
      faults.push({ reason: "overlap", edit: range.edit, other: before.edit, line })
      break
    }
  }
  if (faults.length > 0) return { _tag: "Rejected", faults }
  const pieces: Array<string> = []
  let at = 0
  for (const { from, to, replacement } of ranges) {
    pieces.push(text.slice(at, from), replacement)
    at = to
  }
  pieces.push(text.slice(at))
  const edited = pieces.join("")
  const [firstLine = 1] = lineNumbers(text, [ranges[0]?.from ?? 0])
  const diff = unifiedDiff(text, edited, { context: 3, maxLines: input.diffLines })
  return { _tag: "Edited", text: edited, counts, lenient, firstLine, diff }
}
