/**
 * Signals between nodes on a real server: heard by the others, lost ones told of, nothing waits for them.
 */

import { Deferred, Effect } from "effect"
import * as fc from "fast-check"
import pg from "pg"
import { describe, expect, it } from "vitest"
import { JobId, TaskId } from "../../../src/domain/ids.ts"
import { decodeSignal, encodeSignal, type Signal } from "../../../src/domain/signal.ts"
import { postgresSettings } from "../../../src/storage/postgres/settings.ts"
import { postgresSignals } from "../../../src/storage/postgres/signals.ts"
import type { SignalsService } from "../../../src/storage/signal-port.ts"
import { describePostgres, postgresDatabase } from "../../support/postgres.ts"

const all: ReadonlyArray<Signal> = [
  { type: "jobs", queue: "mail.out" },
  { type: "job", queue: "q", job: JobId.make(7) },
  { type: "pause", queue: "compaction" },
  { type: "task", task: TaskId.make(12) },
]

describe("a signal as a line", () => {
  it("comes back as it was", () => {
    expect(all.map((signal) => decodeSignal(encodeSignal(signal)))).toEqual(all)
  })

  it("is nothing where it is another text: whatever other programs notify", () => {
    for (const text of [
      "",
      "jobs",
      "jobs a b",
      "job x q",
      "job 0 q",
      "task -1",
      "task 1.5",
      `jobs ${"a".repeat(300)}`,
    ]) {
      expect(decodeSignal(text)).toBe(null)
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        const signal = decodeSignal(text)
        if (signal !== null) expect(encodeSignal(signal).length).toBeLessThanOrEqual(200)
      }),
    )
  })
})

describePostgres("signals", () => {
  /** What a node hears, and until when. */
  const listening = (signals: SignalsService) =>
    Effect.gen(function* () {
      const heard: Array<Signal | null> = []
      const ready = yield* Deferred.make<void>()
      const wanted = new Map<string, Deferred.Deferred<void>>()
      yield* signals.listen((signal) => {
        heard.push(signal)
        if (signal === null) Deferred.unsafeDone(ready, Effect.void)
        const waiting = wanted.get(signal === null ? "null" : encodeSignal(signal))
        if (waiting !== undefined) Deferred.unsafeDone(waiting, Effect.void)
      })
      const until = (what: string) =>
        Effect.suspend(() => {
          const waiting = Deferred.unsafeMake<void>(fiber)
          wanted.set(what, waiting)
          return Deferred.await(waiting)
        })
      const fiber = yield* Effect.fiberId
      return { heard, ready: Deferred.await(ready), until }
    })

  const two = Effect.gen(function* () {
    const database = yield* postgresDatabase
    const settings = postgresSettings(database.env)
    if (settings._tag === "Left") throw settings.left
    const [one, other] = [yield* postgresSignals(settings.right), yield* postgresSignals(settings.right)]
    const [first, second] = [yield* listening(one), yield* listening(other)]
    yield* first.ready
    yield* second.ready
    return { database, one, other, first, second }
  })

  it("reach every other node, each once however often it is told meanwhile, and not the one that tells", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { first, one, second } = yield* two
          const last = second.until("task 99")
          const waiting = yield* Effect.fork(last)
          yield* Effect.yieldNow()
          for (let times = 0; times < 50; times++) one.tell(all)
          one.tell([{ type: "task", task: TaskId.make(99) }])
          yield* waiting
          const told = second.heard.filter((signal) => signal !== null)
          expect(told.length).toBeLessThanOrEqual(all.length * 3 + 1)
          expect(new Set(told.map(encodeSignal))).toEqual(new Set([...all.map(encodeSignal), "task 99"]))
          expect(first.heard).toEqual([null])
        }),
      ),
    ))

  it("that may have been missed are told of when the connection is back", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { database, one, second } = yield* two
          const again = yield* Effect.fork(second.until("null"))
          yield* Effect.yieldNow()
          yield* Effect.promise(async () => {
            const client = new pg.Client({ connectionString: database.url })
            await client.connect()
            await client.query(
              "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'super-pi signals' AND datname = current_database()",
            )
            await client.end()
          })
          yield* again
          const heard = yield* Effect.fork(second.until("task 5"))
          yield* Effect.yieldNow()
          // The other connection may still be on its way: a hint is dropped then, and told again.
          const tell = Effect.sync(() => one.tell([{ type: "task", task: TaskId.make(5) }]))
          yield* Effect.race(heard, Effect.forever(Effect.delay(tell, 20)))
        }),
      ),
    ))
})
