/**
 * The renderer of the Agent Client Protocol: from the one event stream of a conversation to `session/update` payloads and to what an editor
 * is to be asked. Pure. Rules beyond those of `protocols/renderer.ts`:
 * 1. A tool call is announced once (`tool_call`); everything later of it is a `tool_call_update`.
 * 2. A question is asked once, and withdrawn once it is settled, whoever settled it.
 * 3. Entries of which no event was seen come through {@link history}; what was streamed of one of them is not said again.
 */

import type { TodoItem } from "../../domain/document.ts"
import type { Event } from "../../domain/event.ts"
import type { TaskId } from "../../domain/ids.ts"
import type { QuestionView } from "../../domain/question.ts"
import type { Renderer } from "../renderer.ts"
import { type Choices, choicesOf, configOptions } from "./choices.ts"
import { askOf } from "./question.ts"
import { changedLine, diffsOf, kindOf, outputTail, resultContent, textContent, titleOf } from "./tool-call.ts"
import { compactionUpdate, failure, notice, plan, usageUpdate } from "./updates.ts"
import {
  both,
  type Call,
  chunk,
  completed,
  each,
  ended,
  type Item,
  init,
  nothing,
  type Options,
  rest,
  type Said,
  started,
  streamed,
  update,
  userSaid,
  type View,
  withCall,
} from "./view.ts"

const asks = (view: View, question: QuestionView): Said => {
  const { question_id } = question
  if (view.asked.has(question_id)) return [view, nothing]
  const { directory, extras } = view.options
  const ask = askOf(question, directory, extras.forms)
  return [{ ...view, asked: new Set(view.asked).add(question_id) }, [{ type: "ask", question, ask }]]
}

const withdraws = (view: View, questionId: TaskId): Said => {
  if (!view.asked.has(questionId)) return [view, nothing]
  const asked = new Set(view.asked)
  asked.delete(questionId)
  return [{ ...view, asked }, [{ type: "withdraw", questionId }]]
}

/** What changed of what was chosen. */
const chose = (view: View, next: Choices): Said => {
  const { choices } = view
  const same =
    choices !== null &&
    choices.model === next.model &&
    choices.mode === next.mode &&
    choices.effort === next.effort &&
    choices.harness === next.harness
  if (same) return [view, nothing]
  const chosen = { ...view, choices: next }
  // The answer that opens a session says them at first.
  if (choices === null) return [chosen, nothing]
  const mode =
    choices.mode === next.mode ? [] : [update({ sessionUpdate: "current_mode_update", currentModeId: next.mode })]
  const options = configOptions(next, view.options.catalog)
  return [chosen, [...mode, update({ sessionUpdate: "config_option_update", configOptions: options })]]
}

/** The id of the message that is being streamed. */
const messageId = ({ message }: View, { turn_id }: Event): string => `${turn_id ?? 0}.${message}`

const samePlan = (one: ReadonlyArray<TodoItem>, other: ReadonlyArray<TodoItem>): boolean =>
  one.length === other.length &&
  one.every(({ id, status, text }, at) => {
    const now = other[at]
    return now?.id === id && now.status === status && now.text === text
  })

const planned = (view: View, items: ReadonlyArray<TodoItem>): Said =>
  samePlan(view.plan, items) ? [view, nothing] : [{ ...view, plan: items }, [update(plan(items))]]

const snapshot = (view: View, event: Extract<Event, { readonly type: "snapshot" }>): Said => {
  const { session } = event
  const open = new Set(session.questions.map(({ question_id }) => question_id))
  const running = new Set(session.tools.map(({ call_id }) => call_id))
  const partial = session.partial ?? { text: "", thinking: "" }
  const goesOn = partial.text.startsWith(view.said.text) && partial.thinking.startsWith(view.said.thinking)
  const fresh: View = goesOn ? view : { ...view, said: { text: "", thinking: "" }, message: view.message + 1 }
  let said = chose(fresh, choicesOf(session))
  const lost = [...view.calls].filter(([id, call]) => call.started && !running.has(id))
  said = both(said, (now) =>
    each(now, lost, (at, [id, { name }]) => ended(at, id, name, { failed: true, content: [] })),
  )
  said = both(said, (now) =>
    streamed(now, messageId(now, event), "thinking", rest(now.said.thinking, partial.thinking)),
  )
  said = both(said, (now) => streamed(now, messageId(now, event), "text", rest(now.said.text, partial.text)))
  said = both(said, (now) =>
    each(now, session.tools, (at, tool) =>
      at.calls.get(tool.call_id)?.output === tool.output && at.calls.get(tool.call_id)?.started === true
        ? [at, nothing]
        : started(at, tool.call_id, tool.name, tool.arguments, tool.output),
    ),
  )
  said = both(said, (now) => planned(now, session.plan ?? []))
  const gone = [...view.asked].filter((id) => !open.has(id))
  said = both(said, (now) => each(now, gone, withdraws))
  return both(said, (now) => each(now, session.questions, asks))
}

