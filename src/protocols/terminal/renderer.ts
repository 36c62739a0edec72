/**
 * The terminal renderer: from the typed event stream to blocks of text, without a terminal. Pure: `init`, then `render` for each event,
 * `flush` at the end. Everything in a block is sanitised; colours and line breaks of the screen are the layout's.
 */
import type { Event, MachineState } from "../../domain/event.ts"
import { textOf } from "../../domain/message.ts"
import type { QuestionView } from "../../domain/question.ts"
import { noUsage, type Usage } from "../../domain/usage.ts"
import { compactionWords, duration, parkedWords, shortArguments } from "./format.ts"
import { planLines } from "./plan.ts"
import { questionLines, settledLine } from "./question.ts"
import { oneLine, sanitizeChunk } from "./sanitize.ts"
import type { Tone } from "./style.ts"
import { truncate } from "./width.ts"

/** A piece of output. `text` and `thinking` run on; `break` ends what runs; `line` stands alone. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  | { readonly kind: "break" }
  | { readonly kind: "line"; readonly tone: Tone; readonly text: string }

interface RunningTool {
  readonly name: string
  readonly summary: string
  /** The newest line of its output. */
  readonly output: string
}

/** What is known of the conversation so far. */
export interface View {
  readonly showThinking: boolean
  readonly state: MachineState
  /** When the run began, by the events' clock; null when idle. */
  readonly startedAt: number | null
  readonly tools: ReadonlyMap<string, RunningTool>
  /** The name of a call whose arguments are being streamed. */
  readonly writingCall: string | null
  /** Tokens of the conversation. */
  readonly usage: Usage
  readonly retry: string | null
  /** A compaction that somebody asked for is being made. */
  readonly compacting: boolean
  /** Starts of escape sequences that may still be completed. */
  readonly pending: { readonly text: string; readonly thinking: string }
  readonly running: "text" | "thinking" | null
  /** Whether text of the message being streamed was shown. */
  readonly shown: boolean
  /** The newest error that was shown; the same one is not shown again. */
  readonly lastError: string | null
}

export const init = (options: { readonly showThinking?: boolean } = {}): View => ({
  showThinking: options.showThinking ?? false,
  state: "idle",
  startedAt: null,
  tools: new Map(),
  writingCall: null,
  usage: noUsage,
  retry: null,
  compacting: false,
  pending: { text: "", thinking: "" },
  running: null,
  shown: false,
  lastError: null,
})

export interface Rendered {
  readonly view: View
  readonly blocks: ReadonlyArray<Block>
}

const summaryColumns = 60

const line = (tone: Tone, text: string): Block => ({ kind: "line", tone, text })

/** Ends what runs, so that a line can stand alone. */
const alone = (view: View, blocks: ReadonlyArray<Block>): Rendered => ({
  view: { ...view, running: null },
  blocks: view.running === null ? blocks : [{ kind: "break" }, ...blocks],
})

const runningText = (view: View, kind: "text" | "thinking", chunk: string): Rendered => {
  const { text, pending } = sanitizeChunk(view.pending[kind], chunk)
  const next: View = { ...view, pending: { ...view.pending, [kind]: pending }, writingCall: null }
  if (text === "" || (kind === "thinking" && !view.showThinking)) return { view: next, blocks: [] }
  const turn: ReadonlyArray<Block> = view.running !== null && view.running !== kind ? [{ kind: "break" }] : []
  return { view: { ...next, running: kind, shown: view.shown || kind === "text" }, blocks: [...turn, { kind, text }] }
}

const withoutTool = (view: View, callId: string): View => {
  const tools = new Map(view.tools)
  tools.delete(callId)
  return { ...view, tools }
}

const error = (view: View, message: string): Rendered => {
  const text = oneLine(message)
  return view.lastError === text ? { view, blocks: [] } : alone({ ...view, lastError: text }, [line("error", text)])
}

