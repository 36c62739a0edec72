/**
 * The first resort of a compaction: old large tool results become short stubs, and the conversation stays as it is. Pure.
 */
import { type ContextEntry, editsOf, messagesOf } from "./context.ts"
import type { ContextEdit } from "./entry.ts"
import type { Message, ToolResultMessage } from "./message.ts"
import { text, textOf } from "./message.ts"
import { estimateMessage, estimateMessages } from "./token-estimate.ts"
import { wellFormed } from "./well-formed.ts"

/** Results above it become stubs, in tokens. */
const largeTokens = 500

/** UTF-16 units of a result that its stub shows. */
const shown = 200

const stubOf = (result: ToolResultMessage): ToolResultMessage => {
  const whole = textOf(result.content)
  const head = wellFormed(whole.slice(0, shown), () => undefined)
  const begins = head === "" ? "" : ` It began: ${head}${whole.length > shown ? "…" : ""}`
  const { callId, isError, role, toolName } = result
  const note = `[The result of ${toolName} (${whole.length} characters) was left out to save room.${begins}]`
  return { role, callId, toolName, content: [text(note)], isError }
}

const isLarge = (message: Message): message is ToolResultMessage =>
  message.role === "tool" && estimateMessage(message) > largeTokens

export interface ToolStubs {
  readonly edits: ReadonlyArray<ContextEdit>
  /** Tokens that the edits save, about. */
  readonly saved: number
}

/** Stubs for the large tool results of the entries in front of position `cut` of a context. */
export const toolStubs = (selected: ReadonlyArray<ContextEntry>, cut: number): ToolStubs => {
  const standing = editsOf(selected)
  const edits: Array<ContextEdit> = []
  let saved = 0
  for (const entry of selected.slice(0, cut)) {
    const before = messagesOf([entry], standing)
    if (!before.some(isLarge)) continue
    const model = before.map((message) => (isLarge(message) ? stubOf(message) : message))
    edits.push({ type: "replace", entry: entry.id, model })
    saved += estimateMessages(before) - estimateMessages(model)
  }
  return { edits, saved }
}
