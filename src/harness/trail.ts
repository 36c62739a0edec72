/**
 * Why a call became what it became, read from what is stored: the intent in its task, the result in its entry. Pure.
 */
import { callOf } from "../domain/effect.ts"
import type { Entry } from "../domain/entry.ts"
import type { CallDecisions } from "../domain/harness-view.ts"
import type { ConversationId } from "../domain/ids.ts"
import { textOf, toolCallsOf } from "../domain/message.ts"
import type { Task } from "../domain/task.ts"
import { trailIn } from "../domain/trail.ts"

/** How much of a reason is told. */
const reasonLength = 500

/** The newest call of that id among the entries of a conversation; `task` is its row where it is known. Null: there is none. */
export const decisionsOf = (
  conversation: ConversationId,
  entries: ReadonlyArray<Entry>,
  callId: string,
  task: Task | null,
): CallDecisions | null => {
  for (const entry of [...entries].reverse()) {
    for (const message of entry.model) {
      if (message.role !== "assistant") continue
      const call = toolCallsOf(message).find((one) => one.id === callId)
      if (call === undefined) continue
      const result = entries.find(
        (one) => one.id > entry.id && one.model.some((m) => m.role === "tool" && m.callId === callId),
      )
      const said = result?.model.find((m) => m.role === "tool")
      const intent = task === null ? null : callOf(task)
      const own = result === undefined || result.task === null ? null : result.task
      const ran = task !== null || (own !== null && own !== entry.task)
      const isError = said?.role === "tool" && said.isError
      return {
        conversation_id: conversation,
        call_id: callId,
        tool: call.name,
        task_id: task?.id ?? (ran ? own : null),
        arguments: intent?.arguments ?? call.arguments,
        outcome: result === undefined ? "open" : !ran ? "blocked" : isError ? "failed" : "completed",
        entry_id: result?.id ?? null,
        reason: said?.role === "tool" && isError ? textOf(said.content).slice(0, reasonLength) : null,
        trail: result === undefined ? (intent?.trail ?? []) : trailIn(result.data),
      }
    }
  }
  return null
}
