/**
 * Answers as the four services stream them: lists of server-sent events, written after the services' documentation.
 */
import { split } from "../../src/models/providers/script-view.ts"

export type WireKind = "chat" | "responses" | "anthropic" | "gemini"

/** One answer, whoever gives it. */
export interface WireAnswer {
  readonly text?: string | undefined
  readonly thinking?: string | undefined
  /** The signature of the thinking (Anthropic, Gemini) or the encrypted reasoning (Responses). */
  readonly signature?: string
  readonly tools?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly args: unknown }>
  /** Deltas into which the text is cut. */
  readonly chunks?: number | undefined
  readonly usage?: {
    readonly input: number
    readonly output: number
    readonly cacheRead?: number
    readonly cacheWrite?: number
    readonly reasoning?: number
  }
  /** The service's own word for why it stopped. */
  readonly stop?: string
}

const event = (data: unknown, name?: string) =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`

const usageOf = (answer: WireAnswer) => ({
  input: 10,
  output: 5,
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: 0,
  ...answer.usage,
})
const textOf = (answer: WireAnswer) => (answer.text === undefined ? [] : split(answer.text, answer.chunks ?? 4))
const thinkingOf = (answer: WireAnswer) => (answer.thinking === undefined ? [] : split(answer.thinking, 3))
const argumentsOf = (args: unknown) => split(typeof args === "string" ? args : JSON.stringify(args), 3)
const calls = (answer: WireAnswer) => answer.tools ?? []

const chat = (answer: WireAnswer): ReadonlyArray<string> => {
  const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m" }
  const delta = (fields: object, finish: string | null = null) =>
    event({ ...base, choices: [{ index: 0, delta: fields, finish_reason: finish }] })
  const usage = usageOf(answer)
  return [
    delta({ role: "assistant", content: "" }),
    ...thinkingOf(answer).map((piece) => delta({ reasoning_content: piece })),
    ...textOf(answer).map((piece) => delta({ content: piece })),
    ...calls(answer).flatMap(({ id, name, args }, index) => [
      delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
      ...argumentsOf(args).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    delta({}, answer.stop ?? (calls(answer).length > 0 ? "tool_calls" : "stop")),
    event({
      ...base,
      choices: [],
      usage: {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        total_tokens: usage.input + usage.output,
        prompt_tokens_details: { cached_tokens: usage.cacheRead },
        completion_tokens_details: { reasoning_tokens: usage.reasoning },
      },
    }),
    event("[DONE]"),
  ]
}

const anthropic = (answer: WireAnswer): ReadonlyArray<string> => {
  const usage = usageOf(answer)
  const typed = (data: { readonly type: string } & Record<string, unknown>) => event(data, data.type)
  const block = (index: number, start: object, deltas: ReadonlyArray<object>) => [
    typed({ type: "content_block_start", index, content_block: start }),
    ...deltas.map((delta) => typed({ type: "content_block_delta", index, delta })),
    typed({ type: "content_block_stop", index }),
  ]
  let index = 0
  return [
    typed({
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: usage.input - usage.cacheRead - usage.cacheWrite,
          cache_read_input_tokens: usage.cacheRead,
          cache_creation_input_tokens: usage.cacheWrite,
          output_tokens: 1,
        },
      },
    }),
    typed({ type: "ping" }),
    ...(answer.thinking === undefined
      ? []
      : block(index++, { type: "thinking", thinking: "", signature: "" }, [
          ...thinkingOf(answer).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: answer.signature ?? "c2ln" },
        ])),
    ...(answer.text === undefined
      ? []
      : block(
          index++,
          { type: "text", text: "" },
          textOf(answer).map((text) => ({ type: "text_delta", text })),
        )),
    ...calls(answer).flatMap(({ id, name, args }) =>
      block(
        index++,
        { type: "tool_use", id, name, input: {} },
        argumentsOf(args).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      ),
    ),
    typed({
      type: "message_delta",
      delta: { stop_reason: answer.stop ?? (calls(answer).length > 0 ? "tool_use" : "end_turn"), stop_sequence: null },
      usage: { output_tokens: usage.output },
    }),
    typed({ type: "message_stop" }),
  ]
}

const gemini = (answer: WireAnswer): ReadonlyArray<string> => {
  const usage = usageOf(answer)
  const parts = (list: ReadonlyArray<object>, finishReason?: string) =>
    event({
      candidates: [{ index: 0, content: { role: "model", parts: list }, ...(finishReason ? { finishReason } : {}) }],
      usageMetadata: {
        promptTokenCount: usage.input,
        candidatesTokenCount: usage.output - usage.reasoning,
        thoughtsTokenCount: usage.reasoning,
        cachedContentTokenCount: usage.cacheRead,
        totalTokenCount: usage.input + usage.output,
      },
    })
  return [
    ...thinkingOf(answer).map((text) => parts([{ text, thought: true }])),
    ...textOf(answer).map((text) => parts([{ text }])),
    ...calls(answer).map(({ name, args }, i) =>
      parts([
        {
          functionCall: { name, args },
          ...(i === 0 && answer.signature !== undefined ? { thoughtSignature: answer.signature } : {}),
        },
      ]),
    ),
    parts([{ text: "" }], answer.stop ?? "STOP"),
  ]
}

const responses = (answer: WireAnswer): ReadonlyArray<string> => {
  const usage = usageOf(answer)
  let sequence = 0
  const typed = (data: { readonly type: string } & Record<string, unknown>) =>
    event({ ...data, sequence_number: sequence++ }, data.type)
  const frames: Array<string> = []
  const response = (status: string) => ({
    id: "resp_1",
    object: "response",
    created_at: 1,
    status,
    model: "m",
    output: [],
    ...(answer.stop === undefined ? {} : { incomplete_details: { reason: answer.stop } }),
    usage:
      status === "in_progress"
        ? null
        : {
            input_tokens: usage.input,
            output_tokens: usage.output,
            total_tokens: usage.input + usage.output,
            input_tokens_details: { cached_tokens: usage.cacheRead },
            output_tokens_details: { reasoning_tokens: usage.reasoning },
          },
  })
  let output_index = 0
  frames.push(typed({ type: "response.created", response: response("in_progress") }))
  if (answer.thinking !== undefined) {
    const id = "rs_1"
    const at = { item_id: id, output_index, summary_index: 0 }
    frames.push(
      typed({ type: "response.output_item.added", output_index, item: { id, type: "reasoning", summary: [] } }),
      typed({ type: "response.reasoning_summary_part.added", ...at, part: { type: "summary_text", text: "" } }),
      ...thinkingOf(answer).map((delta) => typed({ type: "response.reasoning_summary_text.delta", ...at, delta })),
      typed({
        type: "response.reasoning_summary_part.done",
        ...at,
        part: { type: "summary_text", text: answer.thinking },
      }),
      typed({
        type: "response.output_item.done",
        output_index: output_index++,
        item: {
          id,
          type: "reasoning",
          summary: [{ type: "summary_text", text: answer.thinking }],
          encrypted_content: answer.signature ?? "enc",
        },
      }),
    )
  }
  if (answer.text !== undefined) {
    const id = "msg_1"
    const at = { item_id: id, output_index, content_index: 0 }
    const item = { id, type: "message", role: "assistant" }
    frames.push(
      typed({
        type: "response.output_item.added",
        output_index,
        item: { ...item, status: "in_progress", content: [] },
      }),
      typed({ type: "response.content_part.added", ...at, part: { type: "output_text", text: "", annotations: [] } }),
      ...textOf(answer).map((delta) => typed({ type: "response.output_text.delta", ...at, delta })),
      typed({ type: "response.output_text.done", ...at, text: answer.text }),
      typed({
        type: "response.output_item.done",
        output_index: output_index++,
        item: { ...item, status: "completed", content: [{ type: "output_text", text: answer.text, annotations: [] }] },
      }),
    )
  }
  for (const { id: call_id, name, args } of calls(answer)) {
    const id = `fc_${call_id}`
    const whole = argumentsOf(args).join("")
    const item = { id, type: "function_call", call_id, name }
    frames.push(
      typed({
        type: "response.output_item.added",
        output_index,
        item: { ...item, arguments: "", status: "in_progress" },
      }),
      ...argumentsOf(args).map((delta) =>
        typed({ type: "response.function_call_arguments.delta", item_id: id, output_index, delta }),
      ),
      typed({ type: "response.function_call_arguments.done", item_id: id, output_index, arguments: whole }),
      typed({
        type: "response.output_item.done",
        output_index: output_index++,
        item: { ...item, arguments: whole, status: "completed" },
      }),
    )
  }
  const end = answer.stop === undefined ? "completed" : "incomplete"
  frames.push(typed({ type: `response.${end}`, response: response(end) }))
  return frames
}

/** The events of an answer in one service's format. */
export const wireFrames: Readonly<Record<WireKind, (answer: WireAnswer) => ReadonlyArray<string>>> = {
  chat,
  responses,
  anthropic,
  gemini,
}

/** An error body as the service writes it. */
export const wireError = (kind: WireKind, status: number, message: string, type = "invalid_request_error"): string => {
  if (kind === "gemini") return JSON.stringify({ error: { code: status, message, status: "INVALID_ARGUMENT" } })
  if (kind === "anthropic") return JSON.stringify({ type: "error", error: { type, message } })
  return JSON.stringify({ error: { message, type, param: null, code: null } })
}
