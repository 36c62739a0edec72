/**
 * How many columns a text takes on a terminal. Pure; a table of the common wide and zero-width ranges, not the whole of Unicode.
 */

const inRanges = (code: number, ranges: ReadonlyArray<readonly [number, number]>): boolean => {
  for (const [from, to] of ranges) if (code >= from && code <= to) return true
  return false
}

const zero: ReadonlyArray<readonly [number, number]> = [
  [0x0300, 0x036f],
  [0x0483, 0x0489],
  [0x0591, 0x05bd],
  [0x0610, 0x061a],
  [0x064b, 0x065f],
  [0x0e31, 0x0e31],
  [0x0e34, 0x0e3a],
  [0x1ab0, 0x1aff],
  [0x1dc0, 0x1dff],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x2064],
  [0x2066, 0x2069],
  [0x20d0, 0x20ff],
  [0xfe00, 0xfe0f],
  [0xfe20, 0xfe2f],
  [0xfeff, 0xfeff],
  [0x1f3fb, 0x1f3ff],
  [0xe0100, 0xe01ef],
]

const wide: ReadonlyArray<readonly [number, number]> = [
  [0x1100, 0x115f],
  [0x231a, 0x231b],
  [0x23e9, 0x23f3],
  [0x2614, 0x2615],
  [0x26a1, 0x26a1],
  [0x2705, 0x2705],
  [0x274c, 0x274e],
  [0x2753, 0x2755],
  [0x2795, 0x2797],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
]

/** Columns of one code point: 0, 1 or 2. */
const columnsOf = (code: number): number => {
  if (code < 0x300) return code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : 1
  if (inRanges(code, zero)) return 0
  return inRanges(code, wide) ? 2 : 1
}

export const displayWidth = (text: string): number => {
  let sum = 0
  for (const char of text) sum += columnsOf(char.codePointAt(0) ?? 0)
  return sum
}

/** The longest start of `text` that fits into `columns`, as an index; a code point is never cut. */
export const fitting = (text: string, columns: number): number => {
  let sum = 0
  let at = 0
  for (const char of text) {
    sum += columnsOf(char.codePointAt(0) ?? 0)
    if (sum > columns) return at
    at += char.length
  }
  return at
}

/** Cuts to at most `columns`, with an ellipsis where something is missing. */
export const truncate = (text: string, columns: number): string => {
  if (columns <= 0) return ""
  if (displayWidth(text) <= columns) return text
  return `${text.slice(0, fitting(text, columns - 1))}…`
}
