/**
 * Time that is longer than a timer can be, 24.8 days: kernel timers on the live clock and on any other, and tasks that sleep for months.
 */
import { Clock, Duration, Effect, Fiber, Schema, TestClock, TestContext } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { clockTimers, liveTimers, sleepLong } from "../../../src/actors/kernel/timers.ts"
import { defineTask, Step, Tasks } from "../../../src/actors/task/index.ts"
import { Sleepers } from "../../../src/actors/task/sleepers.ts"
import { TaskId } from "../../../src/domain/ids.ts"
import { memoryDatabase } from "../../../src/storage/memory/store.ts"
import { nodeOn } from "./harness.ts"

const day = 86_400_000

const nap = defineTask({
  ...{ kind: "test.nap", version: 1, result: Schema.Number },
  input: Schema.Struct({ days: Schema.Number, inside: Schema.Boolean }),
  checkpoint: Schema.Union(
    Schema.Struct({ phase: Schema.Literal("lie down") }),
    Schema.Struct({ phase: Schema.Literal("get up") }),
  ),
  initial: () => ({ phase: "lie down" as const }),
  phases: {
    "lie down": ({ input }, runtime) =>
      input.inside
        ? Effect.as(runtime.sleep("nap", { ms: input.days * day }), Step.next({ phase: "get up" }))
        : Effect.succeed(Step.sleep({ ms: input.days * day }, { phase: "get up" })),
    "get up": () => Effect.map(Clock.currentTimeMillis, (now) => Step.complete(now / day)),
  },
})

describe("a task on a test clock", () => {
  it.each([false, true])("sleeps for 100 days and not a day less (inside its phase: %s)", (inside) => {
    const database = memoryDatabase()
    const life = <A, E>(use: Effect.Effect<A, E, Tasks>) =>
      Effect.flatMap(Tasks, (tasks) => Effect.zipRight(tasks.register(nap), use)).pipe(Effect.provide(nodeOn(database)))
    const program = Effect.gen(function* () {
      const id = yield* life(
        Effect.gen(function* () {
          const tasks = yield* Tasks
          const started = yield* tasks.start(nap, { days: 100, inside })
          // Its wake time is committed: in the row, or as a memo.
          const asleep = () =>
            database.records.documents.size > 0 || database.records.tasks.get(started)?.status === "sleeping"
          yield* Effect.repeat(Effect.yieldNow(), { until: asleep })
          yield* TestClock.adjust(Duration.days(40))
          return started
        }),
      )
      // Another life of the node has the rest.
      yield* life(
        Effect.gen(function* () {
          const tasks = yield* Tasks
          const waiting = yield* Effect.fork(tasks.outcome(nap, id))
          yield* TestClock.adjust(Duration.days(59))
          expect((yield* tasks.state(id)).task.status).toBe(inside ? "running" : "sleeping")
          yield* TestClock.adjust(Duration.days(1))
          expect(yield* Fiber.join(waiting)).toEqual({ status: "completed", result: 100 })
        }),
      )
    })
    return Effect.runPromise(Effect.provide(program, TestContext.TestContext))
  })
})

describe("a kernel timer", () => {
  it("on a clock that is not the live one waits longer than 24.8 days, and can be cancelled", () => {
    const program = Effect.gen(function* () {
      const runtime = yield* Effect.runtime<never>()
      const clock = yield* Effect.clock
      const timers = clockTimers(clock, (effect) => {
        const fiber = Effect.runSync(Effect.forkDaemon(Effect.provide(effect, runtime)))
        return () => fiber.unsafeInterruptAsFork(fiber.id())
      })
      const fired: Array<string> = []
      timers.after(60 * day, () => fired.push("kept"))
      timers.after(60 * day, () => fired.push("cancelled"))()
      const slept = yield* Effect.fork(sleepLong(60 * day))
      yield* TestClock.adjust(Duration.days(59))
      expect(fired).toEqual([])
      expect(yield* Fiber.poll(slept)).toMatchObject({ _tag: "None" })
      yield* TestClock.adjust(Duration.days(1))
      yield* Fiber.join(slept)
      expect(fired).toEqual(["kept"])
    })
    return Effect.runPromise(Effect.provide(program, TestContext.TestContext))
  })

  describe("on the live clock", () => {
    beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
    afterEach(() => vi.useRealTimers())

    it("waits longer than 24.8 days, in pieces", () => {
      const fired: Array<string> = []
      liveTimers.after(60 * day, () => fired.push("kept"))
      vi.advanceTimersByTime(60 * day - 1)
      expect(fired).toEqual([])
      vi.advanceTimersByTime(1)
      expect(fired).toEqual(["kept"])
    })

    it("is cancelled in whatever piece it is, and for ever means for ever", () => {
      const fired: Array<string> = []
      const cancel = liveTimers.after(60 * day, () => fired.push("cancelled"))
      liveTimers.after(Number.POSITIVE_INFINITY, () => fired.push("for ever"))
      vi.advanceTimersByTime(30 * day)
      cancel()
      vi.advanceTimersByTime(400 * day)
      expect(fired).toEqual([])
      expect(vi.getTimerCount()).toBe(0)
    })
  })
})

describe("the sleepers", () => {
  it("come out by time, whatever the order in which they went in", () => {
    const sleepers = new Sleepers()
    const times = [5, 3, 9, 1, 7, 3, 8, 2, 6, 4]
    for (const [index, at] of times.entries()) sleepers.add({ id: TaskId.make(index + 1), at })
    expect(sleepers.next).toBe(1)
    expect(sleepers.due(4)).toHaveLength(5)
    expect(sleepers.next).toBe(5)
    expect(sleepers.due(100).map((id) => times[id - 1])).toEqual([5, 6, 7, 8, 9])
    expect(sleepers.next).toBeNull()
  })
})
