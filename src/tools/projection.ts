/**
 * A text as it is compared and the way back: the exact text with line ends as `\n`, or a lenient one that also drops trailing blanks
 * and folds typographic quotes, dashes and spaces. Pure.
 */

export interface Projection {
  readonly text: string
  /** Where in the source the character at `index` of `text` starts; for `text.length`, the source's length. */
  readonly source: (index: number) => number
}

const folds: Readonly<Record<string, string>> = {
  "\u2018": "'",
  "\u2019": "'",
  "\u201A": "'",
  "\u201B": "'",
  "\u201C": '"',
  "\u201D": '"',
  "\u201E": '"',
  "\u201F": '"',
  "\u2010": "-",
  "\u2011": "-",
  "\u2012": "-",
  "\u2013": "-",
  "\u2014": "-",
  "\u2015": "-",
  "\u2212": "-",
  "\u00A0": " ",
  "\u2002": " ",
  "\u2003": " ",
  "\u2009": " ",
  "\u202F": " ",
  "\u3000": " ",
}
const foldable = /[\u2018-\u201F\u2010-\u2015\u2212\u00A0\u2002\u2003\u2009\u202F\u3000]/

/** Builds a projection by dropping single characters. */
const dropping = (source: string, drop: (index: number) => boolean, fold: boolean): Projection => {
  const offsets = new Uint32Array(source.length + 1)
  const pieces: Array<string> = []
  let [length, from] = [0, 0]
  for (let index = 0; index < source.length; index++) {
    if (drop(index)) {
      if (index > from) pieces.push(source.slice(from, index))
      from = index + 1
    } else offsets[length++] = index
  }
  pieces.push(source.slice(from))
  offsets[length] = source.length
  // What is dropped before a kept character belongs to that character: a range that starts at a line end starts at its `\r`.
  for (let index = length - 1; index > 0; index--) {
    const start = (offsets[index - 1] ?? 0) + 1
    if (start < (offsets[index] ?? 0) && source[offsets[index] ?? 0] === "\n") offsets[index] = start
  }
  if (length > 0 && source[offsets[0] ?? 0] === "\n") offsets[0] = 0
  const text = pieces.join("")
  return {
    text: fold ? text.replace(new RegExp(foldable.source, "g"), (char) => folds[char] ?? char) : text,
    source: (index) => offsets[index] ?? source.length,
  }
}

/** Line ends as `\n`. A lone `\r` stays. */
export const normalizeLines = (source: string): Projection =>
  source.includes("\r\n")
    ? dropping(source, (index) => source[index] === "\r" && source[index + 1] === "\n", false)
    : { text: source, source: (index) => index }

/** Lenient: see above. */
export const normalizeLoosely = (source: string): Projection => {
  const trailing = new Uint8Array(source.length)
  for (const blanks of source.matchAll(/[ \t\u00A0\u2002\u2003\u2009\u202F\u3000]+(?=\r?(?:\n|$))/g)) {
    trailing.fill(1, blanks.index, blanks.index + blanks[0].length)
  }
  return dropping(
    source,
    (index) => trailing[index] === 1 || (source[index] === "\r" && source[index + 1] === "\n"),
    true,
  )
}
