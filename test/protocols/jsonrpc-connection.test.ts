/** One connection against a fake node: every method, every error, every bound. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, LogLevel } from "effect"
import fc from "fast-check"
import { serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { eventLimit } from "../../src/protocols/jsonrpc/watch-buffer.ts"
import { makeFakeSessions } from "./fake-sessions.ts"
import { type Answer, connect, type LineClient } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = mkdtempSync(join(tmpdir(), "sp-rpc-"))
let sockets = 0

/** A server with a fake node and one client, for the length of a test. */
const setup = Effect.gen(function* () {
  const fake = yield* makeFakeSessions({})
  const path = join(scratch, `s${++sockets}`)
  yield* serveUnix(path, protocolService(fake.sessions))
  const client = yield* Effect.acquireRelease(
    Effect.promise(() => connect(path)),
    (client) => Effect.sync(() => client.destroy()),
  )
  return { ...fake, path, client }
})

const request = (client: LineClient, method: string, params?: unknown) =>
  Effect.promise(() => client.request(method, params))
const next = (client: LineClient) =>
  Effect.promise(async (): Promise<Answer> => {
    const line = await client.next()
    if (line === null) throw new Error("the connection ended")
    return line
  })
const say = (client: LineClient, text: string) => Effect.sync(() => client.send(`${text}\n`))
const notify = (client: LineClient, method: string, params: unknown) =>
  say(client, JSON.stringify({ jsonrpc: "2.0", method, params }))

describe("the methods", () => {
  it.scopedLive("take a prompt from opening to its answer", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const opened = yield* request(client, "session.open", { agent: { cwd: "/tmp" }, title: "first" })
      expect(opened.result).toMatchObject({ conversation_id: 1, state: "idle", cwd: "/tmp", title: "first" })
      const receipt = yield* request(client, "session.submit", { conversationId: 1, content: "hello", requestId: "a" })
      expect(receipt.result).toMatchObject({ submission_id: 2, conversation_id: 1 })
      const again = yield* request(client, "session.submit", { conversationId: 1, content: "hello", requestId: "a" })
      expect(again.result).toMatchObject({ submission_id: 2 })
      const settled = yield* request(client, "session.await", { conversationId: 1, submissionId: 2 })
      expect(settled.result).toMatchObject({ status: "done", text: "HELLO", turns: 1 })
      const list = yield* request(client, "session.list")
      expect(list.result).toMatchObject([{ conversation_id: 1, title: "first", busy: false }])
      expect((yield* request(client, "session.state", [{ conversationId: 1 }])).result).toMatchObject({ entries: 2 })
      expect((yield* request(client, "session.transcript", { conversationId: 1 })).result).toEqual([])
      expect((yield* request(client, "session.cancel", { conversationId: 1 })).result).toEqual({ cancelled: false })
      const one = yield* request(client, "session.cancel", { conversationId: 1, submissionId: 2 })
      expect(one.result).toEqual({ cancelled: false })
      expect((yield* request(client, "session.cancel", { conversationId: 1, submissionId: "x" })).error).toMatchObject({
        code: -32602,
      })
      expect((yield* request(client, "session.retry", { conversationId: 1 })).result).toMatchObject({ state: "idle" })
      const nothing = { status: "nothing", task_id: null, entry_id: null, tokens_before: 9, tokens_after: null }
      const wish = { conversationId: 1, instructions: "the names" }
      expect((yield* request(client, "session.compact", wish)).result).toEqual(nothing)
      expect((yield* request(client, "session.compact", { conversationId: 1 })).result).toMatchObject({
        tokens_before: 0,
      })
      const configured = yield* request(client, "session.configure", { conversationId: 1, agent: { model: "m" } })
      expect(configured.result).toMatchObject({ model: "m" })
      expect((yield* request(client, "effect.list", { running: true })).result).toEqual([])
      const unknownCall = yield* request(client, "effect.settle", { taskId: 4, answer: "happened" })
      expect(unknownCall.error).toMatchObject({ code: -32004, message: "call 4 was not found" })
      expect((yield* request(client, "node.tree")).result).toMatchObject({ name: "node", children: [] })
      expect((yield* request(client, "models.list")).result).toMatchObject([{ id: "mock/echo" }])
      const info = yield* request(client, "node.info", [])
      expect(info.result).toMatchObject({ name: "super-pi", version: "1.2.3", pid: process.pid })
      expect((yield* request(client, "session.remove", { conversationId: 1 })).result).toEqual({ removed: true })
    }),
  )

  it.scopedLive("answer as they end, whatever the order of the requests", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      yield* request(client, "session.open", {})
      const waiting = client.request("session.await", { conversationId: 1, submissionId: 2 })
      expect((yield* Effect.promise(() => waiting)).error?.code).toBe(-32004)
      const receipt = client.request("session.submit", { conversationId: 1, content: "one" })
      const state = client.request("session.state", { conversationId: 1 })
      expect((yield* Effect.promise(() => state)).result).toMatchObject({ conversation_id: 1 })
      expect((yield* Effect.promise(() => receipt)).result).toMatchObject({ submission_id: 2 })
    }),
  )
})