/** The last line that is not blank. */
const newestLine = (output: string): string =>
  truncate(
    oneLine(
      output
        .trimEnd()
        .split(/[\r\n]/)
        .pop() ?? "",
    ),
    summaryColumns,
  )

/** What chat shows of a subagent: when it begins, and how it ended. */
const subagentLine = (
  event: Extract<Event, { readonly type: "subagent_started" | "subagent_finished" }>,
): Extract<Block, { readonly kind: "line" }> => {
  const who = `subagent ${event.role} (conversation ${event.subagent_id})`
  if (event.type === "subagent_started") {
    return { kind: "line", tone: "dim", text: `→ ${who}: ${truncate(oneLine(event.task), summaryColumns)}` }
  }
  const took = duration(event.duration_ms)
  if (event.error === null) return { kind: "line", tone: "dim", text: `✓ ${who} finished (${took})` }
  const how = { completed: "finished", failed: "failed", timed_out: "ran out of time", stopped: "was stopped" }
  const why = truncate(oneLine(event.error), 100)
  return { kind: "line", tone: "warning", text: `✗ ${who} ${how[event.status]} (${took}): ${why}` }
}

const questionBlocks = (question: QuestionView): ReadonlyArray<Block> =>
  questionLines(question).map((text, at) => line(at === 0 ? "strong" : "plain", text))

