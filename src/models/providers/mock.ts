/**
 * The echo model, for tests: `mock/echo` repeats the last user text. It answers to its full name only, is never listed and never
 * becomes a default.
 */
import { Effect, Stream } from "effect"
import { text, textOf } from "../../domain/message.ts"
import type { ModelInfo, ModelProvider } from "../model.ts"
import { estimateUsage, lastUser } from "./script-view.ts"

const prefix = "mock/"

const info = (model: string): ModelInfo => ({
  id: model.startsWith(prefix) ? model : prefix + model,
  provider: "mock",
  name: model.startsWith(prefix) ? model.slice(prefix.length) : model,
  contextWindow: 200_000,
  images: true,
  thinking: false,
  isDefault: false,
})

/** Echoes the last user text as `You said: …`. */
export const mockProvider: ModelProvider = {
  id: "mock",
  onlyByName: true,
  handles: (model) => model.startsWith(prefix) && model.length > prefix.length,
  wireName: (model) => info(model).name,
  variables: [],
  configured: Effect.succeed(true),
  defaultModel: "mock/echo",
  models: Effect.succeed([info("mock/echo")]),
  info,
  stream: (request) => {
    const user = lastUser(request.messages)
    const answer = `You said: ${user === null ? "" : textOf(user.message.content)}`
    return Stream.fromIterable([
      { type: "text", delta: answer } as const,
      {
        type: "finish",
        content: [text(answer)],
        stopReason: "stop",
        usage: estimateUsage(request.messages, answer.length),
      } as const,
    ])
  },
}