describe("an error", () => {
  it.scopedLive("of a malformed line leaves the connection alive", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      yield* say(client, '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]')
      expect(yield* next(client)).toMatchObject({ id: null, error: { code: -32700 } })
      yield* Effect.sync(() => client.send(Uint8Array.from([0x22, 0xff, 0x22, 0x0a])))
      expect(yield* next(client)).toMatchObject({
        id: null,
        error: { code: -32700, data: { reason: "the line is not UTF-8" } },
      })
      yield* say(client, "[".repeat(1000))
      expect(yield* next(client)).toMatchObject({ id: null, error: { code: -32700 } })
      yield* Effect.sync(() => client.send(Buffer.alloc(17 * 1024 * 1024, "x")))
      expect(yield* next(client)).toMatchObject({ error: { code: -32700, message: /longer than 16777216 bytes/ } })
      yield* say(client, "still the same line")
      expect((yield* request(client, "node.info")).result).toMatchObject({ name: "super-pi" })
    }),
  )

  it.scopedLive("names an unknown method and the nearest known one", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const error = (yield* request(client, "session.sumbit")).error
      expect(error).toEqual({
        code: -32601,
        message: 'Method not found: "session.sumbit"; did you mean session.submit?',
        data: { method: "session.sumbit", nearest: "session.submit" },
      })
      expect((yield* request(client, "x".repeat(100_000))).error?.data?.nearest).toBeNull()
      expect((yield* request(client, "__proto__")).error?.code).toBe(-32601)
    }),
  )

  it.scopedLive("of wrong parameters says where, what was expected and what came", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const cases: ReadonlyArray<readonly [string, unknown, string, string, string]> = [
        ["session.state", { conversationId: "x" }, "conversationId", "a positive integer", '"x"'],
        [
          "effect.settle",
          { taskId: 4, answer: "maybe" },
          "answer",
          'one of "happened", "not-happened", "ignore"',
          '"maybe"',
        ],
        ["session.state", { conversationId: 0 }, "conversationId", "a positive integer", "0"],
        ["session.state", undefined, "conversationId", "a positive integer", "nothing"],
        ["session.open", { agent: { mode: "yolo" } }, "agent.mode", '"plan" | "accept-edits" | "auto"', '"yolo"'],
        [
          "session.submit",
          { conversationId: 1, content: "" },
          "content",
          "a text that is not empty, or an image",
          '""',
        ],
        [
          "session.submit",
          { conversationId: 1, content: [] },
          "content",
          "a text that is not empty, or an image",
          "an array of 0",
        ],
        [
          "session.submit",
          { conversationId: 1, content: [{ type: "image", mediaType: "image/png", data: "!!!" }] },
          "content.0.data",
          "the image in base64",
          '"!!!"',
        ],
        [
          "session.submit",
          { conversationId: 1, content: [{ type: "image", mediaType: "png", data: "AAAA" }] },
          "content.0.mediaType",
          'a media type such as "image/png"',
          '"png"',
        ],
        ["session.state", [1, 2], "params", "an object", "an array of 2"],
        ["session.list", { limit: 1001 }, "limit", "an integer from 1 to 1000", "1001"],
        ["session.watch", { conversationId: 1, after: -1 }, "after", "a non-negative integer or null", "-1"],
        ["session.open", { agent: { effort: "huge" } }, "agent.effort", "", '"huge"'],
        ["session.open", { agent: { modle: "m" } }, "agent.modle", "", "an unknown field"],
        ["session.open", { title: 5 }, "title", "a string", "5"],
        ["session.submit", { conversationId: 1 }, "content", "a text or an array of parts", "nothing"],
        ["session.submit", { conversationId: 1, content: "a", whenBusy: "now" }, "whenBusy", "", '"now"'],
        [
          "session.submit",
          { conversationId: 1, content: [{ type: "text", text: 5 }] },
          "content.0.text",
          "string",
          "5",
        ],
      ]
      for (const [method, params, path, expected, actual] of cases) {
        const error = (yield* request(client, method, params)).error
        expect(error, method).toMatchObject({ code: -32602, data: { path, actual } })
        if (expected !== "") expect(error?.data?.expected).toBe(expected)
        expect(error?.message).toBe(`${path}: expected ${error?.data?.expected}, got ${actual}`)
      }
    }),
  )

  it.scopedLive("tells the five failures and our own faults apart, without their insides", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      yield* request(client, "session.open", {})
      expect((yield* request(client, "session.state", { conversationId: 9 })).error).toEqual({
        code: -32004,
        message: "conversation 9 was not found",
        data: { what: "conversation 9" },
      })
      const refused = yield* request(client, "session.configure", { conversationId: 1, agent: { mode: "auto" } })
      expect(refused.error).toMatchObject({ code: -32003, data: { rule: "policy.mode" } })
      const failed = yield* request(client, "session.open", { agent: { model: "nobody/none" } })
      expect(failed.error).toEqual({
        code: -32603,
        message: "no such model",
        data: { code: "model_not_found", reference: "ref1" },
      })
      const defect = yield* request(client, "session.submit", { conversationId: 1, content: "defect" })
      expect(defect.error).toMatchObject({ code: -32603, data: { code: "defect", reference: /^[0-9a-f]{12}$/ } })
      expect(JSON.stringify(defect)).not.toContain("secret")
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("is all that a conversation in a run gives to an input that will not wait", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({ hold: true })
      const path = join(scratch, `s${++sockets}`)
      yield* serveUnix(path, protocolService(fake.sessions))
      const client = yield* Effect.promise(() => connect(path))
      yield* request(client, "session.open", {})
      yield* request(client, "session.submit", { conversationId: 1, content: "a" })
      const busy = yield* request(client, "session.submit", { conversationId: 1, content: "b", whenBusy: "reject" })
      expect(busy.error).toMatchObject({ code: -32002, data: { what: "conversation", retryAfterMs: 250 } })
      client.destroy()
    }),
  )
})

