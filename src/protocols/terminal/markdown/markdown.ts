/**
 * Markdown as rows of a screen, line by line as it streams. Pure.
 *
 * 1. A whole line becomes rows once, by `takeLine`; they are final. The line that still grows is drawn over by `openRows`.
 * 2. A table is held until its last line, and so is a line that may be the head of one; `endMarkdown` ends what is held.
 * 3. A growing line that takes too many rows is cut by `cutLine` where both sides read as the whole does; what is drawn again stays short.
 */
import { ornament, type Row, wrapRow } from "../spans.ts"
import type { Tone } from "../style.ts"
import { type Carry, codeSpans } from "./code.ts"
import { inlineSpans } from "./inline.ts"
import { alignsOf, cellsOf, type Table, tableRows } from "./table.ts"

interface Fence {
  /** What opened it: as many of the same character close it. */
  readonly marker: string
  readonly language: string
  readonly carry: Carry
}

export interface Markdown {
  readonly fence: Fence | null
  readonly table: Table | null
  /** A line that may be the head of a table. */
  readonly held: string | null
  /** The growing line was cut: how what follows is drawn. */
  readonly cut: { readonly hang: Row; readonly tones: ReadonlyArray<Tone> } | null
}

export const noMarkdown: Markdown = { fence: null, table: null, held: null, cut: null }

/** Rows of a table that are held; what is longer is drawn in parts. */
const heldRows = 200
/** Rows of a table that are shown while it grows. */
const shownTableRows = 8
const longestHead = 2000
/** A growing line that is longer, and has no place to be cut at, is ended. */
const longestOpen = 8000
const codeIndent = ornament("  ")
const widestRule = 60

/** How a line is drawn: the text that counts begins at `from`. */
interface Shape {
  readonly first: Row
  readonly hang: Row
  readonly from: number
  readonly tones: ReadonlyArray<Tone>
}

const blank = (width: number): Row => (width === 0 ? [] : [ornament(" ".repeat(width))])

/** Indents and bars never take more than half of the width. */
const shapeOf = (line: string, columns: number): Shape => {
  const deepest = columns >> 2
  let from = 0
  const quotes: Array<Row[number]> = []
  for (let quote = /^ {0,3}> ?/.exec(line); quote !== null; quote = /^ {0,3}> ?/.exec(line.slice(from))) {
    from += quote[0].length
    if (2 * quotes.length < deepest) quotes.push(ornament("│ ", "dim"))
  }
  const rest = line.slice(from)
  const heading = /^ {0,3}(#{1,6}) +/.exec(rest)
  if (heading !== null) {
    const top: ReadonlyArray<Tone> =
      (heading[1] ?? "").length === 1 ? ["strong", "accent", "underlined"] : ["strong", "accent"]
    return { first: quotes, hang: quotes, from: from + heading[0].length, tones: top }
  }
  const item = /^( *)([-*+]|\d{1,9}[.)]) +(\[[ xX]\] +)?/.exec(rest)
  if (item !== null) {
    const [whole, blanks = "", mark = "", task] = item
    const indent = Math.min(deepest, blanks.length)
    const bullet = task === undefined ? (mark.length > 1 ? mark : "•") : /[xX]/.test(task) ? "☑" : "☐"
    const lead = [...blank(indent), ornament(`${bullet} `, "accent")]
    const hang = blank(indent + bullet.length + 1)
    return { first: [...quotes, ...lead], hang: [...quotes, ...hang], from: from + whole.length, tones: [] }
  }
  const indent = blank(Math.min(deepest, rest.length - rest.trimStart().length))
  const tones: ReadonlyArray<Tone> = quotes.length > 0 ? ["slanted"] : []
  return {
    first: [...quotes, ...indent],
    hang: [...quotes, ...indent],
    from: line.length - rest.trimStart().length,
    tones,
  }
}

const isRule = (line: string): boolean => /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/.test(line)

