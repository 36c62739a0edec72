/**
 * The conversations of a node in a cluster whose open work does not begin at once.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Option, TestClock } from "effect"
import { ServiceFailure } from "../../src/domain/failure.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import type { ClusterStoreService } from "../../src/storage/cluster-port.ts"
import { makeMachines } from "../../src/supervisors/cluster/machines.ts"
import { makeShards } from "../../src/supervisors/cluster/shards.ts"
import type { ConversationRef } from "../../src/supervisors/conversations.ts"

const id = ConversationId.make(1)

/** A node that holds every shard, with one busy conversation; `begins` says of each try whether it is at work after it. */
const node = (begins: (tries: number) => "works" | "ends" | "fails") =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const shards = yield* makeShards
    const times: Array<number> = []
    let works = false
    const ref = { path: "/one" } as unknown as ConversationRef
    const machines = makeMachines({
      now: () => clock.unsafeCurrentTimeMillis(),
      shards,
      plain: {
        peek: () => Effect.sync(() => (works ? Option.some(ref) : Option.none())),
        get: () =>
          Effect.suspend(() => {
            times.push(clock.unsafeCurrentTimeMillis())
            const how = begins(times.length)
            works = how === "works"
            const failure = new ServiceFailure({ code: "storage", detail: "the database is away", reference: "test" })
            return how === "fails" ? Effect.fail(failure) : Effect.succeed(ref)
          }),
      },
      // What machines ask of it.
      store: {
        placeOfConversation: () => Effect.succeed(1),
        busyConversations: () => Effect.succeed([id]),
      } as unknown as ClusterStoreService,
    })
    yield* machines.begin
    yield* shards.gain([1, 2])
    yield* TestClock.adjust(0)
    return { times, stops: () => (works = false) }
  })

describe("open work that is at work nowhere", () => {
  it.scoped("that ended again is begun at the next look, and more and more rarely while it keeps ending", () =>
    Effect.gen(function* () {
      const { times } = yield* node(() => "ends")
      yield* TestClock.adjust("200 seconds")
      const pauses = times.slice(1).map((at, nth) => at - (times[nth] ?? 0))
      expect(pauses).toEqual([5_000, 5_000, 10_000, 20_000, 30_000, 30_000, 30_000, 30_000, 30_000])
    }),
  )

  it.scoped("is left alone while it works, and begun at once again when it has ended later", () =>
    Effect.gen(function* () {
      const { stops, times } = yield* node(() => "works")
      yield* TestClock.adjust("60 seconds")
      expect(times).toEqual([0])
      stops()
      yield* TestClock.adjust("5 seconds")
      expect(times).toEqual([0, 65_000])
    }),
  )

  it.scoped("that cannot start is tried a few times in quick succession, and then like one that ended", () =>
    Effect.gen(function* () {
      const { times } = yield* node(() => "fails")
      yield* TestClock.adjust("4 seconds")
      expect(times).toEqual([0, 100, 300, 700, 1_500, 3_100])
      const now = yield* Clock.currentTimeMillis
      yield* TestClock.adjust("1 seconds")
      expect(times.length).toBeGreaterThan(6)
      expect(times[6]).toBe(now + 1_000)
    }),
  )
})