describe("a batch", () => {
  it.scopedLive("is answered by one array, without its notifications", () =>
    Effect.gen(function* () {
      const { client, calls } = yield* setup
      yield* request(client, "session.open", {})
      yield* say(
        client,
        JSON.stringify([
          { jsonrpc: "2.0", method: "session.state", params: { conversationId: 1 }, id: "1" },
          { jsonrpc: "2.0", method: "session.cancel", params: { conversationId: 1 } },
          { foo: "boo" },
          { jsonrpc: "2.0", method: "foo.get", params: { name: "myself" }, id: "5" },
          { jsonrpc: "2.0", method: "session.list", id: 9 },
          1,
        ]),
      )
      const answers = (yield* next(client)) as unknown as ReadonlyArray<Answer> // a batch's answer is an array
      const byId = answers.map((answer) => [answer.id, answer.error?.code ?? "ok"])
      expect(byId.sort()).toEqual(
        [
          ["1", "ok"],
          ["5", -32601],
          [9, "ok"],
          [null, -32600],
          [null, -32600],
        ].sort(),
      )
      expect(calls).toContain("cancel")
    }),
  )

  it.scopedLive("of notifications only, and a notification that fails, are answered by nothing", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const silent = { jsonrpc: "2.0", method: "nothing.here" }
      yield* say(client, JSON.stringify([silent, { ...silent, method: "session.state", params: {} }]))
      yield* notify(client, "nothing.here", {})
      yield* say(client, "[]")
      expect(yield* next(client)).toMatchObject({ id: null, error: { code: -32600 } })
    }),
  )
})