/** The rows of a line of text, and what is known of their starts. */
const textRows = (line: string, { cut }: Markdown, columns: number, final: boolean) => {
  const shape: Shape =
    cut === null ? shapeOf(line, columns) : { first: cut.hang, hang: cut.hang, from: 0, tones: cut.tones }
  const { open, spans } = inlineSpans(line, shape.from, shape.tones, final)
  return { shape, open, rows: wrapRow(spans, { columns, first: shape.first, hang: shape.hang, words: true }) }
}

const codeRows = (line: string, fence: Fence, columns: number) => {
  const { carry, spans } = codeSpans(line, fence.language, fence.carry)
  return { carry, rows: wrapRow(spans, { columns, first: [codeIndent], hang: [codeIndent], words: false }) }
}

const fenceOf = (line: string): Fence | null => {
  const [, marker, info = ""] = /^ {0,12}(`{3,}|~{3,})\s*([^`]*)$/.exec(line) ?? []
  if (marker === undefined) return null
  const [name = ""] = info
    .trim()
    .toLowerCase()
    .split(/[\s{,]/)
  return { marker, language: name, carry: null }
}

const closes = (line: string, { marker }: Fence): boolean => {
  const trimmed = line.trim()
  return trimmed.length >= marker.length && trimmed === (marker[0] ?? "").repeat(trimmed.length)
}

export interface Taken {
  readonly markdown: Markdown
  readonly rows: ReadonlyArray<Row>
}

const fenceRow = (line: string): Row => [ornament(line.trim(), "dim")]

/** What is held, as rows. */
const release = (markdown: Markdown, columns: number): ReadonlyArray<Row> => {
  if (markdown.table !== null) return tableRows(markdown.table, columns)
  return markdown.held === null ? [] : plainRows(markdown.held, { ...markdown, held: null }, columns)
}

/** A line that is neither in a fence nor in a table. */
const plainRows = (line: string, markdown: Markdown, columns: number): ReadonlyArray<Row> => {
  if (markdown.cut === null && isRule(line)) return [[ornament("─".repeat(Math.min(columns, widestRule)), "dim")]]
  return textRows(line, markdown, columns, true).rows.map(({ row }) => row)
}

const mayHeadTable = (line: string): boolean =>
  line.length <= longestHead && (line.trimStart().startsWith("|") || / \| /.test(line)) && cellsOf(line).length > 0

/** The rows that a whole line makes final. */
export const takeLine = (markdown: Markdown, line: string, columns: number): Taken => {
  const { cut, fence, held, table } = markdown
  if (fence !== null) {
    if (cut === null && closes(line, fence)) return { markdown: noMarkdown, rows: [fenceRow(line)] }
    const { carry, rows } = codeRows(line, fence, columns)
    return { markdown: { ...noMarkdown, fence: { ...fence, carry } }, rows: rows.map(({ row }) => row) }
  }
  if (table !== null) {
    if (cut !== null || !line.includes("|")) {
      const next = takeLine({ ...markdown, table: null }, line, columns)
      return { markdown: next.markdown, rows: [...release(markdown, columns), ...next.rows] }
    }
    const grown: Table = { ...table, rows: [...table.rows, cellsOf(line)] }
    if (grown.rows.length < heldRows) return { markdown: { ...noMarkdown, table: grown }, rows: [] }
    return {
      markdown: { ...noMarkdown, table: { ...table, rows: [], continued: true } },
      rows: tableRows(grown, columns),
    }
  }
  if (held !== null) {
    const head = cellsOf(held)
    const aligns = cut === null ? alignsOf(line) : null
    if (aligns !== null && aligns.length === head.length) {
      return { markdown: { ...noMarkdown, table: { aligns, rows: [head], continued: false } }, rows: [] }
    }
    const next = takeLine({ ...markdown, held: null }, line, columns)
    return { markdown: next.markdown, rows: [...release(markdown, columns), ...next.rows] }
  }
  if (cut === null) {
    const opened = fenceOf(line)
    if (opened !== null) return { markdown: { ...noMarkdown, fence: opened }, rows: [fenceRow(line)] }
    if (mayHeadTable(line)) return { markdown: { ...noMarkdown, held: line }, rows: [] }
  }
  return { markdown: noMarkdown, rows: plainRows(line, markdown, columns) }
}

