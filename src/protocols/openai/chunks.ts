/**
 * The objects of Chat Completions on the wire, as far as this gateway sends them. Pure.
 */
import type { StopReason } from "../../domain/message.ts"
import type { Usage } from "../../domain/usage.ts"

export type FinishReason = "stop" | "length" | "content_filter" | "error"

export interface ChatUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
  readonly completion_tokens_details: { readonly reasoning_tokens: number }
}

export interface ChatDelta {
  readonly role?: "assistant"
  readonly content?: string
  readonly reasoning_content?: string
}

export interface ChatChunk {
  readonly id: string
  readonly object: "chat.completion.chunk"
  /** Seconds since the epoch. */
  readonly created: number
  readonly model: string
  readonly choices: ReadonlyArray<{
    readonly index: 0
    readonly delta: ChatDelta
    readonly finish_reason: FinishReason | null
  }>
  readonly usage?: ChatUsage | null
}

export interface ChatCompletion {
  readonly id: string
  readonly object: "chat.completion"
  readonly created: number
  readonly model: string
  readonly choices: ReadonlyArray<{
    readonly index: 0
    readonly message: {
      readonly role: "assistant"
      readonly content: string
      readonly reasoning_content?: string
      readonly refusal: null
    }
    readonly finish_reason: FinishReason
    readonly logprobs: null
  }>
  readonly usage: ChatUsage
}

export const finishReasonOf = (reason: StopReason): FinishReason => {
  switch (reason) {
    case "length":
    case "content_filter":
    case "error":
      return reason
    default:
      return "stop"
  }
}

export const chatUsage = ({ cacheRead, input, output, reasoning }: Usage): ChatUsage => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cacheRead },
  completion_tokens_details: { reasoning_tokens: reasoning },
})
