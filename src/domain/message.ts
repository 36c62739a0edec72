/**
 * Provider-neutral model messages. Entries store them; the ten context rules order them; a provider
 * adapter turns them into its own wire format.
 */
import { Schema } from "effect"
import { Json, JsonObject } from "./json.ts"
import { Usage } from "./usage.ts"

/** Text. `meta` is provider metadata that is sent back verbatim, only to the model that wrote the text. */
export const TextPart = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  meta: Schema.optional(JsonObject),
})
export type TextPart = typeof TextPart.Type

/** An image: base64 `data` (no data-URL prefix) of the given media type, for example `image/png`. */
export const ImagePart = Schema.Struct({
  type: Schema.Literal("image"),
  mediaType: Schema.String,
  data: Schema.String,
})
export type ImagePart = typeof ImagePart.Type

/**
 * Model thinking. `signature` and `redacted` are opaque to everyone but the model that wrote them and are sent back
 * only to that model (the message's `model`).
 */
export const ThinkingPart = Schema.Struct({
  type: Schema.Literal("thinking"),
  text: Schema.String,
  signature: Schema.optional(Schema.String),
  redacted: Schema.optional(Schema.String),
  /** Provider metadata that must be echoed verbatim to the same model (AI SDK `providerMetadata`). */
  meta: Schema.optional(JsonObject),
})
export type ThinkingPart = typeof ThinkingPart.Type

/** A tool call. `id` is unique within a conversation; `arguments` is the parsed object. */
export const ToolCallPart = Schema.Struct({
  type: Schema.Literal("toolCall"),
  id: Schema.String,
  name: Schema.String,
  arguments: JsonObject,
  meta: Schema.optional(JsonObject),
})
export type ToolCallPart = typeof ToolCallPart.Type

export const AssistantPart = Schema.Union(TextPart, ThinkingPart, ToolCallPart)
export type AssistantPart = typeof AssistantPart.Type

export const UserPart = Schema.Union(TextPart, ImagePart)
export type UserPart = typeof UserPart.Type

/** A tool as the model sees it; `parameters` is a JSON Schema object. */
export const ToolSpec = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: JsonObject,
})
export type ToolSpec = typeof ToolSpec.Type

/**
 * A positional change of the prompt: named sections set (text) or removed (null), tools added or removed by name.
 * The first one of a context gives the whole prompt; later ones only what changed.
 */
export const SystemMessage = Schema.Struct({
  role: Schema.Literal("system"),
  sections: Schema.Array(Schema.Struct({ name: Schema.String, text: Schema.NullOr(Schema.String) })),
  addTools: Schema.Array(ToolSpec),
  removeTools: Schema.Array(Schema.String),
})
export type SystemMessage = typeof SystemMessage.Type

export const UserMessage = Schema.Struct({ role: Schema.Literal("user"), content: Schema.Array(UserPart) })
export type UserMessage = typeof UserMessage.Type

/**
 * Why a model response ended. `aborted` (cancelled or cut off), `error` (the provider failed) and `deferred` never
 * reach a model again (context rule 9).
 */
export const StopReason = Schema.Literal(
  "stop",
  "length",
  "tool_calls",
  "content_filter",
  "aborted",
  "error",
  "deferred",
)
export type StopReason = typeof StopReason.Type

export const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Schema.Array(AssistantPart),
  /** `provider/model` that wrote it, for example `anthropic/claude-sonnet-4-5`. */
  model: Schema.String,
  stopReason: StopReason,
  usage: Schema.optional(Usage),
  error: Schema.optional(Schema.String),
})
export type AssistantMessage = typeof AssistantMessage.Type

/** The result of one tool call, as the model sees it. */
export const ToolResultMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  callId: Schema.String,
  toolName: Schema.String,
  content: Schema.Array(UserPart),
  isError: Schema.Boolean,
  details: Schema.optional(Json),
})
export type ToolResultMessage = typeof ToolResultMessage.Type

export const Message = Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolResultMessage)
export type Message = typeof Message.Type

/** A text part. */
export const text = (value: string): TextPart => ({ type: "text", text: value })

/** The concatenated text parts of a message's content, without thinking, images and calls. */
export const textOf = (content: ReadonlyArray<AssistantPart | UserPart>): string => {
  let out = ""
  for (const part of content) if (part.type === "text") out += part.text
  return out
}

/** The tool calls of an assistant message, in call order. */
export const toolCallsOf = (message: AssistantMessage): ReadonlyArray<ToolCallPart> =>
  message.content.filter((part): part is ToolCallPart => part.type === "toolCall")
