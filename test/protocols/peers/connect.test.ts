/** Two nodes over TCP on loopback: the session contract, the greeting, and what ends a connection. */
import { connect as connectTcp, createServer, type Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, LogLevel, Redacted, Scope, Stream } from "effect"
import type { Event } from "../../../src/domain/event.ts"
import { ConversationId } from "../../../src/domain/ids.ts"
import { connectPeer } from "../../../src/protocols/peers/connect.ts"
import { renderHello, renderProof } from "../../../src/protocols/peers/handshake.ts"
import { listenPeers } from "../../../src/protocols/peers/serve.ts"
import { identity, node, open, options, said, secret, someInfo } from "./support.ts"

const target = { conversationId: ConversationId.make(1) }

describe("a node that connects to another one", () => {
  it.scopedLive("learns who that is, how it is, and has its sessions", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2)
      const { peer, sessions, info } = yield* connectPeer(address, options(1))
      expect(peer).toEqual(identity(2))
      expect(yield* info).toEqual(someInfo)
      expect(yield* sessions.open(open)).toMatchObject({ conversation_id: 1 })
      const { submission_id } = yield* sessions.submit({ ...target, content: said("héllo ✓"), requestId: "a" })
      expect(yield* sessions.awaitSubmission({ ...target, submissionId: submission_id })).toMatchObject({
        text: "HÉLLO ✓",
      })
      const missing = { conversationId: ConversationId.make(9) }
      expect(yield* Effect.flip(sessions.state(missing))).toMatchObject({ _tag: "NotFound" })
    }),
  )

  it.scopedLive("has two hundred calls answered at once, each with its own answer", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2)
      const { sessions } = yield* connectPeer(address, options(1))
      yield* sessions.open(open)
      const texts = yield* Effect.forEach(
        Array.from({ length: 200 }, (_, index) => `call ${index} ${"x".repeat(index * 50)}`),
        (words) =>
          Effect.gen(function* () {
            const { submission_id } = yield* sessions.submit({ ...target, content: said(words), requestId: words })
            const { text } = yield* sessions.awaitSubmission({ ...target, submissionId: submission_id })
            return text === words.toUpperCase()
          }),
        { concurrency: "unbounded" },
      )
      expect(texts).toEqual(Array.from({ length: 200 }, () => true))
    }),
  )

  it.scopedLive("sees each event of a watch at once and in order, and the end", () =>
    Effect.gen(function* () {
      const { address, fake } = yield* node(2)
      const { sessions } = yield* connectPeer(address, options(1))
      yield* sessions.open(open)
      const seen: Array<Event> = []
      yield* Stream.runForEach(sessions.watch({ ...target, after: null }), (event) =>
        Effect.sync(() => {
          seen.push(event)
          // The next event comes only after this one was seen.
          if (event.seq_no < 300) fake.emit(1, { type: "text_delta", text: "é".repeat(event.seq_no) })
          else fake.endWatches(1)
        }),
      )
      expect(seen.map((event) => event.seq_no)).toEqual(Array.from({ length: 301 }, (_, index) => index))
    }),
  )

  it.scopedLive("that reads a watch slowly holds up neither its other calls nor the other node", () =>
    Effect.gen(function* () {
      const { address, fake } = yield* node(2)
      const { sessions } = yield* connectPeer(address, options(1))
      yield* sessions.open(open)
      const started = yield* Deferred.make<void>()
      yield* Effect.forkScoped(
        Stream.runForEach(sessions.watch({ ...target, after: null }), () =>
          Effect.zipRight(Deferred.succeed(started, undefined), Effect.never),
        ),
      )
      yield* Deferred.await(started)
      const burst = Effect.suspend(() => {
        for (let i = 0; i < 500; i++) fake.emit(1, { type: "text_delta", text: "x".repeat(100) })
        return sessions.state(target)
      })
      yield* burst.pipe(Effect.repeat({ until: () => fake.watchers(1) === 0 }))
    }),
  )

  it.scopedLive("ends a watch there when it stops reading it here", () =>
    Effect.gen(function* () {
      const { address, fake } = yield* node(2)
      const { sessions } = yield* connectPeer(address, options(1))
      yield* sessions.open(open)
      yield* Stream.runHead(sessions.watch({ ...target, after: null }))
      yield* sessions.state(target).pipe(Effect.repeat({ until: () => fake.watchers(1) === 0 }))
    }),
  )

  it.scopedLive("has every call and watch that waits end with OwnerGone when the other one leaves", () =>
    Effect.gen(function* () {
      const life = yield* Scope.make()
      yield* Effect.addFinalizer(() => Scope.close(life, Exit.void))
      const { address } = yield* Scope.extend(node(2, { hold: true }), life)
      const { sessions, gone } = yield* connectPeer(address, options(1))
      yield* sessions.open(open)
      const { submission_id } = yield* sessions.submit({ ...target, content: said("a"), requestId: null })
      const waiting = yield* Effect.fork(
        Effect.flip(sessions.awaitSubmission({ ...target, submissionId: submission_id })),
      )
      const watched = yield* Deferred.make<void>()
      const watching = yield* Effect.fork(
        Effect.flip(
          Stream.runForEach(sessions.watch({ ...target, after: null }), () => Deferred.succeed(watched, undefined)),
        ),
      )
      yield* Deferred.await(watched)
      yield* Scope.close(life, Exit.void)
      expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "OwnerGone" })
      expect(yield* Fiber.join(watching)).toMatchObject({ _tag: "OwnerGone" })
      yield* gone
      expect(yield* Effect.flip(sessions.tree)).toMatchObject({ _tag: "OwnerGone" })
    }),
  )

  it.scopedLive("of another version of the program is welcome, so that nodes can be replaced one by one", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2, { self: identity(2, { version: "3.0.0" }) })
      const { peer, sessions } = yield* connectPeer(address, options(1))
      expect(peer.version).toBe("3.0.0")
      expect(yield* sessions.open(open)).toMatchObject({ conversation_id: 1 })
    }),
  )
})

