/**
 * Markdown inside a line: emphasis, code, links, escapes. Pure; reads each character a bounded number of times.
 *
 * While a line still grows, a marker that nothing closes yet is taken for one that will be closed; in a whole line it is text.
 */
import type { Row, Span } from "../spans.ts"
import type { Tone } from "../style.ts"

/** Emphasis in emphasis beyond this is text. */
const deepest = 6
/** A link's text and address are looked for this far, and that often without finding one in a line. */
const longestLink = 2000
const mostFailures = 200

const isWord = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}_]/u.test(char)
const isBlank = (char: string | undefined): boolean => char === undefined || char === " "
const escapable = /[!-/:-@[-`{-~]/
const address = /https?:\/\/[^\s<>"`]+/y

export interface Inline {
  readonly spans: Row
  /** Where the first marker is that may still be closed; the length of the line where there is none. */
  readonly open: number
}

interface Reading {
  readonly source: string
  readonly final: boolean
  readonly spans: Array<Span>
  /** Markers without an end before an index. */
  readonly unclosed: Set<string>
  open: number
  /** Brackets that began no link. */
  failures: number
}

const runLength = (source: string, at: number, end: number): number => {
  let to = at + 1
  while (to < end && source[to] === source[at]) to++
  return to - at
}

const put = (reading: Reading, from: number, to: number, tones: ReadonlyArray<Tone>, whole: boolean): void => {
  if (to > from) reading.spans.push({ text: reading.source.slice(from, to), tones, at: from, whole })
}

/** Where the code that a run of `count` backticks opens ends, or -1. */
const codeEnd = (source: string, from: number, end: number, count: number): number => {
  for (let at = source.indexOf("`", from); at >= 0 && at < end; ) {
    const run = runLength(source, at, end)
    if (run === count) return at
    at = source.indexOf("`", at + run)
  }
  return -1
}

/** Where the text that `marker` opens ends, or -1. Code in between is passed over. */
const emphasisEnd = (reading: Reading, from: number, end: number, marker: string): number => {
  const { source, unclosed } = reading
  const key = `${marker}${end}`
  if (unclosed.has(key)) return -1
  const char = marker[0]
  for (let at = from; at < end; ) {
    if (source[at] === "\\") at += 2
    else if (source[at] === "`") {
      const run = runLength(source, at, end)
      const close = codeEnd(source, at + run, end, run)
      at = close < 0 ? at + run : close + run
    } else if (source[at] === char) {
      const run = runLength(source, at, end)
      const fits = run === marker.length || (run === 3 && char !== "~")
      const closes = fits && !isBlank(source[at - 1]) && (char !== "_" || !isWord(source[at + run]))
      if (closes && at > from) return at + run - marker.length
      at += run
    } else at++
  }
  unclosed.add(key)
  return -1
}

/** The text and the address of a link whose `[` is at `at`; `pending` where the line may still bring its end. */
const linkAt = (
  source: string,
  at: number,
  end: number,
): { readonly text: number; readonly url: string; readonly to: number } | "pending" | null => {
  const limit = Math.min(end, at + longestLink)
  let depth = 0
  let close = -1
  for (let i = at; i < limit; i++) {
    if (source[i] === "\\") i++
    else if (source[i] === "[") depth++
    else if (source[i] === "]" && --depth === 0) {
      close = i
      break
    }
  }
  if (close < 0) return limit === end ? "pending" : null
  if (source[close + 1] !== "(") return close + 1 >= end ? "pending" : null
  let parens = 0
  for (let i = close + 1; i < limit; i++) {
    const char = source[i]
    if (char === "(") parens++
    else if (char === ")" && --parens === 0) {
      const [url = ""] = source
        .slice(close + 2, i)
        .trim()
        .split(/\s/)
      return { text: close, url, to: i + 1 }
    }
  }
  return limit === end ? "pending" : null
}

const emphasisTones: Readonly<Record<string, ReadonlyArray<Tone>>> = {
  "*": ["slanted"],
  _: ["slanted"],
  "**": ["strong"],
  __: ["strong"],
  "***": ["strong", "slanted"],
  ___: ["strong", "slanted"],
  "~~": ["struck"],
}

const plus = (tones: ReadonlyArray<Tone>, more: ReadonlyArray<Tone>): ReadonlyArray<Tone> => [
  ...tones,
  ...more.filter((tone) => !tones.includes(tone)),
]

const read = (reading: Reading, start: number, end: number, tones: ReadonlyArray<Tone>, depth: number): void => {
  const { final, source } = reading
  const whole = depth === 0
  let from = start
  /** Whether what begins here may still be closed by what comes. */
  const grows = !final && end === source.length
  const opens = (at: number) => {
    reading.open = Math.min(reading.open, at)
  }
  for (let at = start; at < end; ) {
    const char = source[at] ?? ""
    if (char === "\\" && escapable.test(source[at + 1] ?? "") && at + 1 < end) {
      put(reading, from, at, tones, whole)
      put(reading, at + 1, at + 2, tones, false)
      at += 2
      from = at
    } else if (char === "`") {
      const run = runLength(source, at, end)
      const close = codeEnd(source, at + run, end, run)
      if (close < 0 && !grows) {
        at += run
        continue
      }
      put(reading, from, at, tones, whole)
      if (close < 0) {
        opens(at)
        put(reading, at + run, end, plus(tones, ["accent"]), false)
        return
      }
      const padded = source[at + run] === " " && source[close - 1] === " " && close - at - run > 2
      put(reading, at + run + (padded ? 1 : 0), close - (padded ? 1 : 0), plus(tones, ["accent"]), false)
      at = close + run
      from = at
    } else if ((char === "*" || char === "_" || char === "~") && depth < deepest) {
      const run = runLength(source, at, end)
      const marker = source.slice(at, at + run)
      const style = emphasisTones[marker]
      const inWord = isWord(source[at - 1]) && (char === "_" || (run === 1 && isWord(source[at + run])))
      if (style === undefined || isBlank(source[at + run]) || inWord) {
        at += run
        continue
      }
      const close = emphasisEnd(reading, at + run, end, marker)
      if (close < 0 && !grows) {
        at += run
        continue
      }
      put(reading, from, at, tones, whole)
      if (close < 0) opens(at)
      read(reading, at + run, close < 0 ? end : close, plus(tones, style), depth + 1)
      if (close < 0) return
      at = close + run
      from = at
    } else if (char === "[" && depth < deepest && reading.failures < mostFailures) {
      const link = linkAt(source, at, end)
      if (link === null || link === "pending") {
        reading.failures++
        if (link === "pending" && grows) opens(at)
        at++
        continue
      }
      const image = at > from && source[at - 1] === "!"
      put(reading, from, image ? at - 1 : at, tones, whole)
      if (image) reading.spans.push({ text: "image: ", tones: plus(tones, ["dim"]), at: -1, whole: false })
      read(reading, at + 1, link.text, plus(tones, ["underlined"]), depth + 1)
      if (link.url !== "" && link.url !== source.slice(at + 1, link.text)) {
        reading.spans.push({ text: ` (${link.url})`, tones: ["dim"], at: -1, whole: false })
      }
      at = link.to
      from = at
    } else if (
      char === "<" &&
      source.startsWith("<http", at) &&
      /^<https?:\/\/[^\s<>]+>/.test(source.slice(at, Math.min(end, at + longestLink)))
    ) {
      const close = source.indexOf(">", at)
      put(reading, from, at, tones, whole)
      put(reading, at + 1, close, plus(tones, ["underlined"]), false)
      at = close + 1
      from = at
    } else if (char === "h" && source.startsWith("http", at) && !isWord(source[at - 1])) {
      address.lastIndex = at
      // What is marked in an address is part of it; where it ends a sentence or a bracket, that is not.
      const found = address.exec(source.slice(0, end))?.[0].replace(/[.,;:!?*_~)\]]+$/, "")
      if (found === undefined) {
        at++
        continue
      }
      put(reading, from, at, tones, whole)
      put(reading, at, at + found.length, plus(tones, ["underlined"]), false)
      at += found.length
      from = at
    } else at++
  }
  put(reading, from, end, tones, whole)
}

/** The spans of `source` from `start` on. `final`: the line is whole. */
export const inlineSpans = (source: string, start: number, tones: ReadonlyArray<Tone>, final: boolean): Inline => {
  const reading: Reading = { source, final, spans: [], unclosed: new Set(), open: source.length, failures: 0 }
  read(reading, start, source.length, tones, 0)
  return { spans: reading.spans, open: reading.open }
}
