/**
 * Follows one submission through the event stream of its conversation and tells what its run says. Pure: a step takes a voice and an event.
 *
 * 1. Only what belongs to the submission is told: turns of others, before it in the queue, are silence.
 * 2. A later snapshot means that events were lost: what is missing of the present response is said, the rest when the end is known.
 * 3. Exactly one `ended` is told, and nothing behind it.
 */
import type { Event } from "../../domain/event.ts"
import type { SubmissionId } from "../../domain/ids.ts"
import { type StopReason, textOf } from "../../domain/message.ts"
import { addUsage, noUsage, type Usage } from "../../domain/usage.ts"
import type { End, Said } from "./said.ts"
import { freshTrack, type Spoken, settle, speak, startOver, type Track } from "./track.ts"

export interface Voice {
  readonly submission: SubmissionId
  /** The turn that runs is of this submission. */
  readonly ours: boolean
  readonly text: Track
  readonly thinking: Track
  readonly usage: Usage
  /** How its turn ended, until its submission ends. */
  readonly stopReason: StopReason
  readonly answer: string
  /** The end of a turn of it was told. */
  readonly turned: boolean
  /** The text of the newest response that is whole. */
  readonly last: string
  readonly failure: { readonly code: string; readonly message: string } | null
  readonly seen: boolean
  /** Events were lost: tokens are not known from events. */
  readonly gap: boolean
  readonly ended: boolean
}

/** `running`: its run was going already when the watch began. */
export const newVoice = (submission: SubmissionId, running = false): Voice => ({
  submission,
  ours: running,
  text: freshTrack,
  thinking: freshTrack,
  usage: noUsage,
  stopReason: "stop",
  answer: "",
  turned: false,
  last: "",
  failure: null,
  seen: false,
  gap: false,
  ended: false,
})

type Content = Extract<Event, { readonly type: "message_completed" }>["content"]

type Step = readonly [Voice, ReadonlyArray<Said>]

const nothing: ReadonlyArray<Said> = []

const saidOf = (type: "text" | "thinking", { delta, diverged }: Spoken): ReadonlyArray<Said> => {
  if (delta === "") return nothing
  return diverged && type === "text" ? [{ type: "void" }, { type, delta }] : [{ type, delta }]
}

const pieceOf = (voice: Voice, type: "text" | "thinking", delta: string): Step => {
  const spoken = speak(voice[type], delta)
  const said = saidOf(type, spoken)
  return [type === "text" ? { ...voice, text: spoken.track } : { ...voice, thinking: spoken.track }, said]
}

/** The whole response so far, from a snapshot or from its end. */
const wholeOf = (voice: Voice, whole: { readonly text: string; readonly thinking: string }): Step => {
  const thinking = settle(voice.thinking, whole.thinking)
  const text = settle(voice.text, whole.text)
  return [
    { ...voice, text: text.track, thinking: thinking.track },
    [...saidOf("thinking", thinking), ...saidOf("text", text)],
  ]
}

const snapshot = (voice: Voice, event: Extract<Event, { readonly type: "snapshot" }>): Step => {
  const { partial, turn_id } = event.session
  const ours = voice.ours && turn_id !== null
  const now: Voice = { ...voice, ours, seen: true, gap: voice.gap || voice.seen }
  return ours && partial !== null ? wholeOf(now, partial) : [now, nothing]
}

/** What was not streamed of a response: nothing, unless it was repeated, or events were lost. */
const missingOf = (voice: Voice, content: Content): ReadonlyArray<Said> => {
  const doubted = ({ again, said }: Track) => again !== null || voice.gap || said === ""
  const thought = content.map((part) => (part.type === "thinking" ? part.text : "")).join("")
  return [
    ...(doubted(voice.thinking) ? saidOf("thinking", settle(voice.thinking, thought)) : nothing),
    ...(doubted(voice.text) ? saidOf("text", settle(voice.text, textOf(content))) : nothing),
  ]
}

/** The submission ended. */
const conclude = (voice: Voice, end: End): Step =>
  voice.ended ? [voice, nothing] : [{ ...voice, ours: false, ended: true }, [{ type: "ended", end }]]

/** The submission ended while events were lost: what is missing of the answer is said first. */
export const concludeLost = (voice: Voice, end: End): Step => {
  const known = end.type === "failed" || (voice.text.said === "" && voice.last === end.text)
  const said = known ? nothing : saidOf("text", settle(voice.text, end.text))
  const [ended, told] = conclude(voice, end)
  return [ended, voice.ended ? nothing : [...said, ...told]]
}

