/**
 * What a run says as chunks of Chat Completions: the role first, words as `content`, thinking and the progress of tools as
 * `reasoning_content`, the finish reason, tokens where they are wanted. Pure.
 *
 * 1. What was said as content stays said. Where a retried response goes another way, it follows behind an empty line.
 * 2. The words of a later response follow behind an empty line.
 * 3. A run that gives a value says its words as reasoning; the value is the content, whole, at the end.
 * 4. A failed turn says an error object, then the finish reason `error`.
 */
import type { Event } from "../../domain/event.ts"
import type { SubmissionId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import { shown } from "../../domain/shown.ts"
import { toolName } from "../../domain/structured-output.ts"
import type { Rendered, Renderer } from "../renderer.ts"
import { type ChatChunk, type ChatDelta, chatUsage, type FinishReason, finishReasonOf } from "./chunks.ts"
import { type ErrorObject, errorObject, turnProblem } from "./problems.ts"
import { type End, merged, type Said } from "./said.ts"
import { type Check, valuedOf } from "./value.ts"
import { hear, newVoice, type Voice } from "./voice.ts"

export interface ChatOptions {
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  /** As the client named it. */
  readonly model: string
  readonly includeUsage: boolean
  /** Of the wanted value; null: words are wanted. */
  readonly check: Check | null
  readonly submission: SubmissionId
  /** Its run was going already when the watch began. */
  readonly running: boolean
}

export interface ChatView {
  readonly options: ChatOptions
  readonly voice: Voice
  readonly opened: boolean
  /** Words of an earlier response, or void ones, stand before what comes next. */
  readonly broken: boolean
  /** There is content. */
  readonly worded: boolean
  /** The last line of the reasoning is not ended. */
  readonly midLine: boolean
  readonly value: Json | undefined
}

export type ChatItem = ChatChunk | ErrorObject

type Render = Rendered<ChatView, ChatItem>

const chunk = ({ options }: ChatView, delta: ChatDelta, finish: FinishReason | null): ChatChunk => ({
  id: options.id,
  object: "chat.completion.chunk",
  created: options.created,
  model: options.model,
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...(options.includeUsage ? { usage: null } : {}),
})

const content = (view: ChatView, words: string): Render => {
  const text = view.broken && view.worded ? `\n\n${words}` : words
  return [{ ...view, broken: false, worded: true }, [chunk(view, { content: text }, null)]]
}

const reasoning = (view: ChatView, text: string): Render => [
  { ...view, midLine: !text.endsWith("\n") },
  [chunk(view, { reasoning_content: text }, null)],
]

const line = (view: ChatView, text: string): Render => reasoning(view, `${view.midLine ? "\n" : ""}${text}\n`)

const firstLine = (text: string): string => {
  const [first = ""] = text.trim().split("\n", 1)
  return first.length > 200 ? `${first.slice(0, 200)}…` : first
}

const callEnded = (said: Extract<Said, { readonly type: "callEnded" }>): string => {
  const { durationMs, isError, name, output } = said
  if (durationMs === null) return `[${name}] blocked: ${firstLine(output)}`
  return isError ? `[${name}] failed: ${firstLine(output)}` : `[${name}] done in ${durationMs} ms`
}

const failed = (view: ChatView, code: string, message: string): ReadonlyArray<ChatItem> => [
  errorObject(turnProblem({ code, message })),
  chunk(view, {}, "error"),
]

const ended = (view: ChatView, end: End): ReadonlyArray<ChatItem> => {
  if (end.type === "failed") return failed(view, end.code, end.message)
  const { check } = view.options
  if (check === null) return [chunk(view, {}, finishReasonOf(end.stopReason))]
  const valued = valuedOf(view.value, end.text, check)
  if (valued.type === "none") return failed(view, "no_structured_output", valued.message)
  return [chunk(view, { content: JSON.stringify(valued.value) }, null), chunk(view, {}, "stop")]
}

/** Tokens come once, behind the finish reason, in a chunk without choices. */
const usageOf = (view: ChatView, end: End): ReadonlyArray<ChatItem> =>
  view.options.includeUsage ? [{ ...chunk(view, {}, null), choices: [], usage: chatUsage(end.usage) }] : []

const say = (view: ChatView, said: Said): Render => {
  const structured = view.options.check !== null
  switch (said.type) {
    case "text":
      return structured ? reasoning(view, said.delta) : content(view, said.delta)
    case "thinking":
      return reasoning(view, said.delta)
    case "void":
      return line({ ...view, broken: true }, "[retry] the response starts over")
    case "responded":
      return [{ ...view, broken: true }, []]
    case "callStarted":
      return structured && said.name === toolName
        ? [view, []]
        : line(view, `[${said.name}] ${shown(said.arguments, "…")}`)
    case "callEnded": {
      if (!structured || said.name !== toolName) return line(view, callEnded(said))
      return said.isError || said.structured === null ? [view, []] : [{ ...view, value: said.structured }, []]
    }
    case "note":
      return line(view, `[${said.line}]`)
    case "ended":
      return [view, [...ended(view, said.end), ...usageOf(view, said.end)]]
  }
}

/** Says things in order; neighbouring deltas are one chunk. */
export const sayAll = (view: ChatView, said: ReadonlyArray<Said>): Render => {
  let now = view
  const items: Array<ChatItem> = []
  for (const one of merged(said)) {
    const [next, chunks] = say(now, one)
    now = next
    for (const item of chunks) items.push(item)
  }
  return [now, items]
}

const opening = (view: ChatView): Render =>
  view.opened ? [view, []] : [{ ...view, opened: true }, [chunk(view, { role: "assistant", content: "" }, null)]]

/** Several events at once, which makes fewer chunks of the same text. */
export const renderAll = (view: ChatView, events: ReadonlyArray<Event>): Render => {
  let { voice } = view
  const said: Array<Said> = []
  for (const event of events) {
    const [next, more] = hear(voice, event)
    voice = next
    for (const one of more) said.push(one)
  }
  const [open, first] = opening(view)
  const [now, items] = sayAll({ ...open, voice }, said)
  return [now, first.length === 0 ? items : [...first, ...items]]
}

export const chatRenderer: Renderer<ChatOptions, ChatView, ChatItem> = {
  init: (options) => ({
    options,
    voice: newVoice(options.submission, options.running),
    opened: false,
    broken: false,
    worded: false,
    midLine: false,
    value: undefined,
  }),
  render: (view, event) => renderAll(view, [event]),
  // Nothing is open between chunks: a stream that ends early ends with what was said.
  flush: (view) => [view, []],
}
