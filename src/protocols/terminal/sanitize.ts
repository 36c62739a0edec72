/**
 * Takes from text what could drive a terminal: escape sequences and control characters. What a model or a tool writes is shown, never
 * obeyed. Pure; works on a stream of chunks, since a sequence may arrive in pieces.
 */

/** A sequence that is not complete after this many characters was none: its introducer is dropped, the rest is text. */
const longestSequence = 256

/** End of the escape sequence that starts at `at`, or null while it is incomplete. */
const sequenceEnd = (text: string, at: number): number | null => {
  const introducer = text.charCodeAt(at)
  let kind: string | undefined
  let from = at + 1
  if (introducer === 0x1b) {
    kind = text[at + 1]
    from = at + 2
    if (kind === undefined) return null
  } else kind = { 155: "[", 157: "]", 144: "P", 152: "X", 158: "^", 159: "_" }[introducer]
  if (kind === "[") {
    for (let i = from; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code >= 0x40 && code <= 0x7e) return i + 1
      if (code < 0x20 || code > 0x7e) return i
    }
    return null
  }
  if (kind === "]" || kind === "P" || kind === "X" || kind === "^" || kind === "_") {
    for (let i = from; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code === 0x07 || code === 0x9c) return i + 1
      if (code === 0x1b) {
        if (i + 1 >= text.length) return null
        return text[i + 1] === "\\" ? i + 2 : i
      }
    }
    return null
  }
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= 0x20 && code <= 0x2f) continue
    return code >= 0x30 && code <= 0x7e ? i + 1 : i
  }
  return null
}

/** Control characters but newline and tab: DEL, C1 and the directional overrides that show text in another order than it has. */
const isControl = (code: number): boolean =>
  (code < 0x20 && code !== 0x0a && code !== 0x09) ||
  (code >= 0x7f && code <= 0x9f) ||
  (code >= 0x202a && code <= 0x202e) ||
  (code >= 0x2066 && code <= 0x2069)

const introducers = new Set([0x1b, 0x9b, 0x9d, 0x90, 0x98, 0x9e, 0x9f])

/**
 * Cleans `chunk` behind the `pending` of the chunk before. Carriage returns become newlines. `text` holds printable characters, `\n` and
 * `\t` only; `pending` is the start of a sequence that may still be completed.
 */
export const sanitizeChunk = (pending: string, chunk: string): { readonly text: string; readonly pending: string } => {
  const input = pending + chunk
  let text = ""
  let at = 0
  while (at < input.length) {
    const code = input.charCodeAt(at)
    if (!isControl(code)) {
      text += input[at]
      at++
    } else if (code === 0x0d) {
      if (at + 1 >= input.length) return { text, pending: "\r" }
      if (input[at + 1] !== "\n") text += "\n"
      at++
    } else if (introducers.has(code)) {
      const end = sequenceEnd(input, at)
      if (end === null && input.length - at <= longestSequence) return { text, pending: input.slice(at) }
      at = end === null ? at + 1 : Math.max(end, at + 1)
    } else at++
  }
  return { text, pending: "" }
}

/** Cleans a whole text. */
export const sanitize = (value: string): string => {
  const { text, pending } = sanitizeChunk("", value)
  return pending === "\r" ? `${text}\n` : text
}

/** Cleans a text and puts it on one line: each run of white space becomes one space. */
export const oneLine = (value: string): string => sanitize(value).replace(/\s+/g, " ").trim()
