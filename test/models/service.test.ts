/**
 * Which provider serves a name, which model is the default, and what a wrong or unconfigured name gets.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { type Env, ModelSettings } from "../../src/models/settings.ts"

const keys: Env = { GEMINI_API_KEY: "g-key-1", ANTHROPIC_API_KEY: "a-key-1", OPENAI_API_KEY: "o-key-1" }

const resolved = (name: string, env: Env = keys, settings: ModelSettings = {}) =>
  Effect.map(makeModels({ env, settings }).resolve(name), ({ id }) => id)

describe("resolving a name", () => {
  it.effect("finds the provider by family or by prefix, and its own answer resolves to itself", () =>
    Effect.gen(function* () {
      const expected = {
        "gemini-2.5-pro": "google/gemini-2.5-pro",
        "google/gemma-3": "google/gemma-3",
        "claude-opus-4-5": "anthropic/claude-opus-4-5",
        "anthropic/next": "anthropic/next",
        "gpt-6-sol": "openai/gpt-6-sol",
        "o1-pro": "openai/o1-pro",
        o3: "openai/o3",
        "o4-mini": "openai/o4-mini",
        "openai/meta-llama/Llama-3": "openai/meta-llama/Llama-3",
        "mock/echo": "mock/echo",
      }
      for (const [name, id] of Object.entries(expected)) {
        expect(yield* resolved(name)).toBe(id)
        expect(yield* resolved(id)).toBe(id)
      }
    }),
  )

  it.effect("serves the names that environment and settings give to OpenAI", () =>
    Effect.gen(function* () {
      expect(yield* resolved("llama3", { ...keys, SUPER_PI_OPENAI_MODEL: "llama3" })).toBe("openai/llama3")
      expect(yield* resolved("astra-latest", keys, { openaiModels: ["astra-latest"] })).toBe("openai/astra-latest")
      expect(yield* resolved("alias", keys, { openaiResponsesModels: ["alias"] })).toBe("openai/alias")
    }),
  )

  it.effect("names the nearest models when nobody serves the name", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(resolved("cluade-sonet-4-5"))
      expect(error).toMatchObject({ _tag: "ModelNotFound", model: "cluade-sonet-4-5" })
      expect(error._tag === "ModelNotFound" ? error.known[0] : "").toBe("anthropic/claude-sonnet-4-5")
      expect(error.message).toContain("served by no provider; known: anthropic/claude-sonnet-4-5")
      for (const name of ["", "/", "openai/", "google/", "mock/", "llama3"]) {
        expect(yield* Effect.flip(resolved(name))).toMatchObject({ _tag: "ModelNotFound" })
      }
    }),
  )

  it.effect("names the variables when the provider has no key, and never falls back to another", () =>
    Effect.gen(function* () {
      const env = { GEMINI_API_KEY: "g-key-1", ANTHROPIC_API_KEY: "  " }
      const claude = yield* Effect.flip(resolved("claude-sonnet-4-5", env))
      expect(claude).toMatchObject({ _tag: "ProviderNotConfigured", provider: "anthropic" })
      expect(claude.message).toContain("set ANTHROPIC_API_KEY")
      const gpt = yield* Effect.flip(resolved("gpt-6-sol", env))
      expect(gpt.message).toContain("set OPENAI_API_KEY or SUPER_PI_OPENAI_AUTH_COMMAND")
      const models = makeModels({ env })
      const streamed = yield* Effect.flip(Stream.runDrain(models.stream({ model: "gpt-6-sol", messages: [] })))
      expect(streamed).toMatchObject({ _tag: "ProviderNotConfigured" })
    }),
  )
})

describe("the default model", () => {
  const byDefault = (options: Parameters<typeof makeModels>[0]) => makeModels(options).defaultModel

  it.effect("is the flag, then SUPER_PI_DEFAULT_MODEL, then the settings, then the configured provider's own", () =>
    Effect.gen(function* () {
      const settings = { defaultModel: "gpt-6-sol" }
      const env = { ...keys, SUPER_PI_DEFAULT_MODEL: "claude-opus-4-5" }
      expect(yield* byDefault({ env, settings, model: "o3" })).toBe("o3")
      expect(yield* byDefault({ env, settings })).toBe("claude-opus-4-5")
      expect(yield* byDefault({ env: keys, settings })).toBe("gpt-6-sol")
      expect(yield* byDefault({ env: keys })).toBe("google/gemini-3-flash-preview")
      expect(yield* byDefault({ env: { ANTHROPIC_API_KEY: "a-key-1" } })).toBe("anthropic/claude-sonnet-4-5")
      expect(yield* byDefault({ env: { OPENAI_API_KEY: "k", SUPER_PI_OPENAI_MODEL: "llama3" } })).toBe("openai/llama3")
      expect(yield* byDefault({ env: { SUPER_PI_OPENAI_AUTH_COMMAND: "/bin/token" } })).toBe("openai/gpt-6-sol")
    }),
  )

  it.effect("is an error that names every variable when nothing is configured", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(byDefault({ env: { SUPER_PI_SCRIPT: "x.json" } }))
      expect(error).toMatchObject({ _tag: "ProviderNotConfigured" })
      expect(error.message).toBe(
        "no model provider is configured: set GEMINI_API_KEY or ANTHROPIC_API_KEY or OPENAI_API_KEY or SUPER_PI_OPENAI_AUTH_COMMAND",
      )
    }),
  )
})

describe("the list", () => {
  it.effect("holds the models of configured providers and marks the default", () =>
    Effect.gen(function* () {
      const models = yield* Models
      const list = yield* models.list
      expect([...new Set(list.map(({ provider }) => provider))]).toEqual(["anthropic", "openai"])
      expect(list.filter(({ isDefault }) => isDefault).map(({ id }) => id)).toEqual(["openai/o3"])
    }).pipe(
      Effect.provide(
        Models.layer({
          env: { ANTHROPIC_API_KEY: "a-key-1", OPENAI_API_KEY: "o-key-1" },
          settings: { openaiModels: ["o3", "gpt-6-sol"] },
          model: "o3",
        }),
      ),
    ),
  )

  it.effect("takes lists and facts from the settings", () =>
    Effect.gen(function* () {
      const models = makeModels({
        env: keys,
        settings: {
          geminiModels: ["gemini-9"],
          anthropicModels: [],
          openaiModels: ["local"],
          overrides: { "openai/local": { contextWindow: 4_096, images: true, thinking: true } },
        },
      })
      expect((yield* models.list).map(({ id }) => id)).toEqual(["google/gemini-9", "openai/local"])
      expect(yield* models.resolve("openai/local")).toMatchObject({
        contextWindow: 4_096,
        images: true,
        thinking: true,
      })
    }),
  )
})

describe("settings", () => {
  it("decode with every field absent, and say where a wrong one is", () => {
    const decode = Schema.decodeUnknownEither(ModelSettings)
    expect(decode({})._tag).toBe("Right")
    expect(String(decode({ openaiAuthTimeoutMs: -1 }))).toContain("openaiAuthTimeoutMs")
    expect(String(decode({ openaiModels: [""] }))).toContain("openaiModels")
  })
})

describe("an own provider", () => {
  it.effect("is asked before the built-in ones", () =>
    Effect.gen(function* () {
      const [mock] = makeModels({ env: {} }).providers
      if (mock === undefined) throw new Error("no provider")
      const own = { ...mock, id: "own", handles: (name: string) => name === "gpt-6-sol" }
      const models = makeModels({ env: keys, providers: [own] })
      expect((yield* models.resolve("gpt-6-sol")).provider).toBe("mock")
      expect((yield* models.resolve("gpt-6-luna")).provider).toBe("openai")
    }),
  )
})