const one = (view: View, event: Event): Said => {
  switch (event.type) {
    case "snapshot":
      return snapshot(view, event)
    case "text_delta":
      return streamed(view, messageId(view, event), "text", event.text)
    case "thinking_delta":
      return streamed(view, messageId(view, event), "thinking", event.text)
    case "toolcall_delta": {
      if (view.calls.has(event.call_id) || event.name === "") return [view, nothing]
      const call: Call = { name: event.name, args: {}, started: false, output: "" }
      const { name } = event
      const item = update({
        sessionUpdate: "tool_call",
        toolCallId: event.call_id,
        title: titleOf(name, {}),
        kind: kindOf(name),
        status: "pending",
      })
      return [withCall(view, event.call_id, call), [item]]
    }
    case "message_completed": {
      if (event.role === "assistant") return completed(view, messageId(view, event), event.content)
      return userSaid(view, `e${event.entry_id}`, event.content)
    }
    case "stream_reset": {
      const begun = view.said.text !== ""
      const again = { ...view, said: { text: "", thinking: "" }, message: view.message + 1 }
      // The protocol takes nothing back: what was said of the answer stays, and this says that it is void.
      const words = `\n\n[The answer starts over: ${event.reason}]\n\n`
      return [
        again,
        begun ? [chunk("agent_message_chunk", { type: "text", text: words }, messageId(view, event))] : nothing,
      ]
    }
    case "tool_started":
      return started(view, event.call_id, event.name, event.arguments)
    case "tool_output": {
      const call = view.calls.get(event.call_id)
      if (call === undefined) return [view, nothing]
      const output = outputTail(call.output, event.delta)
      const content = [...diffsOf(call.name, call.args, view.options.directory), textContent(output)]
      const item = update({ sessionUpdate: "tool_call_update", toolCallId: event.call_id, content })
      return [withCall(view, event.call_id, { ...call, output }), [item]]
    }
    case "tool_blocked":
      return ended(view, event.call_id, event.name, { failed: true, content: [textContent(event.reason)] })
    case "tool_completed":
      return ended(view, event.call_id, event.name, {
        failed: event.is_error,
        content: resultContent(event.output),
        raw: event.structured_output,
        line: changedLine(event.details),
      })
    case "permission_request":
      return asks(view, { ...event, kind: "permission" })
    case "ui_request":
      return asks(view, { ...event, kind: "choice" })
    case "question_settled":
      return withdraws(view, event.question_id)
    case "turn_started": {
      const { choices } = view
      return choices === null || event.model === "" ? [view, nothing] : chose(view, { ...choices, model: event.model })
    }
    case "mode_changed":
      return view.choices === null ? [view, nothing] : chose(view, { ...view.choices, mode: event.mode })
    case "plan_updated":
      return planned(view, event.items)
    case "usage_updated":
      return [view, usageUpdate(event.usage, view.choices, view.options.catalog).map(update)]
    case "turn_error":
      return [view, failure(event.message, event.reference, view.options.extras).map(update)]
    case "notice":
      return [view, notice(event.level, event.message, view.options.extras).map(update)]
    case "retry_scheduled": {
      const text = `The model is asked again (attempt ${event.attempt}): ${event.reason}`
      return [view, notice("warning", text, view.options.extras).map(update)]
    }
    case "compaction_started":
    case "compaction_completed":
      return [view, compactionUpdate(event, view.options.extras).map(update)]
    case "turn_cancelled":
    case "turn_completed":
    case "state_changed": {
      // What was announced and never ran has no event of its own.
      const over = event.type !== "state_changed" || event.to === "idle"
      const left = over ? [...view.calls].filter(([, call]) => !call.started) : []
      return each(view, left, (now, [id, { name }]) => ended(now, id, name, { failed: true, content: [] }))
    }
    case "session_changed":
    case "submission_updated":
    case "subagent_started":
    case "subagent_finished":
      return [view, nothing]
  }
}

const render = (view: View, event: Event): Said => {
  const [next, items] = one(view, event)
  return [{ ...next, seqNo: event.seq_no }, items]
}

/** Nothing is left open in this protocol but the questions, which are withdrawn. */
const flush = (view: View): Said => each(view, view.asked, withdraws)

export const renderer: Renderer<Options, View, Item> = { init, render, flush }
