/**
 * What the test models look at in a request: the last user message, the turns since, the calls so far. Pure.
 */
import type { Message, UserMessage } from "../../domain/message.ts"
import { noUsage, type Usage } from "../../domain/usage.ts"

/** The newest user message and how many assistant messages follow it, or null without one. */
export const lastUser = (
  messages: ReadonlyArray<Message>,
): { readonly message: UserMessage; readonly turns: number } | null => {
  let turns = 0
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]
    if (message?.role === "user") return { message, turns }
    if (message?.role === "assistant") turns++
  }
  return null
}

/** Ids of all tool calls of the history. */
export const callIds = (messages: ReadonlyArray<Message>): ReadonlySet<string> => {
  const ids = new Set<string>()
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const part of message.content) if (part.type === "toolCall") ids.add(part.id)
  }
  return ids
}

/** Splits text into at most `count` pieces of about the same length, never inside a surrogate pair. */
export const split = (value: string, count: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  const size = Math.max(1, Math.ceil(value.length / Math.max(1, count)))
  let at = 0
  while (at < value.length) {
    let end = Math.min(value.length, at + size)
    const unit = value.charCodeAt(end - 1)
    if (unit >= 0xd800 && unit <= 0xdbff && end < value.length) end++
    pieces.push(value.slice(at, end))
    at = end
  }
  return pieces
}

/** About four characters a token, the same for the same request. */
export const estimateUsage = (messages: ReadonlyArray<Message>, outputLength: number): Usage => {
  let length = 0
  for (const message of messages) {
    if (message.role === "system") {
      for (const section of message.sections) length += section.text?.length ?? 0
      continue
    }
    for (const part of message.content) {
      if (part.type === "text" || part.type === "thinking") length += part.text.length
      else if (part.type === "toolCall") length += 40
      else length += 4_000
    }
  }
  return { ...noUsage, input: 1 + Math.ceil(length / 4), output: Math.max(1, Math.ceil(outputLength / 4)) }
}