export const render = (view: View, event: Event): Rendered => {
  switch (event.type) {
    case "snapshot": {
      const { session } = event
      const joined: View = {
        ...init({ showThinking: view.showThinking }),
        state: session.state,
        startedAt: session.state === "idle" ? null : (view.startedAt ?? event.timestamp_ms),
        usage: session.usage,
        compacting: session.compactions.some((one) => one.reason === "manual"),
        tools: new Map(
          session.tools.map((tool) => [
            tool.call_id,
            {
              name: oneLine(tool.name),
              summary: shortArguments(tool.arguments, summaryColumns),
              output: newestLine(tool.output),
            },
          ]),
        ),
      }
      const partial = session.partial?.text ?? ""
      const start: Array<Block> = view.running === null ? [] : [{ kind: "break" }]
      for (const question of session.questions) start.push(...questionBlocks(question))
      if (session.parked !== null) {
        start.push(line("warning", `${parkedWords(session.parked.reason)}; /retry runs it again, /cancel ends it`))
      }
      if (partial === "") return { view: joined, blocks: start }
      const shown = runningText(joined, "text", partial)
      return { view: shown.view, blocks: [...start, ...shown.blocks] }
    }
    case "turn_started":
      return {
        view: { ...view, startedAt: view.startedAt ?? event.timestamp_ms, retry: null, shown: false, lastError: null },
        blocks: [],
      }
    case "text_delta":
      return runningText(view, "text", event.text)
    case "thinking_delta":
      return runningText(view, "thinking", event.text)
    case "toolcall_delta":
      return { view: { ...view, writingCall: oneLine(event.name) }, blocks: [] }
    case "message_completed": {
      if (event.role === "user") return { view, blocks: [] }
      const whole = view.shown ? { view, blocks: [] } : runningText(view, "text", textOf(event.content))
      const cut =
        event.stop_reason === "length" ? [line("warning", "the answer was cut off at the model's output limit")] : []
      const ended = alone({ ...whole.view, shown: false, writingCall: null, pending: { text: "", thinking: "" } }, cut)
      return { view: ended.view, blocks: [...whole.blocks, ...ended.blocks] }
    }
    case "stream_reset": {
      const lines = view.shown ? [line("dim", `the answer starts over: ${oneLine(event.reason)}`)] : []
      return alone({ ...view, shown: false, writingCall: null, pending: { text: "", thinking: "" } }, lines)
    }
    case "retry_scheduled": {
      const wait = duration(Math.max(0, event.at_ms - event.timestamp_ms))
      const text = `trying again in ${wait} (attempt ${event.attempt}): ${oneLine(event.reason)}`
      return alone({ ...view, retry: text }, [line("warning", text)])
    }
    case "tool_started": {
      const tool = { name: oneLine(event.name), summary: shortArguments(event.arguments, summaryColumns), output: "" }
      return { view: { ...view, writingCall: null, tools: new Map(view.tools).set(event.call_id, tool) }, blocks: [] }
    }
    case "tool_output": {
      const tool = view.tools.get(event.call_id)
      if (tool === undefined) return { view, blocks: [] }
      const output = newestLine(event.delta)
      return {
        view: { ...view, tools: new Map(view.tools).set(event.call_id, { ...tool, output: output || tool.output }) },
        blocks: [],
      }
    }
    case "tool_completed": {
      const summary = view.tools.get(event.call_id)?.summary ?? ""
      const head = `${event.is_error ? "✗" : "✓"} ${oneLine(event.name)}${summary === "" ? "" : ` ${summary}`}`
      const why = event.is_error ? `: ${truncate(oneLine(textOf(event.output)), 100)}` : ""
      return alone(withoutTool(view, event.call_id), [
        line(event.is_error ? "error" : "dim", `${head} (${duration(event.duration_ms)})${why}`),
      ])
    }
    case "tool_blocked":
      return alone(withoutTool(view, event.call_id), [
        line("warning", `✗ ${oneLine(event.name)} was not run: ${oneLine(event.reason)}`),
      ])
    case "turn_error":
      return error(view, event.message)
    case "turn_cancelled":
      return alone({ ...view, tools: new Map() }, [line("warning", "cancelled")])
    case "turn_completed":
      return alone({ ...view, shown: false }, [])
    case "state_changed": {
      const idle = event.to === "idle"
      const next: View = {
        ...view,
        state: event.to,
        startedAt: idle ? null : (view.startedAt ?? event.timestamp_ms),
        retry: event.to === "sleeping_backoff" ? view.retry : null,
      }
      return idle ? alone({ ...next, tools: new Map(), writingCall: null }, []) : { view: next, blocks: [] }
    }
    case "compaction_started": {
      if (event.reason === "background") return { view, blocks: [] }
      const compacting = view.compacting || event.reason === "manual"
      return alone({ ...view, compacting }, [line("dim", "compacting the context…")])
    }
    case "compaction_completed": {
      const beside = event.reason === "background" && event.status === "stale"
      const over = event.reason === "manual" ? { ...view, compacting: false } : view
      const tone = event.status === "failed" ? "warning" : "dim"
      return beside ? { view, blocks: [] } : alone(over, [line(tone, compactionWords(event))])
    }
    case "subagent_started":
    case "subagent_finished":
      return alone(view, [subagentLine(event)])
    case "usage_updated":
      return { view: { ...view, usage: event.total }, blocks: [] }
    case "plan_updated":
      return alone(view, planLines(event.items))
    case "permission_request":
      return alone(view, questionBlocks({ ...event, kind: "permission" }))
    case "ui_request":
      return alone(view, questionBlocks({ ...event, kind: "choice" }))
    case "question_settled":
      return alone(view, [
        line(event.result === "allowed" || event.result === "answered" ? "dim" : "warning", settledLine(event)),
      ])
    case "notice": {
      const text = oneLine(event.message)
      // What is tried again every second is said once.
      if (event.level !== "info" && view.lastError === text) return { view, blocks: [] }
      const told = event.level === "info" ? view : { ...view, lastError: text }
      return alone(told, [line(event.level === "info" ? "dim" : event.level, text)])
    }
    case "mode_changed":
      return alone(view, [line("dim", `mode: ${oneLine(event.mode)}`)])
    case "submission_updated": {
      const ownFault = event.status === "unanswered" && !["aborted", "withdrawn", "reset"].includes(event.reason ?? "")
      return ownFault ? error(view, event.detail ?? "the prompt was not answered") : { view, blocks: [] }
    }
  }
}

/** Ends what still runs. */
export const flush = (view: View): Rendered => alone({ ...view, pending: { text: "", thinking: "" } }, [])
