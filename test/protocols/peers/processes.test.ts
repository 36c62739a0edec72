/** A node in a process of its own that is killed, or paused, in the middle of calls and streams. */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted, type Scope, Stream } from "effect"
import { ConversationId } from "../../../src/domain/ids.ts"
import { type ConnectOptions, connectPeer } from "../../../src/protocols/peers/connect.ts"
import { bundle, programEnv } from "../bundle.ts"
import { node, open, options, peersOf, said, secret } from "./support.ts"

let program = ""
beforeAll(async () => {
  program = await bundle("node-peer")
})

interface Remote {
  readonly port: number
  readonly child: ChildProcess
}

/** Killed with the scope. */
const start = (epoch: number): Effect.Effect<Remote, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Remote>((resume) => {
      const child = spawn(process.execPath, [program], {
        stdio: ["pipe", "pipe", "inherit"],
        env: { ...process.env, ...programEnv, NAME: `n${epoch}`, EPOCH: `${epoch}`, SECRET: Redacted.value(secret) },
      })
      createInterface({ input: child.stdout }).once("line", (line) => {
        const { port }: { readonly port: number } = JSON.parse(line)
        resume(Effect.succeed({ port, child }))
      })
    }),
    ({ child }) =>
      Effect.async<void>((resume) => {
        if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      }),
  )

const target = { conversationId: ConversationId.make(1) }

/** A call that waits, and a stream in the middle of its deltas, at a node of its own; how each of them ends. */
const busy = (rest: Partial<ConnectOptions> = {}) =>
  Effect.gen(function* () {
    const { port, child } = yield* start(2)
    const { sessions, gone } = yield* connectPeer({ host: "127.0.0.1", port }, options(1, rest))
    yield* sessions.open(open)
    const { submission_id } = yield* sessions.submit({ ...target, content: said("a"), requestId: "a" })
    const call = yield* Effect.fork(Effect.flip(sessions.awaitSubmission({ ...target, submissionId: submission_id })))
    const seen: Array<string> = []
    const streaming = yield* Deferred.make<void>()
    const stream = yield* Effect.fork(
      Effect.flip(
        Stream.runForEach(sessions.watch({ ...target, after: null }), (event) =>
          Effect.suspend(() => {
            if (event.type === "text_delta") seen.push(event.text)
            child.stdin?.write(`${seen.length}\n`)
            return seen.length < 20 ? Effect.void : Deferred.succeed(streaming, undefined)
          }),
        ),
      ),
    )
    yield* Deferred.await(streaming)
    return { child, sessions, gone, seen, ends: Effect.all([Fiber.join(call), Fiber.join(stream)]) }
  })

describe("a node that is killed", () => {
  it.scopedLive(
    "is gone at once for the calls and streams that wait for it, and what came before is whole and in order",
    () =>
      Effect.gen(function* () {
        // No ping would tell within the time of a test.
        const { child, gone, seen, ends } = yield* busy({ pingMs: 600_000 })
        child.kill("SIGKILL")
        expect(yield* ends).toMatchObject([{ _tag: "OwnerGone" }, { _tag: "OwnerGone" }])
        yield* gone
        expect(seen).toEqual(Array.from({ length: seen.length }, (_, index) => `${index}`))
      }),
  )

  it.scopedLive("is connected again in its next life, for calls that wait meanwhile", () =>
    Effect.gen(function* () {
      const first = yield* start(2)
      const peers = yield* peersOf(1, [], { waitMs: 60_000 })
      yield* peers.wanted([{ epoch: 2, address: { host: "127.0.0.1", port: first.port } }])
      yield* (yield* peers.link(2)).open(open)
      first.child.kill("SIGKILL")
      const next = yield* start(3)
      yield* peers.wanted([{ epoch: 3, address: { host: "127.0.0.1", port: next.port } }])
      expect(yield* (yield* peers.link(3)).open(open)).toMatchObject({ conversation_id: 1 })
    }),
  )
})

describe("a node that is paused", () => {
  it.scopedLive("is gone for the calls and streams that wait for it after two pings without an answer", () =>
    Effect.gen(function* () {
      const { child, ends, gone, sessions } = yield* busy({ pingMs: 500 })
      child.kill("SIGSTOP")
      expect(yield* ends).toMatchObject([{ _tag: "OwnerGone" }, { _tag: "OwnerGone" }])
      yield* gone
      child.kill("SIGCONT")
      expect(yield* Effect.flip(sessions.tree)).toMatchObject({ _tag: "OwnerGone" })
    }),
  )

  it.scopedLive("has its watches ended at the other nodes, which hear nothing from it", () =>
    Effect.gen(function* () {
      const { address, fake } = yield* node(2, { silentMs: 700 })
      // One that never pings is as good as one that is paused.
      const { sessions, gone } = yield* connectPeer(address, options(1, { pingMs: 600_000 }))
      yield* sessions.open(open)
      const watching = yield* Effect.fork(Effect.flip(Stream.runDrain(sessions.watch({ ...target, after: null }))))
      yield* gone
      expect(yield* Fiber.join(watching)).toMatchObject({ _tag: "OwnerGone" })
      yield* Effect.yieldNow().pipe(Effect.repeat({ until: () => fake.watchers(1) === 0 }))
    }),
  )
})
