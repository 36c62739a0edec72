/**
 * What several events say alike: a change of the state document, whole messages, a question, a subagent.
 */
import type { Event } from "../../domain/event.ts"
import type { TaskId } from "../../domain/ids.ts"
import type { QuestionView } from "../../domain/question.ts"
import { followed } from "../../domain/session-follow.ts"
import type { Speech } from "./speech.ts"
import { stateDelta, stateOf } from "./state.ts"
import { noTurn } from "./view.ts"

/** Carries the state on, and says what changed. Events that the first snapshot knew already change nothing. */
export const follow = (s: Speech, event: Event): void => {
  const { session, state } = s.view
  if (session === null || event.seq_no <= session.seq_no) return
  const next = followed(session, event)
  s.patch({ session: next })
  if (state === null) return
  const changed = stateOf(next)
  const delta = stateDelta(state, changed)
  if (delta === null) return
  s.say(delta)
  s.patch({ state: changed })
}

/** Remembers the newest entry that was told of. */
export const newest = (s: Speech, entry: number): void => s.patch({ lastEntry: Math.max(s.view.lastEntry, entry) })

/** Whole messages: what was told of, and what was written before the turn. */
export const messages = (s: Speech, turn: TaskId | null = s.view.turn.id): void =>
  s.messages({ entries: null, entry: s.view.lastEntry, turn })

/** The turn that an event belongs to. */
export const ofTurn = (s: Speech, turn: TaskId | null): void => {
  s.begin(true)
  if (s.view.turn.id === turn) return
  s.closeContent()
  s.patch({ turn: { ...noTurn, id: turn } })
}

export const ask = (s: Speech, question: QuestionView): void => {
  const { kind, ...value } = question
  if (s.view.asked.has(question.question_id)) return
  s.patch({ asked: new Set(s.view.asked).add(question.question_id) })
  if (question.call_id !== null) s.endCall(question.call_id)
  s.say({ type: "CUSTOM", name: kind === "permission" ? "permission_request" : "ui_request", value })
}

export const startSubagent = (
  s: Speech,
  id: TaskId,
  name: string,
  more: { description?: string; parentToolCallId?: string },
) => {
  const subagentRunId = String(id)
  if (s.view.subagents.has(subagentRunId) || s.view.ended.has(subagentRunId)) return
  s.say({ type: "SUBAGENT_STARTED", subagentRunId, name, ...more })
  s.patch({ subagents: new Set(s.view.subagents).add(subagentRunId) })
}

export const endSubagent = (
  s: Speech,
  subagentRunId: string,
  error: { message: string; code: string } | null,
): void => {
  if (s.view.ended.has(subagentRunId)) return
  if (error === null) s.say({ type: "SUBAGENT_FINISHED", subagentRunId, outcome: { type: "success" } })
  else s.say({ type: "SUBAGENT_ERROR", subagentRunId, ...error })
  const subagents = new Set(s.view.subagents)
  subagents.delete(subagentRunId)
  s.patch({ subagents, ended: new Set(s.view.ended).add(subagentRunId) })
}
