/**
 * Painted text before it is written: spans of one look, wrapped to rows by what they take on a screen. Pure.
 *
 * A span remembers where in its source line it came from, so that a long line can be cut between two rows and go on later.
 */
import type { Paint, Tone } from "./style.ts"
import { displayWidth, fitting } from "./width.ts"

export interface Span {
  readonly text: string
  readonly tones: ReadonlyArray<Tone>
  /** Index of its first character in the source, or -1 where it stands for none of it. */
  readonly at: number
  /** Whether a source cut inside of it reads the same on both sides: it is in no emphasis, link or code. */
  readonly whole: boolean
}

export type Row = ReadonlyArray<Span>

/** Text that stands for no source, such as an indent. */
export const ornament = (text: string, ...tones: ReadonlyArray<Tone>): Span => ({ text, tones, at: -1, whole: false })

export const rowWidth = (row: Row): number => row.reduce((sum, span) => sum + displayWidth(span.text), 0)

export const paintRow = (row: Row, paint: Paint): string =>
  row.map(({ text, tones }) => tones.reduce((painted, tone) => paint(tone, painted), text)).join("")

const slice = (span: Span, from: number, to?: number): Span => ({
  text: span.text.slice(from, to),
  tones: span.tones,
  at: span.at < 0 ? -1 : span.at + from,
  whole: span.whole,
})

/** How a text is wrapped: at words, or wherever the width ends. */
export interface Wrapping {
  /** Columns of a row, the prefix included. */
  readonly columns: number
  /** In front of the first row, and of every other. */
  readonly first: Row
  readonly hang: Row
  readonly words: boolean
}

/** Where the row that starts with `spans` ends: the spans that fit, and the rest without the blank at the break. */
const breakAt = (spans: Row, room: number, words: boolean): readonly [Row, Row] => {
  let used = 0
  /** The last blank that fits, as the index of its span and in it. */
  let blank: readonly [number, number] | null = null
  for (const [index, span] of spans.entries()) {
    const fit = fitting(span.text, room - used)
    const seen = fit < span.text.length ? span.text.slice(0, fit + 1) : span.text
    const space = seen.lastIndexOf(" ")
    if (words && space >= 0 && (blank !== null || index > 0 || seen.slice(0, space).trim() !== "")) {
      blank = [index, space]
    }
    if (fit < span.text.length) {
      if (blank !== null) {
        const [at, cut] = blank
        const broken = spans[at]
        if (broken === undefined) break
        return [
          [...spans.slice(0, at), slice(broken, 0, cut)],
          [slice(broken, cut + 1), ...spans.slice(at + 1)],
        ]
      }
      // Nothing to break at: as much as fits, a character at least.
      const least = used === 0 && fit === 0 ? String.fromCodePoint(span.text.codePointAt(0) ?? 32).length : fit
      return [
        [...spans.slice(0, index), slice(span, 0, least)],
        [slice(span, least), ...spans.slice(index + 1)],
      ]
    }
    used += displayWidth(span.text)
  }
  return [spans, []]
}

/** A row and the span that its own text begins with, where it has one. */
export interface WrappedRow {
  readonly row: Row
  readonly start: Span | null
}

/** The rows of a text; one with only its prefix where there is none. */
export const wrapRow = (text: Row, { columns, first, hang, words }: Wrapping): ReadonlyArray<WrappedRow> => {
  const rows: Array<WrappedRow> = []
  let rest: Row = text.filter((span) => span.text !== "")
  do {
    const prefix = rows.length === 0 ? first : hang
    const room = Math.max(1, columns - rowWidth(prefix))
    const [row, more] = breakAt(rest, room, words)
    rows.push({ row: [...prefix, ...row], start: row[0] ?? null })
    rest = more.filter((span) => span.text !== "")
  } while (rest.length > 0)
  return rows
}
