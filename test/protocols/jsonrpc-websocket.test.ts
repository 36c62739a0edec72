/** JSON-RPC over WebSocket at `/rpc`: who gets in, what a message is, what frames can do, and how a connection ends. */
import { randomBytes } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Either, Exit, Scope } from "effect"
import fc from "fast-check"
import { WebSocket } from "ws"
import { authenticatorOf, openAuthenticator } from "../../src/protocols/auth/tokens.ts"
import { type HttpLimits, limitsOf } from "../../src/protocols/http/limits.ts"
import { rpcRoutes } from "../../src/protocols/jsonrpc/websocket.ts"
import { makeFakeSessions } from "./fake-sessions.ts"
import { eventually, get, raw, serve } from "./http/support.ts"
import { protocolService } from "./service.ts"

type Message = Record<string, unknown> & { readonly params?: { readonly delivery: number; readonly gap: boolean } }

interface Client {
  readonly socket: WebSocket
  readonly send: (value: unknown) => void
  /** The next message; null at the end. */
  readonly next: () => Promise<Message | null>
  /** Code and reason of the close. */
  readonly closed: Promise<readonly [number, string]>
}

/** Opens a socket; rejects with the status where the handshake is refused. */
const open = (url: string, options: { readonly headers?: Record<string, string>; readonly autoPong?: boolean } = {}) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Client>((resolve, reject) => {
          const socket = new WebSocket(url, options)
          const messages: Array<Message | null> = []
          const readers: Array<(message: Message | null) => void> = []
          const say = (message: Message | null) => {
            const reader = readers.shift()
            if (reader) reader(message)
            else messages.push(message)
          }
          const closed = new Promise<readonly [number, string]>((done) => {
            socket.on("close", (code, reason) => {
              say(null)
              done([code, String(reason)])
            })
          })
          socket.on("message", (data) => say(JSON.parse(String(data))))
          socket.on("error", reject)
          socket.on("unexpected-response", (_request, response) => reject(new Error(String(response.statusCode))))
          socket.on("open", () =>
            resolve({
              socket,
              closed,
              send: (value) => socket.send(typeof value === "string" ? value : JSON.stringify(value)),
              next: () =>
                new Promise((next) => {
                  const message = messages.shift()
                  if (message !== undefined) next(message)
                  else readers.push(next)
                }),
            }),
          )
        }),
    ),
    ({ socket }) => Effect.sync(() => socket.terminate()),
  )

/** The status with which a handshake is refused. */
const refusal = (url: string, headers: Record<string, string> = {}) =>
  Effect.map(Effect.exit(Effect.scoped(open(url, { headers }))), (exit) =>
    Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "opened",
  )

const setup = (options: { readonly tokens?: Record<string, string>; readonly limits?: Partial<HttpLimits> } = {}) =>
  Effect.gen(function* () {
    const auth =
      options.tokens === undefined
        ? openAuthenticator
        : Either.getOrThrow(authenticatorOf({ tokens: options.tokens }, ""))
    const limits = { ...limitsOf({}), drainMs: 100, ...options.limits }
    const fake = yield* makeFakeSessions({})
    const group = yield* rpcRoutes(protocolService(fake.sessions), { auth, limits })
    const server = yield* serve([], { groups: [group], auth, limits })
    return { ...fake, server, url: `ws://127.0.0.1:${server.port}/rpc` }
  })

const next = (client: Client) => Effect.promise(() => client.next())

