/**
 * The echo model and the scripted model.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Effect, Either, Fiber, Stream, TestClock } from "effect"
import type { AssistantMessage, Message } from "../../src/domain/message.ts"
import { type ModelError, type ModelPart, Models } from "../../src/models/model.ts"
import type { Script } from "../../src/models/providers/script-file.ts"

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })

const ask = (messages: ReadonlyArray<Message>, model = "script/test") =>
  Effect.flatMap(Models, (models) => Stream.runCollect(models.stream({ model, messages }))).pipe(
    Effect.map(Chunk.toReadonlyArray),
  )

const answerOf = (parts: ReadonlyArray<ModelPart>) => {
  const last = parts.at(-1)
  if (last?.type !== "finish") throw new Error("no finish part")
  return last
}

const assistant = (parts: ReadonlyArray<ModelPart>): AssistantMessage => ({
  role: "assistant",
  content: answerOf(parts).content,
  model: "script/test",
  stopReason: answerOf(parts).stopReason,
})

const results = (message: AssistantMessage): ReadonlyArray<Message> =>
  message.content.flatMap((part) =>
    part.type !== "toolCall"
      ? []
      : [
          {
            role: "tool",
            callId: part.id,
            toolName: part.name,
            content: [{ type: "text", text: "ok" }],
            isError: false,
          },
        ],
  )

const withScript = (script: Script) => Models.layer({ env: {}, script })

const failure = (error: Either.Either<unknown, ModelError>) => {
  if (Either.isRight(error)) throw new Error("expected a failure")
  return error.left
}

describe("mock/echo", () => {
  it.effect("repeats the last user text", () =>
    Effect.gen(function* () {
      const parts = yield* ask([user("first"), user("hello")], "mock/echo")
      expect(answerOf(parts)).toMatchObject({
        content: [{ type: "text", text: "You said: hello" }],
        stopReason: "stop",
      })
    }).pipe(Effect.provide(Models.layer({ env: {} }))),
  )

  it.effect("is never listed and never a default", () =>
    Effect.gen(function* () {
      const models = yield* Models
      expect((yield* models.list).filter(({ provider }) => provider === "mock" || provider === "script")).toEqual([])
      expect(yield* Effect.flip(models.defaultModel)).toMatchObject({ _tag: "ProviderNotConfigured" })
      expect(yield* Effect.flip(models.resolve("echo"))).toMatchObject({ _tag: "ModelNotFound" })
    }).pipe(Effect.provide(Models.layer({ env: { SUPER_PI_SCRIPT: "/nowhere.json" } }))),
  )
})

describe("script/*", () => {
  const script: Script = {
    rules: [
      {
        match: "^work",
        steps: [
          {
            thinking: "let me see",
            text: "Reading…",
            tools: [
              { name: "read", args: { path: "a.txt" } },
              { name: "ls", args: {} },
            ],
          },
          { text: "Done 🎉" },
        ],
      },
      { match: "", steps: [{ text: "hi", usage: [7, 3] }] },
    ],
  }

  it.effect("takes the step from the assistant turns after the last user message", () =>
    Effect.gen(function* () {
      const history: Array<Message> = [user("work")]
      const first = yield* ask(history)
      expect(answerOf(first).stopReason).toBe("tool_calls")
      expect(answerOf(first).content.map(({ type }) => type)).toEqual(["thinking", "text", "toolCall", "toolCall"])
      expect(yield* ask(history)).toEqual(first)
      history.push(assistant(first), ...results(assistant(first)))
      const second = yield* ask(history)
      expect(answerOf(second).content).toEqual([{ type: "text", text: "Done 🎉" }])
      history.push(assistant(second), user("anything else"))
      expect(answerOf(yield* ask(history)).usage).toMatchObject({ input: 7, output: 3 })
    }).pipe(Effect.provide(withScript(script))),
  )

  it.effect("streams deltas that add up to the content", () =>
    Effect.gen(function* () {
      const parts = yield* ask([user("work")])
      const joined = (type: "text" | "thinking") =>
        parts.flatMap((part) => (part.type === type ? [part.delta] : [])).join("")
      expect(joined("text")).toBe("Reading…")
      expect(joined("thinking")).toBe("let me see")
      const args = parts.flatMap((part) => (part.type === "toolCallDelta" && part.name === "read" ? [part.delta] : []))
      expect(JSON.parse(args.join(""))).toEqual({ path: "a.txt" })
    }).pipe(Effect.provide(withScript(script))),
  )

  it.effect("gives every call of a conversation an id of its own", () =>
    Effect.gen(function* () {
      const history: Array<Message> = []
      const ids: Array<string> = []
      for (let turn = 0; turn < 4; turn++) {
        history.push(user("work again"))
        const message = assistant(yield* ask(history))
        history.push(message, ...results(message))
        ids.push(...message.content.flatMap((part) => (part.type === "toolCall" ? [part.id] : [])))
      }
      expect(ids).toHaveLength(8)
      expect(new Set(ids).size).toBe(8)
    }).pipe(Effect.provide(withScript(script))),
  )

  it.effect("fails as often as the script says, then answers", () =>
    Effect.gen(function* () {
      const once = Effect.either(ask([user("go")]))
      expect(failure(yield* once)).toMatchObject({ _tag: "ModelTransient", status: 429, retryAfterMs: 1_000 })
      expect(failure(yield* once)).toMatchObject({ _tag: "ModelTransient", reason: "rate_limited" })
      expect(failure(yield* once)).toMatchObject({ _tag: "ModelTransient", reason: "overloaded", status: 529 })
      expect(Either.isRight(yield* once)).toBe(true)
      expect(Either.isRight(yield* once)).toBe(true)
    }).pipe(
      Effect.provide(
        withScript({
          rules: [
            {
              match: "",
              steps: [
                { status: 429, retryAfter: 1, times: 2 },
                { status: 529, times: 1, text: "ok" },
              ],
            },
          ],
        }),
      ),
    ),
  )

  it.effect("maps a status that does not pass to a rejection, and overflow to its own error", () =>
    Effect.gen(function* () {
      expect(failure(yield* Effect.either(ask([user("bad")])))).toMatchObject({ _tag: "ModelRejected", status: 400 })
      expect(failure(yield* Effect.either(ask([user("long")])))).toMatchObject({ _tag: "ContextOverflow" })
      expect(failure(yield* Effect.either(ask([user("other")])))).toMatchObject({ _tag: "ModelRejected", status: null })
    }).pipe(
      Effect.provide(
        withScript({
          rules: [
            { match: "bad", steps: [{ status: 400 }] },
            { match: "long", steps: [{ overflow: true }] },
          ],
        }),
      ),
    ),
  )

  it.effect("breaks the stream after the text of a cut", () =>
    Effect.gen(function* () {
      const models = yield* Models
      const seen: Array<string> = []
      const end = yield* models.stream({ model: "script/x", messages: [user("go")] }).pipe(
        Stream.runForEach((part) => Effect.sync(() => (part.type === "text" ? seen.push(part.delta) : 0))),
        Effect.either,
      )
      expect(seen.join("")).toBe("half an ans")
      expect(failure(end)).toMatchObject({ _tag: "ModelTransient", reason: "network" })
      expect(Either.isRight(yield* Effect.either(ask([user("go")])))).toBe(true)
    }).pipe(
      Effect.provide(
        withScript({
          rules: [{ match: "", steps: [{ cut: true, text: "half an ans", times: 1 }, { text: "whole" }] }],
        }),
      ),
    ),
  )

  it.effect("hangs until it is interrupted", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(ask([user("go")]))
      yield* TestClock.adjust("1 hour")
      expect(fiber.unsafePoll()).toBeNull()
      expect((yield* Fiber.interrupt(fiber))._tag).toBe("Failure")
    }).pipe(Effect.provide(withScript({ rules: [{ match: "", steps: [{ hang: true }] }] }))),
  )

  it.effect("waits delayMs before the first part and chunkMs between parts", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(ask([user("go")]))
      yield* TestClock.adjust(100 + 3 * 10 - 1)
      expect(fiber.unsafePoll()).toBeNull()
      yield* TestClock.adjust(1)
      expect(answerOf(yield* Fiber.join(fiber)).content).toEqual([{ type: "text", text: "abcd" }])
    }).pipe(
      Effect.provide(withScript({ chunkMs: 10, rules: [{ match: "", steps: [{ text: "abcd", delayMs: 100 }] }] })),
    ),
  )

  it.effect("says what is wrong with a missing, broken or wrong script file", () =>
    Effect.gen(function* () {
      const dir = yield* Effect.promise(() => mkdtemp(join(tmpdir(), "script-test-")))
      yield* Effect.addFinalizer(() => Effect.promise(() => rm(dir, { recursive: true })))
      const tryFile = (body: string | null) =>
        Effect.gen(function* () {
          const file = join(dir, "script.json")
          if (body !== null) yield* Effect.promise(() => writeFile(file, body))
          return failure(
            yield* Effect.either(
              ask([user("x")]).pipe(Effect.provide(Models.layer({ env: { SUPER_PI_SCRIPT: file } }))),
            ),
          ).message
        })
      expect(yield* tryFile(null)).toMatch(/SUPER_PI_SCRIPT: cannot read .*ENOENT/)
      expect(yield* tryFile("{")).toMatch(/SUPER_PI_SCRIPT: .*expected JSON/)
      expect(yield* tryFile('{"rules":[{"match":"(","steps":[{"text":"x"}]}]}')).toMatch(/rules\.0\.match/)
      expect(yield* tryFile('{"rules":[{"match":"","steps":[{"txet":"x"}]}]}')).toMatch(/rules\.0\.steps\.0\.txet/)
    }).pipe(Effect.scoped),
  )

  it.effect("is not configured without a script", () =>
    Effect.gen(function* () {
      expect(failure(yield* Effect.either(ask([user("x")])))).toMatchObject({
        _tag: "ProviderNotConfigured",
        variables: ["SUPER_PI_SCRIPT"],
      })
    }).pipe(Effect.provide(Models.layer({ env: {} }))),
  )
})
