/**
 * The AG-UI renderer: the event stream of a conversation as AG-UI 1.0 events. Pure. Two kinds of stream:
 *
 * 1. A client's run (`runId`): one run, which ends with what the client asked for (`awaiting`), or, where it asked for nothing, when the
 *    conversation rests. It may end early with the questions that everything waits for as interrupts (`pause`).
 * 2. The events of a conversation (`runId` null): a run from the first sign of work until the conversation rests, again and again; what
 *    happens between is a brief run of its own, since nothing may stand outside of one.
 *
 * Where messages have to be given whole, a `MESSAGES_DUE` item stands for them: the transport puts them in its place and calls `seen`.
 */
import type { Event } from "../../domain/event.ts"
import { askedBy } from "../../domain/session-follow.ts"
import type { Usage } from "../../domain/usage.ts"
import type { Rendered, Renderer } from "../renderer.ts"
import { snapshot } from "./join.ts"
import { contentOf } from "./messages.ts"
import { ask, endSubagent, follow, messages, newest, ofTurn, startSubagent } from "./parts.ts"
import type { TokenUsage } from "./protocol.ts"
import { rest, submissionUpdated } from "./settle.ts"
import { Speech } from "./speech.ts"
import { assistantMessage, streamReset, turnStarted, userMessage } from "./turn.ts"
import { type Item, init, type Options, type View } from "./view.ts"

/** Parts of an answer: they change nothing in the state document. */
const pieces: ReadonlySet<Event["type"]> = new Set(["text_delta", "thinking_delta", "toolcall_delta", "tool_output"])

const tokens = (model: string, usage: Usage): TokenUsage => {
  const slash = model.indexOf("/")
  return {
    ...(slash > 0 ? { provider: model.slice(0, slash) } : {}),
    ...(model === "" ? {} : { model: model.slice(slash + 1) }),
    inputTokens: usage.input,
    outputTokens: usage.output,
    totalTokens: usage.input + usage.output,
    reasoningTokens: usage.reasoning,
    cachedInputTokens: usage.cacheRead,
    cacheWriteInputTokens: usage.cacheWrite,
  }
}

/** What one event says beside the change of the state. */
const speak = (s: Speech, event: Exclude<Event, { readonly type: "snapshot" }>): void => {
  switch (event.type) {
    case "submission_updated":
      submissionUpdated(s, event)
      break
    case "turn_started":
      turnStarted(s, event)
      break
    case "turn_completed":
      s.patch({ outcome: { type: "success", stopReason: event.stop_reason, entry: event.entry_id } })
      break
    case "turn_error":
      s.patch({ outcome: { type: "error", code: event.code, message: event.message } })
      break
    case "turn_cancelled":
      s.patch({ outcome: { type: "cancelled" } })
      break
    case "text_delta":
      ofTurn(s, event.turn_id)
      s.text(event.text)
      break
    case "thinking_delta":
      ofTurn(s, event.turn_id)
      s.thinking(event.text)
      break
    case "toolcall_delta":
      ofTurn(s, event.turn_id)
      s.call(event.call_id, event.name, event.delta)
      break
    case "message_completed":
      if (event.role === "user") userMessage(s, event)
      else assistantMessage(s, event)
      break
    case "stream_reset":
      streamReset(s)
      break
    case "tool_started":
      s.begin(true)
      s.wholeCall(event.call_id, event.name, event.arguments)
      s.endCall(event.call_id)
      break
    case "tool_output":
      s.say({ type: "CUSTOM", name: "tool_output", value: { toolCallId: event.call_id, delta: event.delta } })
      break
    case "tool_blocked":
      s.result(event.call_id, event.name, event.reason, { isError: true, blocked: true })
      break
    case "tool_completed": {
      newest(s, event.entry_id)
      const metadata = { isError: event.is_error, durationMs: event.duration_ms }
      s.result(event.call_id, event.name, contentOf(event.output), metadata)
      break
    }
    case "state_changed":
      if (event.to === "idle") rest(s)
      break
    case "usage_updated":
      s.count(tokens(s.view.session?.model ?? "", event.usage))
      break
    case "compaction_completed":
      if (event.entry_id === null) break
      newest(s, event.entry_id)
      messages(s)
      break
    case "permission_request":
    case "ui_request":
      ask(s, askedBy(event))
      break
    case "question_settled": {
      const { answer, by, question_id, reason, result } = event
      s.say({ type: "CUSTOM", name: event.type, value: { question_id, result, answer, by, reason } })
      break
    }
    case "subagent_started": {
      const more = { description: event.task, parentToolCallId: event.call_id }
      startSubagent(s, event.task_id, event.role, more)
      break
    }
    case "subagent_finished": {
      startSubagent(s, event.task_id, event.role, { parentToolCallId: event.call_id })
      const error = event.error === null ? null : { message: event.error, code: event.status }
      endSubagent(s, String(event.task_id), error)
      break
    }
    case "notice":
      s.say({ type: "CUSTOM", name: "notice", value: { level: event.level, message: event.message } })
      break
    case "retry_scheduled":
    case "mode_changed":
    case "session_changed":
    case "plan_updated":
    case "compaction_started":
      // The state document says it.
      break
  }
}

const render = (view: View, event: Event): Rendered<View, Item> => {
  if (view.over) return [view, []]
  const s = new Speech(view, { run: `run-${event.seq_no}`, time: event.timestamp_ms })
  if (event.type === "snapshot") {
    snapshot(s, event)
    return s.done()
  }
  if (event.type === "state_changed" && event.to !== "idle") s.begin(true)
  // A turn begins in a run of its own, so what it changes belongs there.
  if (event.type === "turn_started") {
    speak(s, event)
    if (!s.view.over) follow(s, event)
    return s.done()
  }
  if (!pieces.has(event.type)) follow(s, event)
  speak(s, event)
  return s.done()
}

/** The stream ends in the middle: the conversation goes on without it. */
const flush = (view: View): Rendered<View, Item> => {
  const s = new Speech(view, { run: "run-0", time: null })
  s.finish({ type: "error", code: "stream_ended", message: "the stream ended; attach to the conversation again" })
  return s.done()
}

export const renderer: Renderer<Options, View, Item> = { init, render, flush }