describe("watching", () => {
  it.scopedLive("starts with a snapshot after its answer, then tells every event in order", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      yield* request(client, "session.open", {})
      const watched = yield* request(client, "session.watch", { conversationId: 1 })
      expect(watched.result).toEqual({ watchId: "w1" })
      const first = yield* next(client)
      expect(first).toMatchObject({
        method: "session.event",
        params: { watchId: "w1", conversationId: 1, delivery: 1, gap: false, events: [{ type: "snapshot" }] },
      })
      yield* request(client, "session.submit", { conversationId: 1, content: "hi" })
      const types: Array<string> = []
      while (types.at(-1) !== "turn_completed") {
        const line = yield* next(client)
        types.push(...(line.params?.events ?? []).map((event) => event.type))
        yield* notify(client, "session.ack", { watchId: "w1", delivery: line.params?.delivery })
      }
      expect(types).toEqual(["turn_started", "text_delta", "text_delta", "turn_completed"])
    }),
  )

  it.scopedLive("has two deliveries out; the rest waits for the acknowledgement and comes together", () =>
    Effect.gen(function* () {
      const { client, emit } = yield* setup
      yield* request(client, "session.open", {})
      yield* request(client, "session.watch", { conversationId: 1 })
      yield* next(client)
      for (let i = 0; i < 5; i++) emit(1, { type: "text_delta", text: `${i}` })
      expect((yield* next(client)).params).toMatchObject({ delivery: 2, events: [{ text: "0" }] })
      const acknowledged = yield* request(client, "session.ack", { watchId: "w1", delivery: 1 })
      expect(acknowledged.result).toEqual({ acknowledged: 1, inFlight: 2 })
      const third = yield* next(client)
      expect(third.params?.events.map((event) => event.text)).toEqual(["1", "2", "3", "4"])
      expect(third.params).toMatchObject({ delivery: 3, gap: false })
      const old = yield* request(client, "session.ack", { watchId: "w1", delivery: 1 })
      expect(old.result).toEqual({ acknowledged: 1, inFlight: 2 })
    }),
  )

  it.scopedLive("without acknowledging costs bounded memory: the gap is marked and a snapshot takes its place", () =>
    Effect.gen(function* () {
      const { client, emit, watchers } = yield* setup
      yield* request(client, "session.open", {})
      yield* request(client, "session.watch", { conversationId: 1 })
      yield* next(client)
      emit(1, { type: "text_delta", text: "second delivery" })
      yield* next(client)
      for (let i = 0; i < eventLimit + 10; i++) emit(1, { type: "text_delta", text: `${i}` })
      yield* Effect.yieldNow().pipe(Effect.repeat({ until: () => watchers(1) === 0 }))
      emit(1, { type: "text_delta", text: "unseen" })
      yield* request(client, "session.ack", { watchId: "w1", delivery: 2 })
      const fresh = yield* next(client)
      expect(fresh.params).toMatchObject({ delivery: 3, gap: true, events: [{ type: "snapshot" }] })
      expect(fresh.params?.events[0]?.seq_no).toBe(eventLimit + 12)
      emit(1, { type: "text_delta", text: "seen" })
      expect((yield* next(client)).params).toMatchObject({ delivery: 4, gap: false, events: [{ text: "seen" }] })
    }),
  )

  it.scopedLive("resumes behind `after`", () =>
    Effect.gen(function* () {
      const { client, emit } = yield* setup
      yield* request(client, "session.open", {})
      for (let i = 1; i <= 4; i++) emit(1, { type: "text_delta", text: `${i}` })
      yield* request(client, "session.watch", { conversationId: 1, after: 3 })
      expect((yield* next(client)).params?.events).toMatchObject([{ type: "text_delta", text: "4", seq_no: 4 }])
    }),
  )

  it.scopedLive("ends with its conversation, with an error for one that is not there, or when asked", () =>
    Effect.gen(function* () {
      const { client, emit, watchers } = yield* setup
      yield* request(client, "session.open", {})
      yield* request(client, "session.watch", { conversationId: 1 })
      yield* next(client)
      expect((yield* request(client, "session.watch", { conversationId: 5 })).result).toEqual({ watchId: "w2" })
      expect(yield* next(client)).toMatchObject({
        method: "session.watch_ended",
        params: { watchId: "w2", conversationId: 5, error: { code: -32004 } },
      })
      yield* request(client, "session.watch", { conversationId: 1 })
      yield* next(client)
      expect((yield* request(client, "session.unwatch", { watchId: "w3" })).result).toEqual({ stopped: true })
      expect((yield* request(client, "session.unwatch", { watchId: "w3" })).result).toEqual({ stopped: false })
      yield* Effect.yieldNow().pipe(Effect.repeat({ until: () => watchers(1) === 1 }))
      emit(1, { type: "text_delta", text: "only w1" })
      expect((yield* next(client)).params).toMatchObject({ watchId: "w1" })
      yield* request(client, "session.remove", { conversationId: 1 })
      expect(yield* next(client)).toMatchObject({
        method: "session.watch_ended",
        params: { watchId: "w1", error: null },
      })
      const gone = yield* request(client, "session.ack", { watchId: "w1", delivery: 1 })
      expect(gone.error).toMatchObject({ code: -32004, data: { what: "watch w1" } })
    }),
  )

  it.scopedLive("is bounded per connection, and ends with it", () =>
    Effect.gen(function* () {
      const { client, watchers } = yield* setup
      yield* request(client, "session.open", {})
      for (let i = 0; i < 64; i++) yield* request(client, "session.watch", { conversationId: 1 })
      expect((yield* request(client, "session.watch", { conversationId: 1 })).error?.code).toBe(-32002)
      yield* Effect.sync(() => client.destroy())
      yield* Effect.sleep(1).pipe(Effect.repeat({ until: () => watchers(1) === 0 }))
    }),
  )
})

