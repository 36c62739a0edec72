/**
 * The state document of a thread, as `STATE_SNAPSHOT` gives it and `STATE_DELTA` changes it (JSON Patch, RFC 6902). Pure.
 */
import { createPatch } from "rfc6902"
import type { SessionState } from "../../domain/event.ts"
import type { AguiEvent, JsonPatch } from "./protocol.ts"

/** What a front end shows beside the messages. Times in milliseconds since the epoch. */
export interface AguiState {
  readonly conversationId: number
  readonly title: string | null
  /** State of the conversation machine, for example `idle` or `executing_tools`. */
  readonly status: SessionState["state"]
  readonly model: string
  readonly mode: string
  readonly harness: string | null
  readonly usage: SessionState["usage"]
  readonly plan: NonNullable<SessionState["plan"]>
  /** Open questions, the oldest first: permissions and choices. */
  readonly questions: SessionState["questions"]
  /** Numbers of the inputs that wait for their turn. */
  readonly queued: SessionState["queued"]
  readonly retry: SessionState["retry"]
  readonly parked: SessionState["parked"]
  readonly compactions: ReadonlyArray<{ readonly id: number; readonly reason: string }>
  readonly subagents: ReadonlyArray<{ readonly id: string; readonly role: string; readonly running: boolean }>
}

export const stateOf = (session: SessionState): AguiState => ({
  conversationId: session.conversation_id,
  title: session.title,
  status: session.state,
  model: session.model,
  mode: session.mode,
  harness: session.harness,
  usage: session.usage,
  plan: session.plan ?? [],
  questions: session.questions,
  queued: session.queued,
  retry: session.retry,
  parked: session.parked,
  compactions: session.compactions.map(({ reason, task }) => ({ id: task, reason })),
  subagents: (session.subagents ?? []).map(({ role, running, task_id }) => ({ id: String(task_id), role, running })),
})

/** The change from one document to the next, or null where there is none. */
export const stateDelta = (before: AguiState, after: AguiState): Extract<AguiEvent, { type: "STATE_DELTA" }> | null => {
  const delta: JsonPatch = createPatch(before, after)
  return delta.length === 0 ? null : { type: "STATE_DELTA", delta }
}
