/**
 * The bridge, with the real nact.
 */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { dispatch, query, type Ref, spawn as spawnNact, start, stop as stopNact } from "nact"
import { ask, awaitDown, behavior, type ReplyTo, spawn, stop } from "../../src/actors/kernel/index.ts"
import { fromNact, NactQueryError, queryNact, replyExitTo, replyTo, toNact } from "../../src/nact.ts"
import { add, type CounterMessage, counter, crash, getTotal, silently, withSystem } from "./support.ts"

const nactSystem = Effect.acquireRelease(Effect.sync(start), (system) => Effect.sync(() => stopNact(system)))
const LIMIT_MS = 5_000

describe("a nact system", () => {
  it.live("sends messages to our actor, in order and through its back-pressure", () =>
    Effect.gen(function* () {
      const system = yield* nactSystem
      const seen: Array<number> = []
      type Message = number | ReplyTo<ReadonlyArray<number>>
      const slow = yield* spawn(
        behavior<null, Message>({
          capacity: 1,
          init: () => null,
          receive: (state, message) => {
            if (typeof message !== "number") message.succeed(seen)
            else seen.push(message)
            return Effect.as(Effect.yieldNow(), state)
          },
        }),
      )
      const proxy = yield* toNact(system, slow)
      for (let i = 0; i < 50; i++) dispatch(proxy, i)
      const answer = yield* Effect.promise(() =>
        query(proxy, (temporary: Ref<ReadonlyArray<number>>): Message => replyTo(temporary), LIMIT_MS),
      )
      expect(answer).toEqual(Array.from({ length: 50 }, (_, i) => i))
    }).pipe(Effect.scoped, withSystem),
  )

  it.live("gets a typed failure of ours as an Exit", () =>
    Effect.gen(function* () {
      const system = yield* nactSystem
      const proxy = yield* toNact(system, yield* spawn(counter))
      const exit = yield* Effect.promise(() =>
        query(
          proxy,
          (temporary: Ref<Exit.Exit<number, string>>): CounterMessage => ({
            _tag: "Refuse",
            reply: replyExitTo(temporary),
          }),
          LIMIT_MS,
        ),
      )
      expect(exit).toEqual(Exit.failCause(Cause.fail("refused")))
    }).pipe(Effect.scoped, withSystem),
  )

  it.live("finds the proxy stopped when our actor has ended", () =>
    Effect.gen(function* () {
      const system = yield* nactSystem
      const ref = yield* spawn(counter)
      const proxy = yield* toNact(system, ref)
      dispatch(proxy, crash())
      yield* awaitDown(ref)
      yield* Effect.yieldNow()
      const asked = queryNact(
        proxy,
        (temporary: Ref<Exit.Exit<number, string>>): CounterMessage => ({ _tag: "Get", reply: replyExitTo(temporary) }),
        LIMIT_MS,
      )
      const error = yield* Effect.flip(asked)
      expect(error).toBeInstanceOf(NactQueryError)
    }).pipe(Effect.scoped, withSystem, silently),
  )
})

describe("our system", () => {
  type Greeting = { readonly name: string; readonly reply: ReplyTo<string> }

  it.live("asks a nact actor through a ref of ours, which nact answers at our reply port", () =>
    Effect.gen(function* () {
      const system = yield* nactSystem
      const greeter = spawnNact(system, (_state: undefined, { name, reply }: Greeting) => {
        reply.succeed(`hello ${name}`)
        return undefined
      })
      const ref = yield* fromNact(greeter, { name: "greeter" })
      expect(ref.path).toBe("/user/greeter")
      const greeting = ask(ref, (reply: ReplyTo<string>): Greeting => ({ name: "actor", reply }))
      expect(yield* greeting).toBe("hello actor")
      yield* stop(ref)
      expect((yield* Effect.flip(greeting))._tag).toBe("ActorDown")
    }).pipe(Effect.scoped, withSystem),
  )

  it.live("queries a nact actor that answers in nact's way, and sees its limit pass as a typed error", () =>
    Effect.gen(function* () {
      const system = yield* nactSystem
      type Question = { readonly sender: Ref<number>; readonly n: number }
      const doubler = spawnNact(system, (_state: undefined, { sender, n }: Question) => {
        if (n > 0) dispatch(sender, n * 2)
        return undefined
      })
      const ask = (n: number, limit: number) =>
        queryNact(doubler, (sender: Ref<number>): Question => ({ sender, n }), limit)
      expect(yield* ask(21, LIMIT_MS)).toBe(42)
      expect(yield* Effect.flip(ask(0, 10))).toBeInstanceOf(NactQueryError)
    }).pipe(Effect.scoped, withSystem),
  )

  it.live("and a nact system count together", () =>
    Effect.gen(function* () {
      const system = yield* nactSystem
      const ours = yield* spawn(counter)
      const proxy = yield* toNact(system, ours)
      const there = spawnNact(system, (_state: undefined, message: CounterMessage) => {
        dispatch(proxy, message)
        return undefined
      })
      const back = yield* fromNact(there)
      for (let i = 0; i < 10; i++)
        yield* ask(back, (reply: ReplyTo<number, string>): CounterMessage => ({ _tag: "Get", reply }))
      dispatch(there, add(4))
      const total = Effect.repeat(getTotal(ours), { until: (n) => n === 4 })
      expect(yield* total).toBe(4)
    }).pipe(Effect.scoped, withSystem),
  )
})
