/**
 * Brace expansion: the first of the expansions, on the text of a word. `{rm,-rf,/}` is a command of three words.
 */

/** As many words as one expansion may give; above it the word counts as known only at run time. */
const maxWords = 64

const closers: Readonly<Record<string, string>> = { "'": "'", '"': '"' }

/** The index behind a quoted stretch or an escaped character that begins at `at`, or `at` where there is none. */
const behindQuoted = (text: string, at: number): number => {
  const character = text[at] ?? ""
  if (character === "\\") return at + 2
  const closer = closers[character]
  if (closer === undefined) return at
  for (let index = at + 1; index < text.length; index++) {
    if (closer === '"' && text[index] === "\\") index++
    else if (text[index] === closer) return index + 1
  }
  return text.length
}

/** The parts of `inner` between the commas of its outermost level. */
const splitAtCommas = (inner: string): ReadonlyArray<string> => {
  const items: Array<string> = []
  let depth = 0
  let from = 0
  for (let index = 0; index < inner.length; ) {
    const behind = behindQuoted(inner, index)
    if (behind > index) {
      index = behind
      continue
    }
    const character = inner[index]
    if (character === "{") depth++
    else if (character === "}") depth--
    else if (character === "," && depth === 0) {
      items.push(inner.slice(from, index))
      from = index + 1
    }
    index++
  }
  return [...items, inner.slice(from)]
}

const numbers = /^(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?$/
const letters = /^([a-zA-Z])\.\.([a-zA-Z])(?:\.\.(-?\d{1,9}))?$/

const sequence = (inner: string): ReadonlyArray<string> | null => {
  const match = numbers.exec(inner) ?? letters.exec(inner)
  if (match === null) return null
  const [, first = "", last = "", by] = match
  const isNumber = numbers.test(inner)
  const at = (text: string) => (isNumber ? Number(text) : (text.codePointAt(0) ?? 0))
  const step = Math.max(1, Math.abs(Number(by ?? 1)))
  const [from, to] = [at(first), at(last)]
  const count = Math.floor(Math.abs(to - from) / step) + 1
  if (count > maxWords) return null
  return Array.from({ length: count }, (_, index) => {
    const value = from + (to >= from ? index : -index) * step
    return isNumber ? String(value) : String.fromCodePoint(value)
  })
}

/**
 * What one brace expansion gives, as texts still to be read: `text` is the expansion with its braces. Null where it cannot be told, because
 * it runs something or gives too much.
 */
export const expandBraces = (text: string): ReadonlyArray<string> | null => {
  const inner = text.slice(1, -1)
  if (inner.includes("$(") || inner.includes("`")) return null
  const items = splitAtCommas(inner)
  if (items.length === 1) return sequence(inner)
  return items.length > maxWords ? null : items
}
