/**
 * The objects of the Responses API on the wire, as far as this gateway sends them. Calls of tools are shown as `mcp_call`, the form for calls
 * that the server makes itself: a client shows them and runs nothing. Pure.
 */
import type { ConversationId } from "../../domain/ids.ts"
import type { JsonObject } from "../../domain/json.ts"
import type { Usage } from "../../domain/usage.ts"
import type { End } from "./said.ts"

export interface OutputText {
  readonly type: "output_text"
  readonly text: string
  readonly annotations: ReadonlyArray<never>
  readonly logprobs: ReadonlyArray<never>
}

export interface MessageItem {
  readonly id: string
  readonly type: "message"
  readonly role: "assistant"
  readonly status: "in_progress" | "completed" | "incomplete"
  readonly content: ReadonlyArray<OutputText>
}

export interface ReasoningItem {
  readonly id: string
  readonly type: "reasoning"
  readonly summary: ReadonlyArray<{ readonly type: "summary_text"; readonly text: string }>
}

export interface CallItem {
  readonly id: string
  readonly type: "mcp_call"
  readonly server_label: "super-pi"
  readonly name: string
  /** JSON. */
  readonly arguments: string
  readonly status: "in_progress" | "completed" | "failed"
  readonly output: string | null
  readonly error: string | null
}

export type OutputItem = MessageItem | ReasoningItem | CallItem

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled"

/** What a response says of its request. */
export interface ResponseBase {
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  readonly model: string
  readonly conversation: ConversationId
  readonly previous: string | null
  readonly instructions: string | null
  readonly metadata: JsonObject
  readonly format: JsonObject
  readonly background: boolean
}

export interface ResponseObject {
  readonly id: string
  readonly object: "response"
  readonly created_at: number
  readonly status: ResponseStatus
  readonly error: { readonly code: string; readonly message: string } | null
  readonly incomplete_details: { readonly reason: "max_output_tokens" | "content_filter" } | null
  readonly output: ReadonlyArray<OutputItem>
  readonly usage: object | null
  readonly [field: string]: unknown
}

const usageObject = ({ cacheRead, input, output, reasoning }: Usage) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cacheRead },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
})

const endedAs = (end: End): ResponseStatus => {
  if (end.type === "failed") return end.code === "cancelled" ? "cancelled" : "failed"
  return end.stopReason === "length" || end.stopReason === "content_filter" ? "incomplete" : "completed"
}

/** `end` is null while it runs, with the status it has then. */
export const responseObject = (
  base: ResponseBase,
  output: ReadonlyArray<OutputItem>,
  end: End | null,
  running: "queued" | "in_progress" = "in_progress",
): ResponseObject => ({
  id: base.id,
  object: "response",
  created_at: base.created,
  status: end === null ? running : endedAs(end),
  background: base.background,
  conversation: { id: `conv_${base.conversation}` },
  error: end?.type === "failed" ? { code: end.code, message: end.message } : null,
  incomplete_details:
    end?.type === "answered" && end.stopReason === "length"
      ? { reason: "max_output_tokens" }
      : end?.type === "answered" && end.stopReason === "content_filter"
        ? { reason: "content_filter" }
        : null,
  instructions: base.instructions,
  max_output_tokens: null,
  metadata: base.metadata,
  model: base.model,
  output,
  parallel_tool_calls: true,
  previous_response_id: base.previous,
  reasoning: { effort: null, summary: null },
  store: true,
  temperature: null,
  text: { format: base.format },
  tool_choice: "auto",
  tools: [],
  top_p: null,
  truncation: "disabled",
  usage: end === null ? null : usageObject(end.usage),
})