describe("a node turns away", () => {
  const reason = (serving: Parameters<typeof node>[1], calling: Parameters<typeof options>[1] = {}) =>
    Effect.gen(function* () {
      const { address } = yield* node(2, serving)
      return (yield* Effect.flip(connectPeer(address, options(1, calling)))).reason
    })

  it.scopedLive("another secret, another database, names of another system, and itself", () =>
    Effect.gen(function* () {
      const other = Redacted.make("another secret, long enough")
      expect(yield* reason({}, { secret: other })).toBe("secret")
      expect(yield* reason({}, { self: identity(1, { system: "database two" }) })).toBe("system")
      expect(yield* reason({ onlyNames: "super_pi" }, { self: identity(1, { name: "demo@b" }) })).toBe("name")
      expect(yield* reason({}, { onlyNames: "demo" })).toBe("name")
      expect(yield* reason({}, { self: identity(2) })).toBe("self")
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("a proof that was heard on another connection", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2)
      /** Says hello, then whatever `next` makes of the other side's hello; answers all that came back. */
      const talk = (hello: string, next: (theirs: string) => string) =>
        Effect.async<ReadonlyArray<string>>((resume) => {
          const socket: Socket = connectTcp(address)
          let heard = ""
          let isSaid = false
          socket.on("connect", () => socket.write(`${hello}\n`))
          socket.on("error", () => undefined)
          socket.on("data", (bytes) => {
            heard += String(bytes)
            if (isSaid || !heard.includes("\n")) {
              if (heard.split("\n").length > 2) socket.destroy()
              return
            }
            isSaid = true
            socket.write(`${next(heard.split("\n")[0] ?? "")}\n`)
          })
          socket.on("close", () => resume(Effect.succeed(heard.split("\n"))))
        })
      const hello = renderHello("instance 1", "ab".repeat(32))
      let proof = ""
      const first = yield* talk(hello, (theirs) => {
        proof = renderProof(Redacted.value(secret), "caller", { caller: hello, server: theirs }, identity(1))
        return proof
      })
      expect(first[1]).toContain('"proof"')
      const second = yield* talk(hello, () => proof)
      expect(second[1]).toBe('{"refused":"secret"}')
      // Nor is the other side's own proof one: it is bound to its role.
      expect((yield* talk(hello, () => first[1] ?? ""))[1]).toBe('{"refused":"secret"}')
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("a program that speaks only newer protocols, and is told apart from a stranger", () =>
    Effect.gen(function* () {
      const listen = (line: string) =>
        Effect.map(
          Effect.acquireRelease(
            Effect.async<ReturnType<typeof createServer>>((resume) => {
              const server = createServer((socket) => {
                socket.on("error", () => undefined)
                socket.write(`${line}\n`)
              })
              server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
            }),
            (server) => Effect.sync(() => server.close()),
          ),
          (server) => {
            const address = server.address()
            return { host: "127.0.0.1", port: typeof address === "object" && address !== null ? address.port : 0 }
          },
        )
      const newer = renderHello("instance 2", "ab".repeat(32), { least: 8, most: 9 })
      const fault = (line: string) =>
        Effect.flatMap(listen(line), (address) =>
          Effect.map(Effect.flip(connectPeer(address, options(1, { timeoutMs: 200 }))), (one) => one.reason),
        )
      expect(yield* fault(newer)).toBe("protocol")
      expect(yield* fault("SSH-2.0-OpenSSH")).toBe("stranger")
      expect(yield* fault(renderHello("instance 2", "ab".repeat(32), { least: 0, most: 9 }))).toBe("silent")
    }),
  )

  it.scopedLive("everybody while the node behind its port is not there yet, and nobody listens once it closed", () =>
    Effect.gen(function* () {
      const life = yield* Scope.make()
      const listener = yield* Scope.extend(listenPeers({ host: "127.0.0.1", port: 0, tls: null }), life)
      const address = { host: "127.0.0.1", port: listener.port }
      expect((yield* Effect.flip(connectPeer(address, options(1)))).reason).toBe("left")
      yield* Scope.close(life, Exit.void)
      expect((yield* Effect.flip(connectPeer(address, options(1)))).reason).toBe("refused")
    }),
  )
})
