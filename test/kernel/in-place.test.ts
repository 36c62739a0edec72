/**
 * The steps that a worker runs itself do what Effect's own loop does with them; fails when Effect changes an instruction that
 * src/actors/kernel/in-place.ts knows.
 */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, FiberRef, FiberRefs, Option, Ref } from "effect"
import { type AnyFiber, fiberRefsOf, runtimeFlagsOf, setFiberRefs } from "../../src/actors/kernel/effect-internals.ts"
import { InPlace } from "../../src/actors/kernel/in-place.ts"
import { ActorSystem, ask, behavior, type ReplyTo, spawn, stop, unsafeTell } from "../../src/actors/kernel/index.ts"

class Step extends Context.Tag("test/Step")<Step, number>() {}
const Local = FiberRef.unsafeMake(0)

type Any = Effect.Effect<unknown, unknown, Step>

/** The outcome, and whether the fiber was needed for it. */
const run = (effect: Any) => {
  let fiberNeeded = false
  const stepped = Effect.withFiberRuntime<unknown, unknown, Step>((fiber) => {
    const inPlace = new InPlace(fiber as AnyFiber, runtimeFlagsOf(fiber as AnyFiber))
    // The fiber provides Step, which is all that the type would say.
    const exit = inPlace.run(effect as Effect.Effect<unknown, unknown>)
    fiberNeeded = exit === null
    return exit ?? Effect.suspend(() => inPlace.handOver())
  })
  return Effect.map(Effect.provideService(Effect.exit(stepped), Step, 7), (exit) => ({ exit, fiberNeeded }))
}

const outcome = (effect: Any) => Effect.provideService(Effect.exit(effect), Step, 7)

const handler = Effect.fnUntraced(function* (n: number) {
  const step = yield* Step
  const local = yield* FiberRef.get(Local)
  const more = yield* Effect.map(
    Effect.sync(() => n),
    (value) => value + 1,
  )
  return step + local + more
})

const cases: Readonly<Record<string, () => Any>> = {
  "a value": () => Effect.succeed(1),
  "a failure": () => Effect.fail("no"),
  "a thunk": () => Effect.sync(() => 2),
  "a suspended value": () => Effect.suspend(() => Effect.succeed(3)),
  "a service": () => Step,
  "a fiber-local value": () => FiberRef.get(Local),
  "a map of a flatMap": () =>
    Effect.map(
      Effect.flatMap(Step, (step) => Effect.sync(() => step + 1)),
      (n) => n * 2,
    ),
  "a generator": () => handler(5),
  "a generator in a generator": () =>
    Effect.gen(function* () {
      const first = yield* handler(1)
      return first + (yield* handler(2))
    }),
  "a generator that fails": () =>
    Effect.gen(function* () {
      yield* Step
      yield* Effect.fail("no")
      return 1
    }),
  "a failure under maps": () => Effect.map(Effect.flatMap(Effect.fail("no"), Effect.succeed), () => 1),
  "a Ref": () => Effect.flatMap(Ref.make(1), (ref) => Ref.updateAndGet(ref, (n) => n + 1)),
  "a self-interruption": () => Effect.interrupt,
}

const forTheFiber: Readonly<Record<string, () => Any>> = {
  "a yield within a generator": () =>
    Effect.gen(function* () {
      const first = yield* handler(1)
      yield* Effect.yieldNow()
      return first + (yield* handler(2))
    }),
  "a wait under maps": () =>
    Effect.map(
      Effect.flatMap(
        Effect.async<number>((resume) => queueMicrotask(() => resume(Effect.succeed(4)))),
        (n) => handler(n),
      ),
      (n) => n + 1,
    ),
  "a caught failure": () =>
    Effect.flatMap(
      Effect.catchAll(Effect.fail(3), (n) => Effect.succeed(n)),
      handler,
    ),
  "an uninterruptible region": () => Effect.flatMap(Effect.uninterruptible(handler(1)), handler),
  "a fiber-local value that changes": () =>
    Effect.gen(function* () {
      yield* FiberRef.set(Local, 40)
      return (yield* FiberRef.get(Local)) + (yield* handler(1))
    }),
  "an Option": () => Effect.flatMap(Option.some(1), (n) => handler(n)),
  "ten thousand steps": () =>
    Effect.gen(function* () {
      let sum = 0
      for (let i = 0; i < 10_000; i++) sum += yield* Effect.sync(() => i)
      return sum
    }),
}

