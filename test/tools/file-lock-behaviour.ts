/**
 * What file locks do, with and without actors.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Layer } from "effect"
import { FileLocks } from "../../src/tools/file-lock.ts"

export const fileLockBehaviour = (name: string, layer: Layer.Layer<FileLocks, unknown>) =>
  describe(name, () => {
    const scoped = (title: string, body: Effect.Effect<void, unknown, FileLocks>) =>
      it.live(title, () => Effect.provide(body, layer))

    scoped(
      "lets one holder of a path at a time in, in order of arrival",
      Effect.gen(function* () {
        const locks = yield* FileLocks
        const order: Array<string> = []
        let inside = 0
        yield* Effect.forEach(
          Array.from({ length: 50 }, (_, index) => index),
          (index) =>
            locks.withLock(
              ["/a"],
              Effect.gen(function* () {
                inside++
                expect(inside).toBe(1)
                order.push(String(index))
                yield* Effect.yieldNow()
                inside--
              }),
            ),
          { concurrency: "unbounded" },
        )
        expect(order).toEqual(Array.from({ length: 50 }, (_, index) => String(index)))
      }),
    )

    scoped(
      "lets holders of different paths in together",
      Effect.gen(function* () {
        const locks = yield* FileLocks
        const [one, two] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const meet = (mine: Deferred.Deferred<void>, other: Deferred.Deferred<void>) =>
          Effect.zipRight(Deferred.succeed(mine, undefined), Deferred.await(other))
        yield* Effect.all([locks.withLock(["/a"], meet(one, two)), locks.withLock(["/b"], meet(two, one))], {
          concurrency: 2,
        })
      }),
    )

    scoped(
      "never deadlocks when paths are asked for in different orders",
      Effect.gen(function* () {
        const locks = yield* FileLocks
        let done = 0
        const step = Effect.zipRight(
          Effect.yieldNow(),
          Effect.sync(() => {
            done++
          }),
        )
        yield* Effect.forEach(
          Array.from({ length: 90 }, (_, index) => index),
          (index) =>
            locks.withLock(
              [
                ["/a", "/b"],
                ["/b", "/a"],
                ["/b", "/c", "/a", "/b"],
              ][index % 3] ?? [],
              step,
            ),
          { concurrency: "unbounded", discard: true },
        )
        expect(done).toBe(90)
      }),
    )

    scoped(
      "releases after a failure, a defect and an interruption of the holder",
      Effect.gen(function* () {
        const locks = yield* FileLocks
        expect(yield* Effect.flip(locks.withLock(["/a"], Effect.fail("no")))).toBe("no")
        expect(Exit.isFailure(yield* Effect.exit(locks.withLock(["/a"], Effect.die("broken"))))).toBe(true)
        const holding = yield* Deferred.make<void>()
        const holder = yield* Effect.fork(
          locks.withLock(["/a"], Effect.zipRight(Deferred.succeed(holding, undefined), Effect.never)),
        )
        yield* Deferred.await(holding)
        yield* Fiber.interrupt(holder)
        expect(yield* locks.withLock(["/a"], Effect.succeed("free"))).toBe("free")
      }),
    )

    scoped(
      "withdraws a request that is interrupted while it waits",
      Effect.gen(function* () {
        const locks = yield* FileLocks
        const [holding, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const holder = yield* Effect.fork(
          locks.withLock(["/a"], Effect.zipRight(Deferred.succeed(holding, undefined), Deferred.await(release))),
        )
        yield* Deferred.await(holding)
        let entered = false
        const waiter = yield* Effect.fork(
          locks.withLock(
            ["/a", "/b"],
            Effect.sync(() => {
              entered = true
            }),
          ),
        )
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(waiter)
        // The other path of the withdrawn request is free at once.
        expect(yield* locks.withLock(["/b"], Effect.succeed("free"))).toBe("free")
        yield* Deferred.succeed(release, undefined)
        yield* Fiber.join(holder)
        expect(yield* locks.withLock(["/a"], Effect.succeed("free"))).toBe("free")
        expect(entered).toBe(false)
      }),
    )
  })
