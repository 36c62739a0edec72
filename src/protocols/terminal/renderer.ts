/**
 * The terminal renderer: from the typed event stream to blocks of text, without a terminal. Everything in a block is sanitised; colours and
 * line breaks of the screen are the layout's.
 */
import type { Event, MachineState } from "../../domain/event.ts"
import { type AssistantPart, textOf, type UserPart } from "../../domain/message.ts"
import type { QuestionView } from "../../domain/question.ts"
import { noUsage, type Usage } from "../../domain/usage.ts"
import type { Rendered, Renderer } from "../renderer.ts"
import { compactionWords, duration, parkedWords } from "./format.ts"
import { planLines } from "./plan.ts"
import { questionLines, settledLine } from "./question.ts"
import { oneLine, sanitize, sanitizeChunk } from "./sanitize.ts"
import type { Tone } from "./style.ts"
import { type Detail, endLine, moreOutput, startTool, type ToolProgress, toolDetails } from "./tool.ts"
import { truncate } from "./width.ts"

/** A piece of output. `text` and `thinking` run on; `break` ends what runs; `line` stands alone. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  | { readonly kind: "break" }
  | { readonly kind: "line"; readonly tone: Tone; readonly text: string }
  /** What stands below the line of a call. */
  | ({ readonly kind: "detail" } & Detail)

export interface RendererOptions {
  readonly showThinking?: boolean
  /** Whether calls show what they changed and said, beside their line. */
  readonly details?: boolean
  /** Whether inputs are shown: whoever typed one elsewhere, it was not typed here. */
  readonly inputs?: boolean
}

