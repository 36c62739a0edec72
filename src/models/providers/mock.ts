/**
 * The echo model, for tests: `mock/echo` repeats the last user text. It answers to its full name only, is never listed and never
 * becomes a default.
 */
import { Effect, Stream } from "effect"
import { text, textOf } from "../../domain/message.ts"
import type { ModelProvider } from "../model.ts"
import { estimateUsage, lastUser } from "./script-view.ts"
import { unlisted } from "./unlisted.ts"

const names = unlisted("mock", { thinking: false })

/** Echoes the last user text as `You said: …`. */
export const mockProvider: ModelProvider = {
  ...names,
  variables: [],
  configured: Effect.succeed(true),
  defaultModel: "mock/echo",
  models: Effect.succeed([names.info("mock/echo")]),
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
