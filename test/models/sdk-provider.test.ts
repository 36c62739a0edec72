/**
 * Any provider package plugs in: a service of one's own with one call, loaded at its first request.
 */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Models } from "../../src/models/model.ts"
import { type AiSdkSetup, aiSdkProvider } from "../../src/models/sdk/provider.ts"
import { makeModels } from "../../src/models/service.ts"
import { collect, finishOf, hello } from "./ask.ts"
import { type StandIn, startStandIn } from "./stand-in.ts"
import { wireFrames } from "./wire-formats.ts"

let server: StandIn
beforeAll(async () => {
  server = await startStandIn((seen) => ({ frames: wireFrames[seen.kind]({ text: "hi there" }) }))
})
afterAll(() => server.close())

const create = async (setup: AiSdkSetup, name: string) =>
  (await import("@ai-sdk/openai-compatible"))
    .createOpenAICompatible({ ...setup, baseURL: `${server.url}/own`, name: "own" })
    .languageModel(name)

describe("a provider made of a package", () => {
  it.live("answers under its own prefix, with its key", () =>
    Effect.gen(function* () {
      const models = yield* Models
      expect(yield* models.defaultModel).toBe("own/large")
      const parts = yield* collect(models, { model: "own/large", messages: hello })
      expect(finishOf(parts).content).toEqual([{ type: "text", text: "hi there" }])
      expect(server.requests[0]).toMatchObject({ path: "/own/chat/completions", body: { model: "large" } })
      expect(server.requests[0]?.headers.authorization).toBe("Bearer own-key-1")
      expect((yield* models.list).map(({ id }) => id)).toEqual(["own/large", "own/small"])
    }).pipe(
      Effect.provide(
        Models.layer({
          env: {},
          providers: [
            aiSdkProvider({
              id: "own",
              variables: ["OWN_KEY"],
              apiKey: "own-key-1",
              models: ["large", "small"],
              create,
            }),
          ],
        }),
      ),
    ),
  )

  it.live("is loaded at the first request, once per model, and again after a failed load", () =>
    Effect.gen(function* () {
      const loads: Array<string> = []
      const models = makeModels({
        env: {},
        providers: [
          aiSdkProvider({
            id: "own",
            variables: ["OWN_KEY"],
            apiKey: "own-key-1",
            models: ["a", "b"],
            create: (setup, name) => {
              loads.push(name)
              return loads.length === 1 ? Promise.reject(new Error("no such package")) : create(setup, name)
            },
          }),
        ],
      })
      yield* models.list
      yield* models.resolve("own/a")
      expect(loads).toEqual([])
      const error = yield* Effect.flip(collect(models, { model: "own/a", messages: hello }))
      expect(error).toMatchObject({ _tag: "ModelRejected", detail: "no such package" })
      yield* collect(models, { model: "own/a", messages: hello })
      yield* collect(models, { model: "own/a", messages: hello })
      yield* collect(models, { model: "own/b", messages: hello })
      expect(loads).toEqual(["a", "a", "b"])
    }),
  )

  it.effect("without a key is not configured", () =>
    Effect.gen(function* () {
      const provider = aiSdkProvider({ id: "own", variables: ["OWN_KEY"], models: ["a"], create })
      const error = yield* Effect.flip(makeModels({ env: {}, providers: [provider] }).resolve("own/a"))
      expect(error.message).toContain("set OWN_KEY")
    }),
  )
})