/** What is known of the conversation so far. */
export interface View {
  readonly options: RendererOptions
  /** Null before the first event. */
  readonly conversation: number | null
  /** The model of the newest turn; before one, that of the conversation. */
  readonly model: string
  readonly mode: string
  /** What waits for its turn. */
  readonly queued: ReadonlySet<number>
  readonly state: MachineState
  /** When the run began, by the events' clock; null when idle. */
  readonly startedAt: number | null
  readonly tools: ReadonlyMap<string, ToolProgress>
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

type Said = Rendered<View, Block>

const init = (options: RendererOptions): View => ({
  options,
  conversation: null,
  model: "",
  mode: "",
  queued: new Set(),
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

const summaryColumns = 60

const line = (tone: Tone, text: string): Block => ({ kind: "line", tone, text })

/** Ends what runs, so that a line can stand alone. */
const alone = (view: View, blocks: ReadonlyArray<Block>): Said => [
  { ...view, running: null },
  view.running === null ? blocks : [{ kind: "break" }, ...blocks],
]

const runningText = (view: View, kind: "text" | "thinking", chunk: string): Said => {
  const { text, pending } = sanitizeChunk(view.pending[kind], chunk)
  const next: View = { ...view, pending: { ...view.pending, [kind]: pending }, writingCall: null }
  if (text === "" || (kind === "thinking" && view.options.showThinking !== true)) return [next, []]
  const turn: ReadonlyArray<Block> = view.running !== null && view.running !== kind ? [{ kind: "break" }] : []
  return [{ ...next, running: kind, shown: view.shown || kind === "text" }, [...turn, { kind, text }]]
}

const withoutTool = (view: View, callId: string): View => {
  const tools = new Map(view.tools)
  tools.delete(callId)
  return { ...view, tools }
}

const error = (view: View, message: string): Said => {
  const text = oneLine(message)
  return view.lastError === text ? [view, []] : alone({ ...view, lastError: text }, [line("error", text)])
}

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

/** Lines of an input that are shown. */
const inputLines = 20

/** An input, as it would stand where it was typed. */
const inputBlocks = (content: ReadonlyArray<AssistantPart | UserPart>): ReadonlyArray<Block> => {
  const words = content.map((part) => (part.type === "image" ? `[image ${part.mediaType}]` : textOf([part])))
  const lines = sanitize(words.join("\n")).trimEnd().split("\n")
  const more = lines.length - inputLines
  const shown = more > 0 ? [...lines.slice(0, inputLines), `… ${more} more lines`] : lines
  return shown.map((text, at) => line("strong", `${at === 0 ? "› " : "  "}${text}`))
}

const questionBlocks = (question: QuestionView): ReadonlyArray<Block> =>
  questionLines(question).map((text, at) => line(at === 0 ? "strong" : "plain", text))

const render = (view: View, event: Event): Said => {
  switch (event.type) {
    case "snapshot": {
      const { session } = event
      const joined: View = {
        ...init(view.options),
        conversation: session.conversation_id,
        model: session.model,
        mode: session.mode,
        queued: new Set(session.queued),
        state: session.state,
        startedAt: session.state === "idle" ? null : (view.startedAt ?? event.timestamp_ms),
        usage: session.usage,
        compacting: session.compactions.some((one) => one.reason === "manual"),
        tools: new Map(
          session.tools.map((tool) => [tool.call_id, moreOutput(startTool(tool.name, tool.arguments), tool.output)]),
        ),
      }
      const partial = session.partial?.text ?? ""
      const start: Array<Block> = view.running === null ? [] : [{ kind: "break" }]
      for (const question of session.questions) start.push(...questionBlocks(question))
      if (session.parked !== null) {
        start.push(line("warning", `${parkedWords(session.parked.reason)}; /retry runs it again, /cancel ends it`))
      }
      if (partial === "") return [joined, start]
      const [shown, blocks] = runningText(joined, "text", partial)
      return [shown, [...start, ...blocks]]
    }
    case "turn_started":
      return [
        {
          ...view,
          model: event.model === "" ? view.model : event.model,
          startedAt: view.startedAt ?? event.timestamp_ms,
          retry: null,
          shown: false,
          lastError: null,
        },
        [],
      ]
    case "text_delta":
      return runningText(view, "text", event.text)
    case "thinking_delta":
      return runningText(view, "thinking", event.text)
    case "toolcall_delta":
      return [{ ...view, writingCall: oneLine(event.name) }, []]
    case "message_completed": {
      if (event.role === "user")
        return view.options.inputs === true ? alone(view, inputBlocks(event.content)) : [view, []]
      const [whole, blocks]: Said = view.shown ? [view, []] : runningText(view, "text", textOf(event.content))
      const cut =
        event.stop_reason === "length" ? [line("warning", "the answer was cut off at the model's output limit")] : []
      const over = { ...whole, shown: false, writingCall: null, pending: { text: "", thinking: "" } }
      const [ended, more] = alone(over, cut)
      return [ended, [...blocks, ...more]]
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
      const tool = startTool(event.name, event.arguments)
      return [{ ...view, writingCall: null, tools: new Map(view.tools).set(event.call_id, tool) }, []]
    }
    case "tool_output": {
      const tool = view.tools.get(event.call_id)
      if (tool === undefined) return [view, []]
      return [{ ...view, tools: new Map(view.tools).set(event.call_id, moreOutput(tool, event.delta)) }, []]
    }
    case "tool_completed": {
      const details = view.options.details === true ? toolDetails(event) : []
      const { tone, text } = endLine(event, view.tools.get(event.call_id), details)
      return alone(withoutTool(view, event.call_id), [
        line(tone, text),
        ...details.map((detail): Block => ({ kind: "detail", ...detail })),
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
      return idle ? alone({ ...next, tools: new Map(), writingCall: null }, []) : [next, []]
    }
    case "compaction_started": {
      if (event.reason === "background") return [view, []]
      const compacting = view.compacting || event.reason === "manual"
      return alone({ ...view, compacting }, [line("dim", "compacting the context…")])
    }
    case "compaction_completed": {
      const beside = event.reason === "background" && event.status === "stale"
      const over = event.reason === "manual" ? { ...view, compacting: false } : view
      const tone = event.status === "failed" ? "warning" : "dim"
      return beside ? [view, []] : alone(over, [line(tone, compactionWords(event))])
    }
    case "subagent_started":
    case "subagent_finished":
      return alone(view, [subagentLine(event)])
    case "usage_updated":
      return [{ ...view, usage: event.total }, []]
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
      if (event.level !== "info" && view.lastError === text) return [view, []]
      const told = event.level === "info" ? view : { ...view, lastError: text }
      return alone(told, [line(event.level === "info" ? "dim" : event.level, text)])
    }
    case "mode_changed":
      return alone({ ...view, mode: event.mode }, [line("dim", `mode: ${oneLine(event.mode)}`)])
    case "session_changed":
      return [{ ...view, model: event.model }, []]
    case "submission_updated": {
      const queued = new Set(view.queued)
      if (event.status === "queued") queued.add(event.submission_id)
      else queued.delete(event.submission_id)
      const next = { ...view, queued }
      const withdrawn = event.reason === "withdrawn" || event.reason === "reset"
      if (withdrawn && view.queued.has(event.submission_id))
        return alone(next, [line("dim", `not asked any more: what was queued as ${event.submission_id}`)])
      const ownFault = event.status === "unanswered" && !["aborted", "withdrawn", "reset"].includes(event.reason ?? "")
      return ownFault ? error(next, event.detail ?? "the prompt was not answered") : [next, []]
    }
  }
}

/** Ends what still runs. */
const flush = (view: View): Said => alone({ ...view, pending: { text: "", thinking: "" } }, [])

export const terminalRenderer: Renderer<RendererOptions, View, Block> = { init, render, flush }
