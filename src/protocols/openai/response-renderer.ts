/**
 * What a run says as events of the Responses API, numbered from 0: the response is created, its items are added, filled and done, and the
 * response is completed, incomplete or failed. Each response of the model has a message of its own, each thinking a reasoning item, each call
 * a call item. Pure.
 *
 * 1. One item of text is open at a time; whatever else is said closes it.
 * 2. Words that a retry took the place of stay behind as an incomplete message in the stream, and are not part of the final response.
 * 3. A run that gives a value says its words as reasoning; the value is the one message, at the end.
 */
import type { Event } from "../../domain/event.ts"
import type { SubmissionId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import { toolName } from "../../domain/structured-output.ts"
import type { Rendered, Renderer } from "../renderer.ts"
import {
  type CallItem,
  type MessageItem,
  type OutputItem,
  type OutputText,
  type ResponseBase,
  type ResponseObject,
  responseObject,
} from "./response-object.ts"
import { type End, merged, type Said } from "./said.ts"
import { type Check, valuedOf } from "./value.ts"
import { hear, newVoice, type Voice } from "./voice.ts"

export interface ResponseOptions {
  readonly base: ResponseBase
  /** Of the wanted value; null: words are wanted. */
  readonly check: Check | null
  readonly submission: SubmissionId
  readonly running: boolean
}

/** One event; `sequence_number` counts from 0. */
export interface ResponseEvent {
  readonly type: string
  readonly sequence_number: number
  readonly [field: string]: unknown
}

interface OpenItem {
  readonly type: "message" | "reasoning"
  readonly index: number
  readonly text: string
}

export interface ResponseView {
  readonly options: ResponseOptions
  readonly voice: Voice
  readonly sequence: number
  readonly output: ReadonlyArray<OutputItem>
  readonly open: OpenItem | null
  /** Places of calls in the output, by the id of the call. */
  readonly calls: ReadonlyMap<string, number>
  readonly value: Json | undefined
  /** The response as it ended. */
  readonly final: ResponseObject | null
}

type Render = Rendered<ResponseView, ResponseEvent>

/** Collects the events of one step. */
class Step {
  view: ResponseView
  readonly events: Array<ResponseEvent> = []

  constructor(view: ResponseView) {
    this.view = view
  }

  emit(type: string, fields: Readonly<Record<string, unknown>>): void {
    const sequence = this.view.sequence
    this.view = { ...this.view, sequence: sequence + 1 }
    this.events.push({ type, sequence_number: sequence, ...fields })
  }

  change(fields: Partial<ResponseView>): void {
    this.view = { ...this.view, ...fields }
  }

  add(item: OutputItem): number {
    const index = this.view.output.length
    this.change({ output: [...this.view.output, item] })
    this.emit("response.output_item.added", { output_index: index, item })
    return index
  }

  /** The item is whole. */
  done(index: number, item: OutputItem): void {
    this.change({ output: this.view.output.with(index, item) })
    this.emit("response.output_item.done", { output_index: index, item })
  }
}

const idOf = (view: ResponseView, prefix: string, index: number): string =>
  `${prefix}_${view.options.base.id.slice("resp_".length)}_${index}`

const partOf = (text: string): OutputText => ({ type: "output_text", text, annotations: [], logprobs: [] })

const messageItem = (
  view: ResponseView,
  index: number,
  status: MessageItem["status"],
  text: string | null,
): MessageItem => ({
  id: idOf(view, "msg", index),
  type: "message",
  role: "assistant",
  status,
  content: text === null ? [] : [partOf(text)],
})

const close = (step: Step, status: MessageItem["status"] = "completed"): void => {
  const { open } = step.view
  if (open === null) return
  const { index, text, type } = open
  step.change({ open: null })
  if (type === "message") {
    const place = { item_id: idOf(step.view, "msg", index), output_index: index, content_index: 0 }
    step.emit("response.output_text.done", { ...place, text, logprobs: [] })
    step.emit("response.content_part.done", { ...place, part: partOf(text) })
    step.done(index, messageItem(step.view, index, status, text))
    return
  }
  const id = idOf(step.view, "rs", index)
  const place = { item_id: id, output_index: index, summary_index: 0 }
  const part = { type: "summary_text", text } as const
  step.emit("response.reasoning_summary_text.done", { ...place, text })
  step.emit("response.reasoning_summary_part.done", { ...place, part })
  step.done(index, { id, type: "reasoning", summary: [part] })
}

const begin = (step: Step, type: OpenItem["type"]): OpenItem => {
  const { open } = step.view
  if (open?.type === type) return open
  close(step)
  const next = step.view.output.length
  const begun: OpenItem = { type, index: next, text: "" }
  if (type === "message") {
    step.add(messageItem(step.view, next, "in_progress", null))
    const place = { item_id: idOf(step.view, "msg", next), output_index: next, content_index: 0 }
    step.emit("response.content_part.added", { ...place, part: partOf("") })
  } else {
    const id = idOf(step.view, "rs", next)
    step.add({ id, type: "reasoning", summary: [] })
    const place = { item_id: id, output_index: next, summary_index: 0 }
    step.emit("response.reasoning_summary_part.added", { ...place, part: { type: "summary_text", text: "" } })
  }
  step.change({ open: begun })
  return begun
}

const say = (step: Step, type: OpenItem["type"], delta: string): void => {
  const { index, text } = begin(step, type)
  step.change({ open: { type, index, text: text + delta } })
  const place = { item_id: idOf(step.view, type === "message" ? "msg" : "rs", index), output_index: index }
  if (type === "message") step.emit("response.output_text.delta", { ...place, content_index: 0, delta, logprobs: [] })
  else step.emit("response.reasoning_summary_text.delta", { ...place, summary_index: 0, delta })
}

const callStarted = (step: Step, said: Pick<CallItem, "name" | "arguments"> & { readonly id: string }): number => {
  close(step)
  const index = step.view.output.length
  const item: CallItem = {
    id: idOf(step.view, "mcp", index),
    type: "mcp_call",
    server_label: "super-pi",
    name: said.name,
    arguments: said.arguments,
    status: "in_progress",
    output: null,
    error: null,
  }
  step.add(item)
  step.change({ calls: new Map([...step.view.calls, [said.id, index]]) })
  const place = { item_id: item.id, output_index: index }
  step.emit("response.mcp_call.in_progress", place)
  step.emit("response.mcp_call_arguments.done", { ...place, arguments: item.arguments })
  return index
}

const callEnded = (step: Step, said: Extract<Said, { readonly type: "callEnded" }>): void => {
  const { id, isError, name, output } = said
  const index = step.view.calls.get(id) ?? callStarted(step, { id, name, arguments: "{}" })
  const item = step.view.output[index]
  if (item?.type !== "mcp_call") return
  const place = { item_id: item.id, output_index: index }
  step.emit(isError ? "response.mcp_call.failed" : "response.mcp_call.completed", place)
  step.done(index, { ...item, ...(isError ? { status: "failed", error: output } : { status: "completed", output }) })
}

/** The final response: what was taken back is no part of it. */
const finish = (step: Step, end: End): void => {
  const { output, options } = step.view
  const kept = output.filter((item) => item.type !== "message" || item.status !== "incomplete")
  const final = responseObject(options.base, kept, end)
  step.change({ final })
  const type = final.status === "completed" || final.status === "incomplete" ? final.status : "failed"
  step.emit(`response.${type}`, { response: final })
}

const ended = (step: Step, end: End): void => {
  const { check } = step.view.options
  close(step)
  if (end.type === "failed" || check === null) {
    finish(step, end)
    return
  }
  const valued = valuedOf(step.view.value, end.text, check)
  if (valued.type === "none") {
    finish(step, { type: "failed", code: "no_structured_output", message: valued.message, usage: end.usage })
    return
  }
  say(step, "message", JSON.stringify(valued.value))
  close(step)
  finish(step, end)
}

const tell = (step: Step, said: Said): void => {
  const structured = step.view.options.check !== null
  switch (said.type) {
    case "text":
      say(step, structured ? "reasoning" : "message", said.delta)
      break
    case "thinking":
      say(step, "reasoning", said.delta)
      break
    case "void":
      close(step, "incomplete")
      break
    case "responded":
      close(step)
      break
    case "callStarted":
      if (structured && said.name === toolName) break
      callStarted(step, { id: said.id, name: said.name, arguments: JSON.stringify(said.arguments) })
      break
    case "callEnded":
      if (!structured || said.name !== toolName) callEnded(step, said)
      else if (!said.isError && said.structured !== null) step.change({ value: said.structured })
      break
    case "note":
      break
    case "ended":
      ended(step, said.end)
      break
  }
}

const opened = (step: Step): void => {
  if (step.view.sequence > 0) return
  const response = responseObject(step.view.options.base, [], null)
  step.emit("response.created", { response })
  step.emit("response.in_progress", { response })
}

/** Says things in order; neighbouring deltas are one event. */
export const tellAll = (view: ResponseView, said: ReadonlyArray<Said>): Render => {
  const step = new Step(view)
  opened(step)
  for (const one of merged(said)) tell(step, one)
  return [step.view, step.events]
}

/** Several events at once. */
export const renderResponse = (view: ResponseView, events: ReadonlyArray<Event>): Render => {
  let { voice } = view
  const said: Array<Said> = []
  for (const event of events) {
    const [next, more] = hear(voice, event)
    voice = next
    for (const one of more) said.push(one)
  }
  return tellAll({ ...view, voice }, said)
}

export const responseRenderer: Renderer<ResponseOptions, ResponseView, ResponseEvent> = {
  init: (options) => ({
    options,
    voice: newVoice(options.submission, options.running),
    sequence: 0,
    output: [],
    open: null,
    calls: new Map(),
    value: undefined,
    final: null,
  }),
  render: (view, event) => renderResponse(view, [event]),
  flush: (view) => {
    const step = new Step(view)
    close(step, "incomplete")
    return [step.view, step.events]
  },
}
