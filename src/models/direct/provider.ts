/**
 * The provider of direct calls (`domain/direct-call.ts`): its answer to inputs is the calls that they carry, and to everything else, the
 * results of those calls among it, nothing. No service is asked and no token is counted. It answers to its full name only.
 */
import { Effect, Stream } from "effect"
import { directCallOf, directModel } from "../../domain/direct-call.ts"
import type { Message, ToolCallPart } from "../../domain/message.ts"
import { noUsage } from "../../domain/usage.ts"
import type { ModelInfo, ModelPart, ModelProvider } from "../model.ts"
import { unlisted } from "../providers/unlisted.ts"

const names = unlisted("direct", { thinking: false })

/** The calls that the inputs since the last response carry, in order. */
const callsDue = (messages: ReadonlyArray<Message>): ReadonlyArray<ToolCallPart> => {
  const since = messages.findLastIndex((message) => message.role === "assistant")
  return messages
    .slice(since + 1)
    .flatMap((message) => (message.role === "user" ? message.content : []))
    .flatMap((part) => directCallOf(part) ?? [])
}

const finish = (messages: ReadonlyArray<Message>): ModelPart => {
  const content = callsDue(messages)
  return { type: "finish", content, stopReason: content.length > 0 ? "tool_calls" : "stop", usage: noUsage }
}

/** Nothing chooses another model in its place, and its context is never too long: it looks at the newest input alone. */
const info = (model: string): ModelInfo => ({ ...names.info(model), contextWindow: null, fixed: true })

export const directProvider: ModelProvider = {
  ...names,
  info,
  handles: (model) => model === directModel,
  variables: [],
  configured: Effect.succeed(true),
  defaultModel: directModel,
  models: Effect.succeed([info(directModel)]),
  stream: ({ messages }) => Stream.make(finish(messages)),
  respond: ({ messages }, sink) => sink([finish(messages)]),
}