describe("a connection", () => {
  it.scopedLive("whose client ended its side finishes what runs, answers a last half line, and ends", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      yield* request(client, "session.open", {})
      yield* request(client, "session.watch", { conversationId: 1 })
      yield* next(client)
      const receipt = client.request("session.submit", { conversationId: 1, content: "x" })
      client.send('{"jsonrpc":"2.0","id":"last","method":"node.info"}')
      client.end()
      expect((yield* Effect.promise(() => receipt)).result).toMatchObject({ submission_id: 2 })
      const rest: Array<Answer> = []
      for (
        let line = yield* Effect.promise(() => client.next());
        line !== null;
        line = yield* Effect.promise(() => client.next())
      ) {
        rest.push(line)
      }
      expect(rest.filter((line) => line.id === "last").length).toBe(1)
    }),
  )

  it.scopedLive("answers busy beyond 1,024 running requests, and goes on", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({ hold: true })
      const path = join(scratch, `s${++sockets}`)
      yield* serveUnix(path, protocolService(fake.sessions))
      const client = yield* Effect.promise(() => connect(path))
      yield* request(client, "session.open", {})
      yield* request(client, "session.submit", { conversationId: 1, content: "a" })
      for (let i = 0; i < 1025; i++) {
        client.send(
          `{"jsonrpc":"2.0","id":${i},"method":"session.await","params":{"conversationId":1,"submissionId":2}}\n`,
        )
      }
      expect(yield* next(client)).toMatchObject({ id: 1024, error: { code: -32002 } })
      client.destroy()
    }),
  )

  it.scopedLive("stops reading requests of a client that does not read answers, and serves others meanwhile", () =>
    Effect.gen(function* () {
      const { client, path, calls } = yield* setup
      yield* request(client, "session.open", { title: "t".repeat(100_000) })
      client.pause()
      const asked = 2_000
      for (let i = 0; i < asked; i++) {
        client.send(`{"jsonrpc":"2.0","id":${i},"method":"session.state","params":{"conversationId":1}}\n`)
      }
      const other = yield* Effect.promise(() => connect(path))
      // The other client's answers show that the node goes on; the first one's requests stop at the bound.
      let before = -1
      while (before !== calls.length) {
        before = calls.length
        for (let i = 0; i < 20; i++) yield* request(other, "node.info")
      }
      expect(calls.length).toBeLessThan(asked / 10)
      client.resume()
      for (let i = 0; i < asked; i++) expect((yield* next(client)).result).toMatchObject({ conversation_id: 1 })
      other.destroy()
    }),
  )

  it.scopedLive("gives each request one answer, whatever else comes on the line", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      yield* request(client, "session.open", {})
      const noise = fc.oneof(
        fc.string({ unit: "binary" }),
        fc.json(),
        fc
          .record({ jsonrpc: fc.constant("2.0"), method: fc.string(), params: fc.jsonValue() })
          .map((x) => JSON.stringify(x)),
        fc
          .record({
            jsonrpc: fc.constant("2.0"),
            method: fc.constantFrom("session.open", "session.submit", "session.ack"),
            params: fc.object(),
          })
          .map((x) => JSON.stringify(x)),
      )
      let rounds = 0
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(noise, { maxLength: 8 }), async (lines) => {
            const round = ++rounds
            for (const line of lines) client.send(`${line.replaceAll("\n", " ")}\n`)
            client.send(`{"jsonrpc":"2.0","id":"fuzz${round}","method":"node.info"}\n`)
            for (let line = await client.next(); ; line = await client.next()) {
              if (line === null) throw new Error("the connection ended")
              if (line.id === `fuzz${round}`) break
            }
          }),
          { numRuns: 200 },
        ),
      )
    }),
  )
})
