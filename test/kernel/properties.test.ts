/**
 * Properties of mailboxes: order per sender, nothing lost short of a crash, bounds. A failing run prints its seed; replay it with
 * `FC_SEED=<seed> npx vitest run test/kernel/properties.test.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { ActorSystem, ask, behavior, type ReplyTo, spawn, tell } from "../../src/actors/kernel/index.ts"
import { EMPTY, Mailbox } from "../../src/actors/kernel/mailbox.ts"
import { silently, withSystem } from "./support.ts"

const runs = process.env.FC_SEED === undefined ? {} : { seed: Number(process.env.FC_SEED) }

/** Opens what an actor may do to a mailbox. */
class OpenMailbox extends Mailbox {
  accept = (item: unknown, capacity: number) => this.put(item, capacity)
  take = () => this.next()
  giveBack = (items: ReadonlyArray<unknown>) => this.putFirst(items)
}

describe("a mailbox", () => {
  it("is a bounded queue whose front can be given back to, for every sequence of operations", () => {
    const operation = fc.oneof(
      { weight: 6, arbitrary: fc.constant("put" as const) },
      { weight: 4, arbitrary: fc.constant("take" as const) },
      { weight: 1, arbitrary: fc.constant("give back" as const) },
      { weight: 1, arbitrary: fc.constant("empty" as const) },
    )
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 400 }), fc.integer({ min: 1, max: 40 }), (script, capacity) => {
        const mailbox = new OpenMailbox()
        let model: Array<unknown> = []
        let n = 0
        for (const step of script) {
          if (step === "put") {
            const item = n++ % 7 === 0 ? undefined : n // undefined is a message like any other
            expect(mailbox.accept(item, capacity)).toBe(model.length < capacity)
            if (model.length < capacity) model.push(item)
          } else if (step === "take") {
            expect(mailbox.take()).toBe(model.length === 0 ? EMPTY : model.shift())
          } else if (step === "give back") {
            mailbox.giveBack([-n, -n - 1])
            model.unshift(-n, -n - 1)
          } else {
            expect(mailbox.takeAll()).toEqual(model)
            model = []
          }
          expect(mailbox.depth).toBe(model.length)
          expect(mailbox.hasMail).toBe(model.length > 0)
        }
      }),
      { numRuns: 300, ...runs },
    )
  })

  it("stays in order beyond the size at which it is compacted", () => {
    const mailbox = new OpenMailbox()
    for (let i = 0; i < 10_000; i++) mailbox.accept(i, Number.POSITIVE_INFINITY)
    for (let i = 0; i < 10_000; i++) {
      expect(mailbox.take()).toBe(i)
      if (i % 3 === 0) mailbox.accept(10_000 + i / 3, Number.POSITIVE_INFINITY)
    }
    expect(mailbox.depth).toBe(3_334)
    expect(mailbox.take()).toBe(10_000)
  })
})

describe("messages from many senders", () => {
  type Message = { readonly from: number; readonly n: number } | ReplyTo<ReadonlyArray<readonly [number, number]>>

  it("arrive all, in each sender's order, whatever the capacity, the pauses and the crashes between", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.nat(5), { minLength: 1, maxLength: 60 }),
        fc.boolean(),
        async (senders, capacity, pauses, suspends) => {
          const handled: Array<readonly [number, number]> = []
          /** Every seventh message crashes the actor; it counts as handled, as it is not delivered again. */
          const receiver = behavior<null, Message>({
            capacity,
            init: () => null,
            receive: (state, message) => {
              if (!("from" in message)) {
                message.succeed(handled)
                return Effect.succeed(state)
              }
              handled.push([message.from, message.n])
              if (message.n % 7 === 6) return Effect.fail("seventh")
              return suspends && message.n % 3 === 0 ? Effect.as(Effect.yieldNow(), state) : Effect.succeed(state)
            },
          })
          const { deadLetters, received } = await Effect.gen(function* () {
            const system = yield* ActorSystem
            const ref = yield* spawn(receiver, { childSpec: { restart: "permanent", maxRestarts: 1_000, withinMs: 1 } })
            const send = (from: number) =>
              Effect.forEach(
                pauses,
                (pause, n) => Effect.zipRight(pause === 0 ? Effect.yieldNow() : Effect.void, tell(ref, { from, n })),
                { discard: true },
              )
            yield* Effect.forEach(
              Array.from({ length: senders }, (_, i) => i),
              send,
              {
                concurrency: "unbounded",
                discard: true,
              },
            )
            const received = yield* ask(ref, (reply: ReplyTo<ReadonlyArray<readonly [number, number]>>) => reply)
            return { received, deadLetters: system.deadLetters }
          }).pipe(withSystem, silently, Effect.runPromise)
          expect(deadLetters).toBe(0)
          for (let from = 0; from < senders; from++) {
            expect(received.filter(([sender]) => sender === from).map(([, n]) => n)).toEqual(pauses.map((_, n) => n))
          }
        },
      ),
      { numRuns: 60, ...runs },
    ))
})
