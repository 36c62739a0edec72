/**
 * How the provider tests ask a model at the stand-in: one target per wire format, with keys that must never show up anywhere.
 */
import { Chunk, Effect, Stream } from "effect"
import type { Message } from "../../src/domain/message.ts"
import type { ModelPart, ModelRequest, ModelsService } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import type { ModelSettings } from "../../src/models/settings.ts"
import type { WireKind } from "./wire-formats.ts"

/** The key of every provider in these tests. */
export const secret = "sk-secret-0123456789"

/** A model name whose requests use each format. */
export const modelOf: Readonly<Record<WireKind, string>> = {
  chat: "local-model",
  responses: "gpt-6-astra",
  anthropic: "claude-sonnet-4-5",
  gemini: "gemini-3-flash-preview",
}

export const kinds = Object.keys(modelOf) as ReadonlyArray<WireKind>

/** All providers pointed at one server. */
export const modelsAt = (url: string, settings: ModelSettings = {}): ModelsService =>
  makeModels({
    env: {
      GEMINI_API_KEY: secret,
      ANTHROPIC_API_KEY: secret,
      OPENAI_API_KEY: secret,
      SUPER_PI_OPENAI_BASE_URL: `${url}/v1`,
      SUPER_PI_OPENAI_MODEL: "local-model",
      SUPER_PI_ANTHROPIC_BASE_URL: url,
      SUPER_PI_GEMINI_BASE_URL: `${url}/v1beta`,
    },
    settings,
  })

export const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })

export const hello: ReadonlyArray<Message> = [user("hello")]

/** All parts of one response. */
export const collect = (models: ModelsService, request: ModelRequest) =>
  Effect.map(Stream.runCollect(models.stream(request)), Chunk.toReadonlyArray)

/** The last part, which must be `finish`. */
export const finishOf = (parts: ReadonlyArray<ModelPart>) => {
  const last = parts.at(-1)
  if (last?.type !== "finish") throw new Error(`expected finish, got ${last?.type}`)
  return last
}