const submissionEnded = (voice: Voice, event: Extract<Event, { readonly type: "submission_updated" }>): Step => {
  const { answer, failure, stopReason, usage } = voice
  if (event.submission_id !== voice.submission) return [voice, nothing]
  if (event.status === "done") {
    // Its run went by while events were lost: whoever follows asks what it said (`turn.ts`).
    if (voice.gap && !voice.ours && !voice.turned) return [voice, nothing]
    // An input that asked no model says in a word what it did.
    const word = voice.ours || answer !== "" ? null : event.detail
    const [ended, told] = conclude(voice, { type: "answered", stopReason, text: word ?? answer, usage })
    return [
      ended,
      word === null || voice.ended ? told : [{ type: "text", delta: word }, { type: "responded" }, ...told],
    ]
  }
  if (event.status !== "unanswered") return [voice, nothing]
  return conclude(voice, { type: "failed", ...(failure ?? unansweredAs(event)), usage })
}

/** Why an input got no answer, where no turn told it. */
export const unansweredAs = (row: {
  readonly reason: string | null
  readonly detail: string | null
}): { readonly code: string; readonly message: string } => {
  const { reason } = row
  const code =
    reason === "aborted" || reason === "withdrawn" || reason === "reset" ? "cancelled" : (reason ?? "run_failed")
  return { code, message: row.detail ?? `the turn ended without an answer (${reason ?? "no reason"})` }
}

const note = (line: string): ReadonlyArray<Said> => [{ type: "note", line }]

/** An event of a turn of ours. */
const ofOurs = (voice: Voice, event: Event): Step => {
  switch (event.type) {
    case "text_delta":
      return pieceOf(voice, "text", event.text)
    case "thinking_delta":
      return pieceOf(voice, "thinking", event.text)
    case "message_completed": {
      if (event.role === "user") return [voice, nothing]
      const said = missingOf(voice, event.content)
      const last = textOf(event.content)
      return [{ ...voice, last, text: freshTrack, thinking: freshTrack }, [...said, { type: "responded" }]]
    }
    case "stream_reset":
      return [{ ...voice, text: startOver(voice.text), thinking: startOver(voice.thinking) }, nothing]
    case "turn_completed":
      return [{ ...voice, ours: false, turned: true, stopReason: event.stop_reason, answer: event.text }, nothing]
    case "turn_error":
      return [{ ...voice, ours: false, failure: { code: event.code, message: event.message } }, nothing]
    case "turn_cancelled":
      return [{ ...voice, ours: false, failure: { code: "cancelled", message: "the turn was cancelled" } }, nothing]
    case "usage_updated":
      return [{ ...voice, usage: addUsage(voice.usage, event.usage) }, nothing]
    case "tool_started": {
      const { arguments: args, call_id: id, name } = event
      return [voice, [{ type: "callStarted", id, name, arguments: args }]]
    }
    case "tool_completed": {
      const { call_id: id, duration_ms: durationMs, is_error: isError, name, structured_output: structured } = event
      return [voice, [{ type: "callEnded", id, name, isError, output: textOf(event.output), structured, durationMs }]]
    }
    case "tool_blocked": {
      const { call_id: id, name, reason: output } = event
      const blocked = { id, name, isError: true, output, structured: null, durationMs: null }
      return [voice, [{ type: "callEnded", ...blocked }]]
    }
    case "retry_scheduled":
      return [voice, note(`the model failed (${event.reason}); attempt ${event.attempt} follows`)]
    case "compaction_started":
      return [voice, note("the conversation is made shorter")]
    case "subagent_started":
      return [voice, note(`a ${event.role} subagent starts: ${event.task}`)]
    case "subagent_finished":
      return [voice, note(`the ${event.role} subagent ended: ${event.error ?? event.status}`)]
    case "notice":
      return [voice, event.level === "info" ? nothing : note(event.message)]
    case "toolcall_delta":
    case "tool_output":
    case "state_changed":
    case "mode_changed":
    case "session_changed":
    case "compaction_completed":
    case "permission_request":
    case "ui_request":
    case "question_settled":
    case "plan_updated":
    case "turn_started":
    case "snapshot":
    case "submission_updated":
      return [voice, nothing]
  }
}

/** The next event of the conversation. */
export const hear = (voice: Voice, event: Event): Step => {
  if (voice.ended) return [voice, nothing]
  switch (event.type) {
    case "snapshot":
      return snapshot(voice, event)
    case "submission_updated":
      return submissionEnded(voice, event)
    case "turn_started": {
      const ours = event.submission_ids.includes(voice.submission)
      return ours === voice.ours ? [voice, nothing] : [{ ...voice, ours }, nothing]
    }
    default:
      return voice.ours ? ofOurs(voice, event) : [voice, nothing]
  }
}