describe("a WebSocket", () => {
  it.scopedLive("carries one request or batch per message, and watches", () =>
    Effect.gen(function* () {
      const { emit, url } = yield* setup()
      const client = yield* open(url)
      client.send({ jsonrpc: "2.0", id: 1, method: "session.open" })
      expect(yield* next(client)).toMatchObject({ id: 1, result: { conversation_id: 1 } })
      client.send([
        { jsonrpc: "2.0", id: "a", method: "node.info" },
        { jsonrpc: "2.0", method: "node.info" },
        { jsonrpc: "2.0", id: null, method: "nothing" },
      ])
      expect(yield* next(client)).toMatchObject([{ id: "a" }, { id: null, error: { code: -32601 } }])
      client.send({ jsonrpc: "2.0", id: 2, method: "session.watch", params: { conversationId: 1 } })
      expect(yield* next(client)).toMatchObject({ id: 2, result: { watchId: "w1" } })
      expect(yield* next(client)).toMatchObject({ method: "session.event", params: { events: [{ type: "snapshot" }] } })
      emit(1, { type: "text_delta", text: "hi" })
      expect(yield* next(client)).toMatchObject({
        params: { delivery: 2, events: [{ type: "text_delta", text: "hi" }] },
      })
    }),
  )

  it.scopedLive("answers what is not JSON, or is binary, and lives on", () =>
    Effect.gen(function* () {
      const { url } = yield* setup()
      const client = yield* open(url)
      client.send("{not json")
      expect(yield* next(client)).toMatchObject({ id: null, error: { code: -32700 } })
      client.socket.send(Buffer.from("{}"))
      expect(yield* next(client)).toMatchObject({
        id: null,
        error: { code: -32700, data: { reason: "expected a text message, got a binary one" } },
      })
      client.send({ jsonrpc: "2.0", id: 1, method: "node.info" })
      expect(yield* next(client)).toMatchObject({ id: 1, result: { name: "super-pi" } })
    }),
  )

  it.scopedLive("logs in with a header, or with auth.login; a wrong header is refused at the door", () =>
    Effect.gen(function* () {
      const { url } = yield* setup({ tokens: { alice: "key-a" } })
      const known = yield* open(url, { headers: { authorization: "Bearer key-a" } })
      known.send({ jsonrpc: "2.0", id: 1, method: "session.list" })
      expect(yield* next(known)).toMatchObject({ id: 1, result: [] })
      const stranger = yield* open(url)
      stranger.send({ jsonrpc: "2.0", id: 1, method: "session.list" })
      expect(yield* next(stranger)).toMatchObject({ error: { code: -32001 } })
      stranger.send({ jsonrpc: "2.0", id: 2, method: "auth.login", params: { token: "key-a" } })
      expect(yield* next(stranger)).toMatchObject({ id: 2, result: { principal: "alice" } })
      stranger.send({ jsonrpc: "2.0", id: 3, method: "session.list" })
      expect(yield* next(stranger)).toMatchObject({ id: 3, result: [] })
      expect(yield* refusal(url, { authorization: "Bearer key-b" })).toContain("401")
    }),
  )

  it.scopedLive("with too many wrong tokens is closed with 1008", () =>
    Effect.gen(function* () {
      const { url } = yield* setup({ tokens: { alice: "key-a" } })
      const guesser = yield* open(url)
      for (let i = 0; i < 5; i++) {
        guesser.send({ jsonrpc: "2.0", id: i, method: "auth.login", params: { token: "guess" } })
        expect(yield* next(guesser)).toMatchObject({ id: i, error: { code: -32001 } })
      }
      expect((yield* Effect.promise(() => guesser.closed))[0]).toBe(1008)
    }),
  )

  it.scopedLive("of a web page is refused unless its origin is allowed, with tokens too", () =>
    Effect.gen(function* () {
      for (const options of [{}, { tokens: { alice: "key-a" } }]) {
        const { url } = yield* setup(options)
        expect(yield* refusal(url, { origin: "https://evil.example" })).toContain("403")
      }
    }),
  )

  it.scopedLive("is what /rpc speaks: anything else there is told so", () =>
    Effect.gen(function* () {
      const { server, url } = yield* setup()
      expect((yield* get(server, "/rpc")).status).toBe(404)
      expect(yield* refusal(url.replace("/rpc", "/other"))).toContain("404")
    }),
  )

  it.scopedLive("takes nothing longer than 16 MiB: it is closed with 1009", () =>
    Effect.gen(function* () {
      const { url } = yield* setup()
      const client = yield* open(url)
      client.send(`"${"x".repeat(16 * 1024 * 1024)}"`)
      expect((yield* Effect.promise(() => client.closed))[0]).toBe(1009)
    }),
  )

  it.scopedLive("whose client answers no ping is cut off, one that answers is not", () =>
    Effect.gen(function* () {
      const { server, url } = yield* setup({ limits: { heartbeatMs: 40 } })
      const alive = yield* open(url)
      const dead = yield* open(url, { autoPong: false })
      expect((yield* Effect.promise(() => dead.closed))[0]).toBe(1006)
      alive.send({ jsonrpc: "2.0", id: 1, method: "node.info" })
      expect(yield* next(alive)).toMatchObject({ id: 1 })
      yield* eventually(() => server.load().streams === 1)
    }),
  )

  it.scopedLive("whose client does not read holds a bounded part of what happens, and says that there is a gap", () =>
    Effect.gen(function* () {
      const { emit, server, url, watchers } = yield* setup()
      const stalled = yield* open(url)
      stalled.send({ jsonrpc: "2.0", id: 1, method: "session.open" })
      yield* next(stalled)
      stalled.send({ jsonrpc: "2.0", id: 2, method: "session.watch", params: { conversationId: 1 } })
      yield* next(stalled)
      yield* next(stalled)
      yield* eventually(() => watchers(1) === 1)
      stalled.socket.pause()
      // Everything is acknowledged as it goes out, so only the socket holds it back.
      let emitted = 0
      for (let delivery = 1; watchers(1) === 1; delivery++) {
        stalled.send({ jsonrpc: "2.0", method: "session.ack", params: { watchId: "w1", delivery } })
        for (let i = 0; i < 8; i++) emit(1, { type: "text_delta", text: "x".repeat(64 * 1024) })
        emitted += 8
        yield* Effect.sleep(0)
        // What the kernel takes, 1 MiB in the socket and 4 MiB in the watch.
        expect(emitted).toBeLessThan(16 * 64)
      }
      const other = yield* open(url)
      other.send({ jsonrpc: "2.0", id: 1, method: "node.info" })
      expect(yield* next(other)).toMatchObject({ id: 1 })
      stalled.socket.resume()
      let delivery = 0
      for (let message = yield* next(stalled); message?.params?.gap !== true; message = yield* next(stalled)) {
        delivery = message?.params?.delivery ?? delivery
        stalled.send({ jsonrpc: "2.0", method: "session.ack", params: { watchId: "w1", delivery } })
      }
      expect(delivery).toBeLessThan(emitted)
      expect(server.load().streams).toBe(2)
    }),
  )

  it.scopedLive("whose client takes nothing for long is cut off", () =>
    Effect.gen(function* () {
      const { emit, server, url } = yield* setup({ limits: { stalledMs: 100, heartbeatMs: 1000 } })
      const stalled = yield* open(url)
      stalled.send({ jsonrpc: "2.0", id: 1, method: "session.open" })
      yield* next(stalled)
      for (let i = 0; i < 60; i++) emit(1, { type: "text_delta", text: "x".repeat(512 * 1024) })
      stalled.socket.pause()
      for (let id = 2; id < 10; id++) {
        const params = { conversationId: 1, after: 0 }
        stalled.send({ jsonrpc: "2.0", id, method: "session.watch", params })
      }
      yield* eventually(() => server.load().streams === 0)
    }),
  )

  it.scopedLive("of a server that stops is closed with 1001", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { url } = yield* Scope.extend(setup(), scope)
      const client = yield* open(url)
      client.send({ jsonrpc: "2.0", id: 1, method: "node.info" })
      yield* next(client)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Effect.promise(() => client.closed)).toEqual([1001, "the server is stopping"])
    }),
  )
})

describe("frames of any kind", () => {
  const key = () => randomBytes(16).toString("base64")
  const handshake = () =>
    `GET /rpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key()}\r\n\r\n`

  it.scopedLive("end their own connection at most", () =>
    Effect.gen(function* () {
      const { server, url } = yield* setup()
      const bystander = yield* open(url)
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), async (frames) => {
            await Effect.runPromise(
              Effect.scoped(
                Effect.gen(function* () {
                  const client = yield* raw(server.port)
                  client.send(handshake())
                  yield* Effect.promise(() => client.until(/101 Switching/))
                  for (const frame of frames) client.send(frame)
                  client.socket.end()
                  yield* Effect.promise(() => client.ended)
                }),
              ),
            )
          }),
          { numRuns: 60 },
        ),
      )
      bystander.send({ jsonrpc: "2.0", id: 1, method: "node.info" })
      expect(yield* next(bystander)).toMatchObject({ id: 1 })
      yield* eventually(() => server.load().streams === 1)
    }),
  )
})
