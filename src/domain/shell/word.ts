/**
 * One word of a shell command: what is known of it before it runs.
 */
import type { DoubleQuotedChild, Word, WordPart } from "unbash"

export interface ShellWord {
  /** As it is written. */
  readonly text: string
  /** After quotes are removed; null where only running it tells. */
  readonly value: string | null
  /** The beginning that is known: all of `value` where that is. */
  readonly start: string
  /** Whether it may become several words, or none. */
  readonly splits: boolean
  /** The pattern of file names that it is, where it is one and nothing else of it is open. */
  readonly glob: string | null
}

/** A word with a known value. */
export const known = (value: string): ShellWord => ({ text: value, value, start: value, splits: false, glob: null })

/** A word of which nothing but the beginning is known. */
export const open = (text: string, start = "", splits = true): ShellWord => ({
  text,
  value: null,
  start,
  splits,
  glob: null,
})

interface Piece {
  /** Null: known at run time only. */
  readonly value: string | null
  readonly glob?: string
  readonly splits?: boolean
}

/** `$HOME` is written as `~`, `$PWD` as `.`: both are known well enough to see where a path leads. */
const places: Readonly<Record<string, string>> = { HOME: "~", PWD: "." }

const variable = (name: string, quoted: boolean): Piece => {
  const place = places[name]
  if (place !== undefined) return { value: place }
  return { value: null, splits: !quoted || name === "@" || name.startsWith("@") }
}

const plainParameter = /^\$\{?([A-Za-z_]\w*|[@*#?$!0-9-])\}?$/

const childPiece = (part: DoubleQuotedChild): Piece => {
  if (part.type === "Literal") return { value: part.value }
  if (part.type === "SimpleExpansion" || part.type === "ParameterExpansion") {
    const name = plainParameter.exec(part.text)?.[1]
    if (name !== undefined) return variable(name, true)
    return { value: null, splits: part.text.includes("@") }
  }
  return { value: null }
}

const globOf: Readonly<Record<string, string>> = { star: "*", question: "?", bracket: "?" }

const pieces = (part: WordPart): ReadonlyArray<Piece> => {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return [{ value: part.value }]
    case "AnsiCQuoted":
      // The shell ends such a string at its first zero byte.
      return [{ value: part.value.split("\0")[0] ?? "" }]
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.map(childPiece)
    case "Glob":
      return [{ value: null, glob: globOf[part.kind] ?? "*", splits: true }]
    case "ExtendedGlob":
      return [{ value: null, glob: "*", splits: true }]
    case "SimpleExpansion":
    case "ParameterExpansion": {
      const name = plainParameter.exec(part.text)?.[1]
      return [name === undefined ? { value: null, splits: true } : variable(name, false)]
    }
    case "ProcessSubstitution":
      return [{ value: null }]
    default:
      return [{ value: null, splits: true }]
  }
}

/** A word of the syntax tree, its brace expansions done. */
export const readWord = (word: Word): ShellWord => {
  const { parts } = word
  if (parts === undefined) {
    const { text, value } = word
    return { text, value, start: value, splits: false, glob: null }
  }
  let start = ""
  let isOpen = false
  let splits = false
  let glob: string | null = ""
  for (const piece of parts.flatMap(pieces)) {
    splits ||= piece.splits === true
    if (piece.value === null) isOpen = true
    else if (!isOpen) start += piece.value
    const shape: string | undefined = piece.value ?? piece.glob
    glob = glob === null || shape === undefined ? null : glob + shape
  }
  return { text: word.text, value: isOpen ? null : start, start, splits, glob: isOpen ? glob : null }
}
