/**
 * Fails when Effect changes something that the kernel relies on behind the public API (src/actors/kernel/effect-internals.ts).
 */
import { describe, expect, it } from "@effect/vitest"
import {
  Cause,
  Context,
  Effect,
  Exit,
  Fiber,
  FiberRef,
  FiberRefs,
  Option,
  Runtime,
  RuntimeFlags,
  type Scheduler,
} from "effect"
import {
  type AnyFiber,
  chain,
  currentFiber,
  fiberRefsOf,
  fiberRefValue,
  forkScopeOverride,
  hasChildren,
  instruction,
  isInterruptible,
  opCountOf,
  runtimeFlagsOf,
  sameFiberRefs,
  setFiberRefs,
  spanOf,
  wait,
  wasInterrupted,
} from "../../src/actors/kernel/effect-internals.ts"

const Local = FiberRef.unsafeMake(0)
const self = Effect.withFiberRuntime<AnyFiber>((fiber) => Effect.succeed(fiber as AnyFiber))

describe("an Effect", () => {
  it("that is an exit carries its tag, value and cause; others carry another tag", () => {
    expect(instruction(Effect.succeed(3))).toMatchObject({ _op: "Success", value: 3 })
    expect(instruction(Exit.succeed(3))).toMatchObject({ _op: "Success", value: 3 })
    expect(instruction(Effect.void)._op).toBe("Success")
    expect(instruction(Effect.fail("no"))).toMatchObject({ _op: "Failure" })
    expect(instruction(Effect.fail("no")).cause).toEqual(Cause.fail("no"))
    for (const other of [
      Effect.sync(() => 1),
      Effect.map(Effect.succeed(1), (n) => n),
      Effect.yieldNow(),
      Effect.never,
    ]) {
      expect(["Success", "Failure"]).not.toContain(instruction(other)._op)
    }
    expect(["Success", "Failure"]).not.toContain(instruction(Effect.gen(function* () {}))._op)
  })

  it.effect("that is done is chained at once, any other as flatMap does", () =>
    Effect.gen(function* () {
      expect(instruction(chain(Effect.succeed(1), (n) => Effect.succeed(n + 1)))).toMatchObject({ value: 2 })
      expect(
        yield* chain(
          Effect.sync(() => 1),
          (n) => Effect.succeed(n + 1),
        ),
      ).toBe(2)
      expect(yield* Effect.flip(chain(Effect.fail("no"), () => Effect.succeed(1)))).toBe("no")
    }),
  )
})

describe("a wait", () => {
  it.effect("gives what it is resumed with, at once or later, the first time only", () =>
    Effect.gen(function* () {
      expect(yield* wait<number, never>((resume) => resume(Effect.succeed(1)))).toBe(1)
      const later = wait<number, string>((resume) => {
        queueMicrotask(() => {
          resume(Effect.fail("no"))
          resume(Effect.succeed(2))
        })
      })
      expect(yield* Effect.flip(later)).toBe("no")
      expect(yield* Effect.flip(later)).toBe("no") // can be run again
    }),
  )

  it.effect("is a defect when its register throws, and can be interrupted", () =>
    Effect.gen(function* () {
      const thrower = wait<never, never>(() => {
        throw new Error("thrown")
      })
      expect(yield* Effect.exit(thrower)).toEqual(Exit.die(new Error("thrown")))
      const forked = yield* Effect.fork(wait<never, never>(() => {}))
      yield* Effect.yieldNow()
      expect(Exit.isInterrupted(yield* Fiber.interrupt(forked))).toBe(true)
    }),
  )
})

const attempt = (): Exit.Exit<AnyFiber, unknown> => {
  try {
    return Exit.succeed(currentFiber())
  } catch (error) {
    return Exit.fail(error)
  }
}

