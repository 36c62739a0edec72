/**
 * Where the commands `!{…}` stand in a text. Pure. Rules:
 * 1. A command ends at the brace that closes it: braces inside count, those in quotes or behind a backslash do not.
 * 2. `\!{` is `!{` as text. A `!{` that is never closed, or holds nothing, stays text.
 * 3. Inside a fenced code block (``` or ~~~) nothing is a command: what is pasted there is shown, not run.
 * 4. A command may hold `!{` of its own, which belongs to it: to nest, the shell has `$(…)`.
 */

/** A piece of a text: text as it is meant, or a command. */
export type Piece =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "command"; readonly command: string; readonly raw: string }

export interface Expressions {
  readonly pieces: ReadonlyArray<Piece>
  /** Offsets of `!{` that are never closed. */
  readonly unclosed: ReadonlyArray<number>
}

/** Whether there can be a command or an escaped one at all. */
export const mayHoldCommands = (text: string): boolean => text.includes("!{")

/** The offset behind a quoted stretch that starts at `at`; the text's length when it is not closed. */
const behindQuote = (text: string, at: number): number => {
  const quote = text[at]
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === quote) return i + 1
    if (quote !== "'" && text[i] === "\\") i++
  }
  return text.length
}

/** The offset of the brace that closes the command whose text starts at `from`, or null. */
const closingBrace = (text: string, from: number): number | null => {
  let depth = 1
  let at = from
  while (at < text.length) {
    const char = text[at]
    if (char === "\\") at += 2
    else if (char === "'" || char === '"' || char === "`") at = behindQuote(text, at)
    else {
      if (char === "{") depth++
      if (char === "}" && --depth === 0) return at
      at++
    }
  }
  return null
}

const endOfLine = (text: string, at: number): number => {
  const end = text.indexOf("\n", at)
  return end < 0 ? text.length : end
}

/** Fenced code blocks as pairs of offsets; one that is not closed goes to the end. */
const fences = (text: string): ReadonlyArray<readonly [number, number]> => {
  const found: Array<readonly [number, number]> = []
  let open: { readonly at: number; readonly mark: string } | null = null
  for (let at = 0; at < text.length; at = endOfLine(text, at) + 1) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(text.slice(at, endOfLine(text, at)))?.[1]
    if (mark === undefined) continue
    if (open === null) open = { at, mark }
    else if (mark[0] === open.mark[0] && mark.length >= open.mark.length) {
      found.push([open.at, endOfLine(text, at)])
      open = null
    }
  }
  return open === null ? found : [...found, [open.at, text.length]]
}

/** Takes a text apart. Joined again, the texts and the raw commands are the text, but for the escapes. */
export const expressionsOf = (text: string): Expressions => {
  const pieces: Array<Piece> = []
  const unclosed: Array<number> = []
  const code = fences(text)
  let plain = ""
  let at = 0
  while (at < text.length) {
    const start = text.indexOf("!{", at)
    if (start < 0) break
    const fence = code.find(([from, to]) => from <= start && start < to)
    const escaped = text[start - 1] === "\\" && start > at
    if (fence !== undefined) {
      plain += text.slice(at, fence[1])
      at = fence[1]
      continue
    }
    if (escaped) {
      plain += `${text.slice(at, start - 1)}!{`
      at = start + 2
      continue
    }
    plain += text.slice(at, start)
    const end = closingBrace(text, start + 2)
    const command = end === null ? "" : text.slice(start + 2, end).trim()
    if (end === null || command === "") {
      if (end === null) unclosed.push(start)
      plain += "!{"
      at = start + 2
      continue
    }
    if (plain !== "") pieces.push({ type: "text", text: plain })
    plain = ""
    pieces.push({ type: "command", command, raw: text.slice(start, end + 1) })
    at = end + 1
  }
  plain += text.slice(at)
  if (plain !== "") pieces.push({ type: "text", text: plain })
  return { pieces, unclosed }
}
