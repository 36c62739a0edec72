/**
 * File locks and the sandbox as actors of a node: the same behaviour, and what a crash of the actor does.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger, Schedule } from "effect"
import { type FileLockMessage, fileLockLayer } from "../../src/actors/file-lock.ts"
import { ActorSystem, tell } from "../../src/actors/kernel/index.ts"
import { sandboxLayer } from "../../src/actors/sandbox.ts"
import { FileLocks } from "../../src/tools/file-lock.ts"
import { Sandbox } from "../../src/tools/sandbox.ts"
import { fileLockBehaviour } from "./file-lock-behaviour.ts"
import { sandboxBehaviour } from "./sandbox-behaviour.ts"

const system = ActorSystem.layer()

/** The crash is meant. */
const quiet = Logger.remove(Logger.defaultLogger)

fileLockBehaviour("the file lock actor", Layer.provide(fileLockLayer(), system))
sandboxBehaviour("the sandbox actors", Layer.provide(sandboxLayer({ size: 2 }), system))

describe("a crash of the file lock actor", () => {
  it.live("takes no lock from its holder and lets those who waited in afterwards", () =>
    Effect.gen(function* () {
      const locks = yield* FileLocks
      const [holding, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const order: Array<string> = []
      const say = (word: string) =>
        Effect.sync(() => {
          order.push(word)
        })
      const holder = yield* Effect.fork(
        locks.withLock(
          ["/a"],
          Deferred.succeed(holding, undefined).pipe(
            Effect.zipRight(Deferred.await(release)),
            Effect.zipRight(say("holder")),
          ),
        ),
      )
      yield* Deferred.await(holding)
      const waiter = yield* Effect.fork(locks.withLock(["/a"], say("waiter")))
      yield* Effect.yieldNow()
      const actors = yield* ActorSystem
      const node = Effect.map(actors.tree(), ({ children }) => children.find(({ name }) => name === "file-locks"))
      yield* Effect.repeat(node, { until: (now) => now?.state === "1 held, 1 waiting" })
      // A message that the actor does not understand: its handler breaks on the missing paths.
      const found = yield* actors.registry.whereis<FileLockMessage>("file-locks")
      const ref = yield* found
      yield* tell(ref, { type: "request", id: 999 } as unknown as FileLockMessage) // deliberately malformed
      // Another path: answered only by the next incarnation.
      expect(yield* locks.withLock(["/b"], Effect.succeed("alive"))).toBe("alive")
      expect((yield* node)?.restarts).toBe(1)
      expect(order).toEqual([])
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.join(waiter)
      expect(order).toEqual(["holder", "waiter"])
    }).pipe(Effect.provide(fileLockLayer()), Effect.provide(system), Effect.provide(quiet)),
  )
})

describe("a sandbox slot", () => {
  it.live("shows in the tree what it did, and gives its thread up when nothing comes for a while", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox
      const actors = yield* ActorSystem
      const state = Effect.map(actors.tree(), ({ children }) => children[0]?.state)
      expect(yield* state).toBe("cold, 0 done, 0 ended")
      const diff = { before: "a", after: "b", diffLines: 10 }
      yield* sandbox.run("diff", diff, { deadlineMs: 10_000, heapMb: 64 })
      expect(yield* state).toBe("warm, 1 done, 0 ended")
      yield* Effect.repeat(state, {
        until: (now) => now === "cold, 1 done, 0 ended",
        schedule: Schedule.spaced("5 millis"),
      })
      yield* sandbox.run("diff", diff, { deadlineMs: 10_000, heapMb: 64 })
    }).pipe(Effect.provide(sandboxLayer({ size: 1, idleMs: 50 })), Effect.provide(system)),
  )
})
