/**
 * How many tokens a context takes. A response tells what its own context took; what came since is estimated: four bytes of UTF-8 a token,
 * a fixed price for an image. Pure; the estimate of a message is remembered with the message.
 */
import { Scan } from "./append-log.ts"
import { type ContextEntry, type ContextState, tailOf } from "./context.ts"
import type { AssistantMessage, Message } from "./message.ts"

/** Tokens that an image counts as, whatever its size. */
export const imageTokens = 1_200

/** Tokens that every message costs beside its content. */
const messageTokens = 4

const bytesPerToken = 4

/** Bytes of a text in UTF-8; a lone surrogate counts as three. */
const bytesOf = (text: string): number => {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x80) continue
    // A surrogate pair is two units and four bytes.
    if (unit < 0x800 || (unit >= 0xd800 && unit < 0xe000)) bytes += 1
    else bytes += 2
  }
  return bytes
}

/** Tokens of a plain text, about. */
export const estimateText = (text: string): number => Math.ceil(bytesOf(text) / bytesPerToken)

const known = new WeakMap<Message, number>()

const contentTokens = (message: Message): number => {
  let bytes = 0
  let images = 0
  if (message.role === "system") {
    for (const section of message.sections) bytes += bytesOf(section.name) + bytesOf(section.text ?? "")
    for (const tool of message.addTools) bytes += bytesOf(JSON.stringify(tool))
    return Math.ceil(bytes / bytesPerToken)
  }
  for (const part of message.content) {
    if (part.type === "image") images++
    else if (part.type === "toolCall") bytes += bytesOf(part.name) + bytesOf(JSON.stringify(part.arguments))
    else bytes += bytesOf(part.text)
  }
  return Math.ceil(bytes / bytesPerToken) + images * imageTokens
}

/** Tokens of one message, about. */
export const estimateMessage = (message: Message): number => {
  const before = known.get(message)
  if (before !== undefined) return before
  const tokens = messageTokens + contentTokens(message)
  known.set(message, tokens)
  return tokens
}

/** Tokens of messages, about. */
export const estimateMessages = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + estimateMessage(message), 0)

/** The response of an entry that tells how many tokens its context took. */
const measured = (entry: ContextEntry): AssistantMessage | null => {
  for (const message of entry.model) {
    if (message.role !== "assistant" || message.usage === undefined || message.usage.input === 0) continue
    if (message.stopReason !== "aborted" && message.stopReason !== "error" && message.stopReason !== "deferred") {
      return message
    }
  }
  return null
}

/** Whether the context before an entry is another one than behind it: what was measured before says nothing about it. */
const changesContext = (entry: ContextEntry): boolean => entry.head !== null || entry.edits.length > 0

/** What was reported last: by the entry at `at`, -1 for none; and the estimate of every message behind it. */
interface Reported {
  readonly at: number
  readonly since: number
}

const reported = new Scan<ContextEntry, Reported>({ at: -1, since: 0 }, (before, entry, index) =>
  changesContext(entry) || measured(entry) !== null
    ? { at: index, since: 0 }
    : { at: before.at, since: before.since + estimateMessages(entry.model) },
)

const estimated = new Scan<Message, number>(0, (before, message) => before + estimateMessage(message))

/**
 * Tokens of a context: what its newest response reported, input and output, and an estimate of every message since. Where nothing was
 * reported since the newest head or edit, all of it is estimated. Costs the same at every length.
 */
export const contextTokens = (state: ContextState): number => {
  const { at, since } = state.entries.scan(reported)
  const last = state.entries.at(at)
  const response = last === undefined || changesContext(last) ? null : measured(last)
  if (response?.usage !== undefined) return response.usage.input + response.usage.output + since
  return state.settled.scan(estimated) + estimateMessages(tailOf(state))
}
