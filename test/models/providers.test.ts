/**
 * Every provider against a local server that streams as the services document it: answers, faults, broken streams, interruption.
 */
import { afterEach, describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { AssistantMessage, Message } from "../../src/domain/message.ts"
import type { ModelPart } from "../../src/models/model.ts"
import { collect, finishOf, hello, kinds, modelOf, modelsAt, secret, user } from "./ask.ts"
import { type Reply, type Seen, type StandIn, startStandIn } from "./stand-in.ts"
import { wireError, wireFrames } from "./wire-formats.ts"

let running: StandIn | null = null
afterEach(async () => {
  await running?.close()
  running = null
})

const serve = (reply: (seen: Seen, index: number) => Reply) =>
  Effect.promise(async () => {
    running = await startStandIn(reply)
    return running
  })

const joined = (parts: ReadonlyArray<ModelPart>, type: "text" | "thinking") =>
  parts.flatMap((part) => (part.type === type ? [part.delta] : [])).join("")

const tools: Message = {
  role: "system",
  sections: [{ name: "role", text: "You are terse." }],
  addTools: [
    { name: "read", description: "Reads", parameters: { type: "object", properties: { path: { type: "string" } } } },
  ],
  removeTools: [],
}

for (const kind of kinds) {
  const model = modelOf[kind]
  describe(`the ${kind} format`, () => {
    it.live("streams text, thinking and tool calls, then the whole content and the usage", () =>
      Effect.gen(function* () {
        const { url, requests } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({
            thinking: "let me think",
            text: "Grüße 🎉, reading now",
            tools: [
              { id: "id_1", name: "read", args: { path: "ä.txt" } },
              { id: "id_2", name: "read", args: { path: "b" } },
            ],
            usage: { input: 100, output: 20, cacheRead: 60, reasoning: 8 },
          }),
        }))
        const parts = yield* collect(modelsAt(url), { model, messages: [tools, ...hello], effort: "low" })
        expect(requests).toHaveLength(1)
        expect(requests[0]?.kind).toBe(kind)
        expect(joined(parts, "text")).toBe("Grüße 🎉, reading now")
        expect(joined(parts, "thinking")).toBe("let me think")
        const finish = finishOf(parts)
        expect(finish.content.map(({ type }) => type)).toEqual(["thinking", "text", "toolCall", "toolCall"])
        expect(finish.content[2]).toMatchObject({ name: "read", arguments: { path: "ä.txt" } })
        expect(finish.stopReason).toBe("tool_calls")
        expect(finish.usage).toMatchObject({ input: 100, output: 20, cacheRead: 60 })
        const first = finish.content[2]
        const deltas = parts.flatMap((part) =>
          part.type === "toolCallDelta" && first?.type === "toolCall" && part.id === first.id ? [part.delta] : [],
        )
        expect(JSON.parse(deltas.join(""))).toEqual({ path: "ä.txt" })
      }),
    )

    it.live("survives characters and events torn at every byte", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({ text: "Grüße 🎉 日本", usage: { input: 3, output: 4 } }),
          pieceBytes: 1,
        }))
        const parts = yield* collect(modelsAt(url), { model, messages: hello })
        expect(finishOf(parts)).toMatchObject({
          content: [{ type: "text", text: "Grüße 🎉 日本" }],
          stopReason: "stop",
          usage: { input: 3, output: 4 },
        })
      }),
    )

    it.live("joins a character that the service split into two deltas, and replaces half a character", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({ text: "AB" }).map((frame) =>
            frame.replaceAll('"A"', '"a\\ud83c"').replaceAll('"B"', '"\\udf89 \\udf89!"'),
          ),
        }))
        const parts = yield* collect(modelsAt(url), { model, messages: hello })
        expect(parts.flatMap((part) => (part.type === "text" ? [part.delta] : []))).toEqual(["a", "🎉 \ufffd!"])
        expect(finishOf(parts).content[0]).toMatchObject({ text: "a🎉 \ufffd!" })
      }),
    )

    it.live("passes parts on as they arrive", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({ text: "first second", chunks: 2 }).slice(0, -2),
          ending: "hang",
        }))
        const first = yield* modelsAt(url).stream({ model, messages: hello }).pipe(Stream.take(1), Stream.runHead)
        expect(first).toMatchObject({ value: { type: "text" } })
      }),
    )

    it.live("closes the connection as soon as it is interrupted, before and during the stream", () =>
      Effect.gen(function* () {
        const { url, request } = yield* serve((seen, index) => ({
          frames: index === 0 ? [] : wireFrames[seen.kind]({ text: "x" }).slice(0, -2),
          ending: "hang",
        }))
        for (const index of [0, 1]) {
          const started = yield* Effect.fork(collect(modelsAt(url), { model, messages: hello }))
          const seen = yield* Effect.promise(() => request(index))
          yield* Fiber.interrupt(started)
          expect(yield* Effect.promise(() => seen.closed)).toBe(true)
        }
      }),
    )

    it.live("fails as truncated when the stream ends without its end marker", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => {
          const frames = wireFrames[seen.kind]({ text: "half of it" })
          return { frames: frames.slice(0, seen.kind === "chat" ? -3 : seen.kind === "anthropic" ? -2 : -1) }
        })
        const error = yield* Effect.flip(collect(modelsAt(url), { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelTransient", reason: "truncated" })
      }),
    )

    it.live("fails as a network failure when the connection breaks in mid-stream", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({ text: "half" }).slice(0, -2),
          ending: "cut",
        }))
        const error = yield* Effect.flip(collect(modelsAt(url), { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelTransient", reason: "network" })
      }),
    )

    it.live("fails as a network failure when nobody listens", () =>
      Effect.gen(function* () {
        const { url, close } = yield* serve(() => ({}))
        yield* Effect.promise(close)
        const error = yield* Effect.flip(collect(modelsAt(url), { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelTransient", reason: "network", status: null })
      }),
    )

    it.live("fails as a network failure when nothing moves for the stall limit", () =>
      Effect.gen(function* () {
        const { url, requests } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({ text: "half" }).slice(0, -2),
          ending: "hang",
        }))
        const models = modelsAt(url, { streamIdleTimeoutMs: 100 })
        const error = yield* Effect.flip(collect(models, { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelTransient", reason: "network", detail: "no data for 100 ms" })
        // On a busy machine the limit may pass before the request is even there.
        const [seen] = requests
        if (seen !== undefined) expect(yield* Effect.promise(() => seen.closed)).toBe(true)
      }),
    )

    it.live("reports 429 and 529 with Retry-After, asks once, and caps the wait at a minute", () =>
      Effect.gen(function* () {
        const waits = ["2", "0.5", "7200", new Date(Date.now() + 30_000).toUTCString()]
        const { url, requests } = yield* serve((seen, index) => ({
          status: index === 1 ? 529 : 429,
          headers: { "retry-after": waits[index] ?? "" },
          body: wireError(seen.kind, 429, "slow down"),
        }))
        const models = modelsAt(url)
        const once = Effect.flip(collect(models, { model, messages: hello }))
        expect(yield* once).toMatchObject({
          _tag: "ModelTransient",
          reason: "rate_limited",
          status: 429,
          retryAfterMs: 2_000,
          detail: "slow down",
        })
        expect(yield* once).toMatchObject({
          _tag: "ModelTransient",
          reason: "overloaded",
          status: 529,
          retryAfterMs: 500,
        })
        expect(yield* once).toMatchObject({ retryAfterMs: 60_000 })
        const dated = yield* once
        expect(dated._tag === "ModelTransient" ? dated.retryAfterMs : null).toBeGreaterThan(20_000)
        expect(requests).toHaveLength(4)
      }),
    )

    it.live("reports 5xx as transient whatever the body is", () =>
      Effect.gen(function* () {
        const bodies = ["", "<html><title>502 Bad Gateway</title></html>", "{", "null"]
        const { url } = yield* serve((_, index) => ({ status: 502, body: bodies[index] ?? "" }))
        const models = modelsAt(url)
        for (const body of bodies) {
          const error = yield* Effect.flip(collect(models, { model, messages: hello }))
          expect(error, body).toMatchObject({ _tag: "ModelTransient", reason: "server_error", status: 502 })
          expect(error.message).not.toContain("<html>")
        }
      }),
    )

    it.live("rejects with the provider's own message, never with a key in it", () =>
      Effect.gen(function* () {
        const { url, requests } = yield* serve((seen) => ({
          status: 400,
          body: wireError(seen.kind, 400, `bad request; you sent key ${secret} and Authorization: Bearer ${secret}`),
        }))
        const error = yield* Effect.flip(collect(modelsAt(url), { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelRejected", status: 400 })
        expect(error.message).toContain("bad request; you sent key [redacted]")
        expect(JSON.stringify(error)).not.toContain(secret)
        expect(JSON.stringify(requests[0]?.headers)).toContain(secret)
      }),
    )

    it.live("follows no redirect", () =>
      Effect.gen(function* () {
        const { url, requests } = yield* serve((seen, index) =>
          index === 0
            ? { status: 307, headers: { location: "/elsewhere/chat/completions" } }
            : { frames: wireFrames[seen.kind]({ text: "leaked" }) },
        )
        const error = yield* Effect.flip(collect(modelsAt(url), { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelRejected", status: 307 })
        expect(requests).toHaveLength(1)
      }),
    )

    it.live("fails as transient on events that cannot be read", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => {
          const frames = [...wireFrames[seen.kind]({ text: "fine" })]
          frames.splice(2, 0, "data: {not json\n\n")
          return { frames }
        })
        const error = yield* Effect.flip(collect(modelsAt(url), { model, messages: hello }))
        expect(error).toMatchObject({ _tag: "ModelTransient", reason: "server_error" })
      }),
    )

    it.live("gives every call an id that the conversation does not have yet", () =>
      Effect.gen(function* () {
        const { url } = yield* serve((seen) => ({
          frames: wireFrames[seen.kind]({ tools: [{ id: "same", name: "read", args: {} }] }),
        }))
        const earlier: AssistantMessage = {
          role: "assistant",
          content: [{ type: "toolCall", id: "same", name: "read", arguments: {} }],
          model: "x/y",
          stopReason: "tool_calls",
        }
        const messages: ReadonlyArray<Message> = [
          ...hello,
          earlier,
          { role: "tool", callId: "same", toolName: "read", content: [{ type: "text", text: "r" }], isError: false },
        ]
        const [call] = finishOf(yield* collect(modelsAt(url), { model, messages })).content
        expect(call).toMatchObject({ type: "toolCall", arguments: {} })
        expect(call?.type === "toolCall" ? call.id : "same").not.toBe("same")
      }),
    )

    it.live("keeps arguments that are no JSON object apart, and drops a call that the length limit cut off", () =>
      Effect.gen(function* () {
        const stop = { chat: "length", responses: "max_output_tokens", anthropic: "max_tokens", gemini: "MAX_TOKENS" }[
          kind
        ]
        const { url } = yield* serve((seen, index) => ({
          frames: wireFrames[seen.kind]({
            text: "t",
            tools: [{ id: "a", name: "read", args: '{"path": "unfinis' }],
            ...(index === 1 ? { stop } : {}),
          }),
        }))
        if (kind === "gemini") return
        const models = modelsAt(url)
        const broken = finishOf(yield* collect(models, { model, messages: hello }))
        expect(broken.content[1]).toMatchObject({ arguments: { __unreadable_arguments: '{"path": "unfinis' } })
        const cut = finishOf(yield* collect(models, { model, messages: hello }))
        expect(cut).toMatchObject({ stopReason: "length", content: [{ type: "text" }] })
      }),
    )

    it.live("names the reason of a length limit", () =>
      Effect.gen(function* () {
        const stop = { chat: "length", responses: "max_output_tokens", anthropic: "max_tokens", gemini: "MAX_TOKENS" }[
          kind
        ]
        const { url } = yield* serve((seen) => ({ frames: wireFrames[seen.kind]({ text: "t", stop }) }))
        expect(finishOf(yield* collect(modelsAt(url), { model, messages: [user("x")] })).stopReason).toBe("length")
      }),
    )
  })
}
