/**
 * The places of the sandbox: order, limits, and none lost however a caller ends.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import { Slots } from "../../src/tools/slots.ts"

const named = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `slot-${at}` }))

describe("slots", () => {
  it.effect("run as many at once as there are places, the others in the order in which they came", () =>
    Effect.gen(function* () {
      const slots = new Slots(named(2))
      const order: Array<number> = []
      let running = 0
      let most = 0
      yield* Effect.forEach(
        Array.from({ length: 20 }, (_, at) => at),
        (at) =>
          slots.use(() =>
            Effect.gen(function* () {
              most = Math.max(most, ++running)
              order.push(at)
              yield* Effect.yieldNow()
              running--
            }),
          ),
        { concurrency: "unbounded", discard: true },
      )
      expect(most).toBe(2)
      expect(order).toEqual(order.toSorted((a, b) => a - b))
    }),
  )

  it.effect("a holder that fails, breaks or is interrupted gives its place back", () =>
    Effect.gen(function* () {
      const slots = new Slots(named(1))
      yield* Effect.exit(slots.use(() => Effect.fail("no")))
      yield* Effect.exit(slots.use(() => Effect.die("broken")))
      const held = yield* Effect.fork(slots.use(() => Effect.never))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(held)
      expect(yield* slots.use((place) => Effect.succeed(place.name))).toBe("slot-0")
    }),
  )

  it.effect("who is interrupted while waiting gives up the turn and nothing else", () =>
    Effect.gen(function* () {
      const slots = new Slots(named(1))
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.fork(slots.use(() => Deferred.await(gate)))
      yield* Effect.yieldNow()
      const second = yield* Effect.fork(slots.use(() => Effect.succeed("second")))
      const third = yield* Effect.fork(slots.use(() => Effect.succeed("third")))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(second)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      expect(yield* Fiber.join(third)).toBe("third")
    }),
  )

  it("never lose a place, however callers end and wherever they are interrupted", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(
          fc.record({ ends: fc.constantFrom("well", "failing", "interrupted"), steps: fc.nat(4), stop: fc.nat(6) }),
          {
            maxLength: 12,
          },
        ),
        async (places, callers) => {
          const program = Effect.gen(function* () {
            const slots = new Slots(named(places))
            const work = (steps: number) =>
              Effect.forEach(Array.from({ length: steps }), () => Effect.yieldNow(), { discard: true })
            const fibers = yield* Effect.forEach(callers, ({ ends, steps, stop }) =>
              Effect.gen(function* () {
                const fiber = yield* Effect.fork(
                  slots.use(() => Effect.zipRight(work(steps), ends === "failing" ? Effect.fail("no") : Effect.void)),
                )
                if (ends === "interrupted") yield* Effect.fork(Effect.zipRight(work(stop), Fiber.interrupt(fiber)))
                return fiber
              }),
            )
            yield* Effect.forEach(fibers, Fiber.await)
            // All places are there again: as many hold one at once.
            const gate = yield* Deferred.make<void>()
            let holding = 0
            const holders = yield* Effect.forEach(named(places), () =>
              Effect.fork(
                slots.use(() =>
                  Effect.suspend(() => {
                    if (++holding === places) Deferred.unsafeDone(gate, Effect.void)
                    return Deferred.await(gate)
                  }),
                ),
              ),
            )
            yield* Effect.forEach(holders, Fiber.join)
            return holding
          })
          expect(await Effect.runPromise(program)).toBe(places)
        },
      ),
      { numRuns: 300 },
    ))
})
