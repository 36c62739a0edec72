/**
 * The shards of a node: held, leaving, gone; nobody's work outlives its lock.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, TestClock } from "effect"
import * as fc from "fast-check"
import { shardCount, shardOf } from "../../src/domain/cluster.ts"
import { makeShards } from "../../src/supervisors/cluster/shards.ts"

describe("the shards of a node", () => {
  it("spread places over all shards, 1 to the number of them", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (place) => {
        const shard = shardOf(place)
        expect(shard).toBeGreaterThanOrEqual(1)
        expect(shard).toBeLessThanOrEqual(shardCount)
        expect(shardOf(place)).toBe(shard)
      }),
    )
    const seen = new Set(Array.from({ length: shardCount }, (_, place) => shardOf(place + 1)))
    expect(seen.size).toBe(shardCount)
  })

  it.scoped("tell a listener at once of what is held, and later of what comes", () =>
    Effect.gen(function* () {
      const shards = yield* makeShards
      yield* shards.gain([1, 2])
      const told: Array<ReadonlyArray<number>> = []
      const later = yield* Deferred.make<void>()
      yield* shards.listen({
        gained: (come) =>
          Effect.suspend(() => {
            told.push(come)
            return told.length === 2 ? Deferred.succeed(later, undefined) : Effect.void
          }),
        leaving: () => Effect.void,
      })
      yield* shards.gain([2, 3])
      yield* Deferred.await(later)
      expect(told).toEqual([[1, 2], [3]])
      expect(shards.held()).toEqual([1, 2, 3])
    }),
  )

  it.scoped("give a shard away only when its work has stopped, and hold it no more from the beginning of that", () =>
    Effect.gen(function* () {
      const shards = yield* makeShards
      const stopped = yield* Deferred.make<void>()
      const asked = yield* Deferred.make<number>()
      yield* shards.listen({
        gained: () => Effect.void,
        leaving: (_, graceMs) => Effect.zipRight(Deferred.succeed(asked, graceMs), Deferred.await(stopped)),
      })
      yield* shards.gain([7])
      const leave = yield* Effect.fork(shards.leave([7], 1234))
      expect(yield* Deferred.await(asked)).toBe(1234)
      expect(shards.holds(6)).toBe(false)
      expect(shards.has(7)).toBe(true)
      yield* Deferred.succeed(stopped, undefined)
      yield* leave
      expect(shards.has(7)).toBe(false)
    }),
  )

  it.scoped("hold a shard again whose lock came back while its work was stopping, once that has stopped", () =>
    Effect.gen(function* () {
      const shards = yield* makeShards
      const stopped = yield* Deferred.make<void>()
      const again = yield* Deferred.make<void>()
      let times = 0
      yield* shards.listen({
        gained: () => Effect.suspend(() => (++times === 2 ? Deferred.succeed(again, undefined) : Effect.void)),
        leaving: () => Deferred.await(stopped),
      })
      yield* shards.gain([7])
      yield* shards.lose([7])
      yield* Effect.repeat(Effect.yieldNow(), { until: () => !shards.holds(6) })
      yield* shards.gain([7])
      expect(shards.held()).toEqual([])
      yield* Deferred.succeed(stopped, undefined)
      yield* Deferred.await(again)
      expect(shards.held()).toEqual([7])
    }),
  )

  it.scoped("go even where their work does not stop: the lock is not kept for ever", () =>
    Effect.gen(function* () {
      const shards = yield* makeShards
      yield* shards.listen({ gained: () => Effect.void, leaving: () => Effect.never })
      yield* shards.gain([1])
      const leave = yield* Effect.fork(shards.leave([1], 5_000))
      yield* TestClock.adjust("30 seconds")
      yield* leave
      expect(shards.all()).toEqual([])
    }),
  )

  it.scoped("that leave stop the work of every listener, also where one of them breaks", () =>
    Effect.gen(function* () {
      const shards = yield* makeShards
      let stopped = 0
      yield* shards.listen({ gained: () => Effect.void, leaving: () => Effect.die(new Error("broken")) })
      yield* shards.listen({ gained: () => Effect.void, leaving: () => Effect.sync(() => stopped++) })
      yield* shards.gain([1, 2])
      yield* shards.leave([1, 2, 3], 0)
      expect(stopped).toBe(1)
      expect(shards.all()).toEqual([])
    }),
  )
})