describe("a fiber", () => {
  it.effect("gives its fiber-local values without copying, and takes others wholesale", () =>
    Effect.gen(function* () {
      const fiber = yield* self
      const before = fiberRefsOf(fiber)
      expect(fiberRefsOf(fiber)).toBe(before)
      yield* FiberRef.set(Local, 5)
      expect(fiberRefValue(fiberRefsOf(fiber), Local)).toBe(5)
      setFiberRefs(fiber, before)
      expect(yield* FiberRef.get(Local)).toBe(0)
    }),
  )

  it.effect("is the current one in every step, also after a nested run, and outside there is none", () =>
    Effect.gen(function* () {
      const fiber = yield* self
      expect(yield* Effect.sync(currentFiber)).toBe(fiber)
      expect(Effect.runSync(Effect.sync(currentFiber))).not.toBe(fiber)
      expect(currentFiber()).toBe(fiber)
      yield* Effect.yieldNow()
      expect(currentFiber()).toBe(fiber)
      const outside = yield* Effect.async<Exit.Exit<AnyFiber, unknown>>((resume) => {
        setImmediate(() => resume(Effect.succeed(attempt())))
      })
      expect(Exit.isFailure(outside)).toBe(true)
    }),
  )

  it.effect("compares equal to a copy of its values, and not to changed ones", () =>
    Effect.gen(function* () {
      const fiber = yield* self
      const copy = fiber.getFiberRefs()
      expect(copy).not.toBe(yield* Effect.sync(() => fiber.getFiberRefs()))
      expect(sameFiberRefs(copy, fiberRefsOf(fiber))).toBe(true)
      yield* FiberRef.set(Local, 6)
      expect(sameFiberRefs(copy, fiberRefsOf(fiber))).toBe(false)
    }),
  )

  it.effect("knows its forked children, its span, its flags and its operations", () =>
    Effect.gen(function* () {
      const fiber = yield* self
      expect(hasChildren(fiber)).toBe(false)
      const forked = yield* Effect.fork(Effect.never)
      expect(hasChildren(fiber)).toBe(true)
      yield* Fiber.interrupt(forked)
      expect(hasChildren(fiber)).toBe(false)
      expect(spanOf(fiber)).toBeUndefined()
      const inside = yield* Effect.withSpan(
        Effect.sync(() => spanOf(fiber)),
        "a span",
      )
      expect(inside).toMatchObject({ name: "a span" })
      expect(RuntimeFlags.interruptible(runtimeFlagsOf(fiber))).toBe(true)
      expect(RuntimeFlags.interruptible(yield* Effect.uninterruptible(Effect.sync(() => runtimeFlagsOf(fiber))))).toBe(
        false,
      )
      expect(opCountOf(fiber)).toBeGreaterThan(0)
    }),
  )

  it.effect("is known to have been interrupted, also after its end", () =>
    Effect.gen(function* () {
      const waiting = yield* Effect.fork(Effect.never)
      yield* Effect.yieldNow()
      expect(isInterruptible(waiting as AnyFiber)).toBe(true)
      expect(wasInterrupted(waiting as AnyFiber)).toBe(false)
      yield* Fiber.interrupt(waiting)
      expect(wasInterrupted(waiting as AnyFiber)).toBe(true)
      const fiber = yield* self
      expect(yield* Effect.uninterruptible(Effect.sync(() => isInterruptible(fiber)))).toBe(false)
    }),
  )

  it.effect("attaches forked children to the overriding scope that the kernel strips", () =>
    Effect.gen(function* () {
      // Effect sets this value around the bodies of concurrent operators; the shared instance must be the kernel's.
      const seen = yield* Effect.transplant((graft) =>
        graft(Effect.map(self, (fiber) => fiber.getFiberRef(forkScopeOverride))),
      )
      expect(Option.isSome(seen)).toBe(true)
    }),
  )

  it("is resumed through exactly one task of its scheduler, synchronously", async () => {
    const tasks: Array<() => void> = []
    const scheduler: Scheduler.Scheduler = { shouldYield: () => false, scheduleTask: (task) => void tasks.push(task) }
    let resume: ((effect: Effect.Effect<void>) => void) | undefined
    const runtime = Runtime.make({
      context: Context.empty(),
      runtimeFlags: Runtime.defaultRuntimeFlags,
      fiberRefs: FiberRefs.empty(),
    })
    const fiber = Runtime.runFork(
      runtime,
      Effect.async<void>((wake) => {
        resume = wake
      }),
      { scheduler },
    )
    expect(tasks).toHaveLength(0) // started in place
    resume?.(Effect.void)
    expect(tasks).toHaveLength(1)
    tasks[0]?.()
    expect(fiber.unsafePoll()).toEqual(Exit.void)
  })
})
