/**
 * Supervisors under random crash sequences, and the pure rules behind them. A failing run prints its seed; replay it with
 * `FC_SEED=<seed> npx vitest run test/supervisors/properties.test.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Option } from "effect"
import { ActorSystem, ask, behavior, type ReplyTo, spawn, stop, tell } from "../../src/actors/kernel/index.ts"
import { RestartWindow } from "../../src/actors/kernel/restart.ts"
import { child, type Strategy, supervisor } from "../../src/supervisors/index.ts"
import { affected } from "../../src/supervisors/strategy.ts"
import { silently, withSystem } from "../kernel/support.ts"

const runs = process.env.FC_SEED === undefined ? {} : { seed: Number(process.env.FC_SEED) }
const strategies = fc.constantFrom<Strategy>("one_for_one", "one_for_all", "rest_for_one")

describe("the restart window", () => {
  it("admits a restart exactly when fewer than the maximum lie within the window before it", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(500), { maxLength: 300 }),
        fc.nat(8),
        fc.integer({ min: 1, max: 2_000 }),
        (gaps, maxRestarts, withinMs) => {
          const window = new RestartWindow()
          const admitted: Array<number> = []
          let now = 0
          for (const gap of gaps) {
            now += gap
            const recent = admitted.filter((at) => now - at < withinMs).length
            expect(window.admit(now, { maxRestarts, withinMs })).toBe(recent < maxRestarts)
            if (recent < maxRestarts) admitted.push(now)
          }
        },
      ),
      runs,
    )
  })
})

describe("a strategy", () => {
  it("always takes the failed child along, keeps the order of start, and touches nothing outside of the list", () => {
    fc.assert(
      fc.property(strategies, fc.integer({ min: 1, max: 20 }), fc.nat(19), (strategy, count, at) => {
        const failed = at % count
        const range = affected(strategy, count, failed)
        expect(range).toContain(failed)
        expect(range).toEqual([...range].sort((a, b) => a - b))
        expect(range.every((index) => index >= 0 && index < count)).toBe(true)
        const expected = { one_for_one: 1, one_for_all: count, rest_for_one: count - failed }
        expect(range).toHaveLength(expected[strategy])
      }),
      runs,
    )
  })
})

describe("a supervisor under random crashes", () => {
  type Message = { readonly crash: true } | { readonly n: number } | { readonly read: ReplyTo<ReadonlyArray<number>> }
  const ids = ["a", "b", "c", "d"]
  const steps = fc.array(
    fc.oneof(
      fc.record({ to: fc.constantFrom(...ids), crash: fc.constant(true) }),
      fc.record({ to: fc.constantFrom(...ids), crash: fc.constant(false) }),
    ),
    { maxLength: 40 },
  )

  it("keeps every message but those that crashed their actor, in order, and every child up", () =>
    fc.assert(
      fc.asyncProperty(strategies, steps, async (strategy, script) => {
        /** What each child handled, in all of its incarnations. */
        const handled = new Map(ids.map((id): [string, Array<number>] => [id, []]))
        let living = 0
        let most = 0
        const worker = (id: string) =>
          behavior<null, Message>({
            init: () => {
              most = Math.max(most, ++living)
              return null
            },
            receive: (state, message) => {
              if ("crash" in message) return Effect.fail("crash")
              if ("n" in message) handled.get(id)?.push(message.n)
              else message.read.succeed(handled.get(id) ?? [])
              return Effect.succeed(state)
            },
            onStop: () =>
              Effect.sync(() => {
                living--
              }),
          })
        const sent = new Map(ids.map((id): [string, Array<number>] => [id, []]))
        const outcome = await Effect.gen(function* () {
          const { registry, tree } = yield* ActorSystem
          const top = yield* spawn(
            supervisor({
              strategy,
              maxRestarts: script.length,
              withinMs: 1,
              children: ids.map((id) => child(id, worker(id), { register: id })),
            }),
          )
          const refs = new Map<string, Parameters<typeof tell<Message>>[0]>()
          for (const id of ids) refs.set(id, Option.getOrThrow(yield* registry.whereis<Message>(id)))
          const to = (id: string) => Option.getOrThrow(Option.fromNullable(refs.get(id)))
          for (const [n, step] of script.entries()) {
            if (!step.crash) sent.get(step.to)?.push(n)
            yield* tell(to(step.to), step.crash ? { crash: true as const } : { n })
          }
          const read = new Map<string, ReadonlyArray<number>>()
          for (const id of ids) {
            read.set(id, yield* ask(to(id), (reply: ReplyTo<ReadonlyArray<number>>): Message => ({ read: reply })))
          }
          const shape = yield* tree()
          yield* stop(top)
          return { read, order: shape.children[0]?.children.map(({ name }) => name) }
        }).pipe(withSystem, silently, Effect.runPromise)
        expect(outcome.read).toEqual(sent)
        expect(outcome.order).toEqual(ids)
        expect(most).toBeLessThanOrEqual(ids.length)
        expect(living).toBe(0)
      }),
      { numRuns: 80, ...runs },
    ))
})