/** What is not final yet: what is held, and the line that grows. */
export const openRows = (markdown: Markdown, partial: string, columns: number): ReadonlyArray<Row> => {
  const { cut, fence, table } = markdown
  if (table !== null) return tableRows(table, columns).slice(-shownTableRows)
  const above = release(markdown, columns)
  if (partial === "") return above
  if (fence !== null) {
    if (cut === null && closes(partial, fence)) return [fenceRow(partial)]
    return codeRows(partial, fence, columns).rows.map(({ row }) => row)
  }
  if (cut === null && fenceOf(partial) !== null) return [...above, fenceRow(partial)]
  return [...above, ...textRows(partial, markdown, columns, false).rows.map(({ row }) => row)]
}

/**
 * Makes the first rows of a growing line final where it takes more than `most` rows: the rows, and the rest of the line. Cuts at the start
 * of a row that is in nothing that may still be closed; where there is none, and the line is twice as long, at one that is.
 */
export const cutLine = (
  markdown: Markdown,
  partial: string,
  columns: number,
  most: number,
): Taken & { readonly partial: string } => {
  const { fence, table } = markdown
  const nothing = { markdown, rows: [], partial }
  // A character takes two columns at most, and rows are half full at least.
  if (partial.length * 4 < most * columns || (table !== null && partial.length < longestHead)) return nothing
  const above = fence === null ? release(markdown, columns) : []
  const bare: Markdown = { fence, table: null, held: null, cut: markdown.cut }
  const { hang, open, rows, tones } =
    fence === null
      ? grown(partial, bare, columns)
      : { ...codeRows(partial, fence, columns), hang: [codeIndent], open: partial.length, tones: [] }
  if (rows.length <= most && partial.length <= longestOpen) return nothing
  const starts = rows.map(({ start }, at) =>
    at === 0 || at === rows.length - 1 || (start?.at ?? 0) <= 0 ? null : start,
  )
  const calm = starts.findLastIndex((start) => start?.whole === true && start.at <= open)
  const forced = rows.length > 2 * most ? starts.findLastIndex((start) => start !== null) : -1
  const at = calm > 0 ? calm : forced
  const start = starts[at]
  if (at <= 0 || start == null) return partial.length <= longestOpen ? nothing : ended(markdown, partial, columns)
  return {
    markdown: { ...bare, cut: { hang, tones: calm > 0 ? tones : start.tones } },
    rows: [...above, ...rows.slice(0, at).map(({ row }) => row)],
    partial: partial.slice(start.at),
  }
}

const ended = (markdown: Markdown, partial: string, columns: number): Taken & { readonly partial: string } => {
  const { hang, tones } =
    markdown.fence === null ? grown(partial, markdown, columns) : { hang: [codeIndent], tones: [] }
  const taken = takeLine(markdown, partial, columns)
  return { markdown: { ...taken.markdown, cut: { hang, tones } }, rows: taken.rows, partial: "" }
}

const grown = (partial: string, markdown: Markdown, columns: number) => {
  const { open, rows, shape } = textRows(partial, markdown, columns, false)
  return { rows, open, hang: shape.hang, tones: shape.tones }
}

/** Ends what is held and what is open. */
export const endMarkdown = (markdown: Markdown, partial: string, columns: number): ReadonlyArray<Row> => {
  if (partial === "") return release(markdown, columns)
  const { markdown: after, rows } = takeLine(markdown, partial, columns)
  return [...rows, ...release(after, columns)]
}