describe("a handler's steps in place", () => {
  for (const [name, make] of Object.entries(cases)) {
    it.effect(`${name} ends as in a fiber, without one`, () =>
      Effect.gen(function* () {
        const { exit, fiberNeeded } = yield* run(make())
        expect(fiberNeeded).toBe(false)
        expect(exit).toEqual(yield* outcome(make()))
      }),
    )
  }

  for (const [name, make] of Object.entries(forTheFiber)) {
    it.effect(`${name} goes on in the fiber, from where it is`, () =>
      Effect.gen(function* () {
        const { exit, fiberNeeded } = yield* run(make())
        expect(fiberNeeded).toBe(true)
        expect(exit).toEqual(yield* outcome(make()))
      }),
    )
  }

  it.effect("what is thrown in one is a defect, and the next handler starts afresh", () =>
    Effect.withFiberRuntime<void>((fiber) => {
      const inPlace = new InPlace(fiber as AnyFiber, runtimeFlagsOf(fiber as AnyFiber))
      const thrower = Effect.map(
        Effect.flatMap(Effect.succeed(1), (): Effect.Effect<number> => {
          throw new Error("thrown")
        }),
        (n) => n + 1,
      )
      expect(inPlace.run(thrower)).toEqual(Exit.die(new Error("thrown")))
      expect(inPlace.run(Effect.sync(() => 3))).toEqual(Exit.succeed(3))
      return Effect.void
    }),
  )

  it.effect("a failure that changes fiber-local values leaves nothing behind for the next handler", () =>
    Effect.withFiberRuntime<void>((fiber) => {
      const inPlace = new InPlace(fiber as AnyFiber, runtimeFlagsOf(fiber as AnyFiber))
      const changing = Effect.withFiberRuntime<number, string>((self) => {
        setFiberRefs(self as AnyFiber, FiberRefs.delete(fiberRefsOf(self as AnyFiber), Local))
        return Effect.fail("no")
      })
      const next: Array<number> = []
      expect(inPlace.run(Effect.map(changing, (n) => next.push(n)))).toEqual(Exit.fail("no"))
      expect(inPlace.run(Effect.sync(() => 3))).toEqual(Exit.succeed(3))
      expect(next).toEqual([])
      return Effect.void
    }),
  )

  it.effect("a service that is missing is the defect that Effect makes of it", () =>
    Effect.gen(function* () {
      const Missing = Context.GenericTag<"Missing", number>("test/Missing")
      const fiber = yield* Effect.withFiberRuntime<AnyFiber>((self) => Effect.succeed(self as AnyFiber))
      const exit = new InPlace(fiber, runtimeFlagsOf(fiber)).run(Missing as unknown as Effect.Effect<number>) // missing on purpose
      expect(exit !== null && Exit.isExit(exit) && Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
    }),
  )

  it.effect("a signal to the fiber is looked at before the next step", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const fiber = yield* Effect.fork(
        run(
          Effect.withFiberRuntime<void>((self) =>
            Effect.flatMap(
              Effect.sync(() => self.unsafeInterruptAsFork(self.id())),
              () => Effect.sync(() => void ran.push("after")),
            ),
          ),
        ),
      )
      expect(Exit.isInterrupted(yield* fiber.await)).toBe(true)
      expect(ran).toEqual([])
    }),
  )
})

describe("an actor whose handler takes endless steps", () => {
  it.live("lets others have their turn, and can be stopped", () =>
    Effect.gen(function* () {
      let spins = 0
      const spinner = behavior<null, "spin">({
        init: () => null,
        receive: Effect.fnUntraced(function* () {
          while (spins >= 0) yield* Effect.sync(() => spins++)
          return null
        }),
      })
      const echo = behavior<null, ReplyTo<number>>({
        init: () => null,
        receive: (state, reply) =>
          Effect.sync(() => {
            reply.succeed(spins)
            return state
          }),
      })
      const spinning = yield* spawn(spinner)
      const other = yield* spawn(echo)
      unsafeTell(spinning, "spin")
      const before = yield* ask(other, (reply: ReplyTo<number>) => reply)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      expect(yield* ask(other, (reply: ReplyTo<number>) => reply)).toBeGreaterThan(before)
      yield* stop(spinning, undefined, { shutdownMs: 0 })
    }).pipe(Effect.provide(ActorSystem.layer())),
  )
})
