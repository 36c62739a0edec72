/**
 * Supervisors: start and stop order, strategies, intensity, escalation, children at run time.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, TestClock } from "effect"
import {
  type ActorRef,
  ActorSystem,
  ask,
  awaitDown,
  behavior,
  type ReplyTo,
  spawn,
  stop,
  tell,
} from "../../src/actors/kernel/index.ts"
import { child, childrenOf, dynamicSupervisor, type Strategy, supervisor } from "../../src/supervisors/index.ts"
import { withSystem } from "../kernel/support.ts"

type Message = "crash" | "end" | ReplyTo<number>

/** Writes its starts and ends into `log`; answers how often it has been asked in this incarnation. */
const worker = (name: string, log: Array<string>, init: () => Effect.Effect<void, unknown> = () => Effect.void) =>
  behavior<number, Message>({
    init: () =>
      Effect.as(
        Effect.zipRight(
          Effect.suspend(init),
          Effect.sync(() => void log.push(`+${name}`)),
        ),
        0,
      ),
    receive: (asked, message, self) => {
      if (message === "crash") return Effect.fail(`${name} broke`)
      if (message === "end") return Effect.as(self.stop(), asked)
      message.succeed(asked + 1)
      return Effect.succeed(asked + 1)
    },
    onStop: () => Effect.sync(() => void log.push(`-${name}`)),
  })

const find = (id: string) =>
  Effect.gen(function* () {
    const found = yield* (yield* ActorSystem).registry.whereis<Message>(id)
    return Option.getOrThrowWith(found, () => new Error(`expected a child registered as ${id}`))
  })
const poke = (ref: ActorRef<Message>) => ask(ref, (reply: ReplyTo<number>) => reply)

const three = (strategy: Strategy, log: Array<string>, limits: { maxRestarts?: number; withinMs?: number } = {}) =>
  supervisor({
    name: "top",
    strategy,
    ...limits,
    children: ["a", "b", "c"].map((id) => child(id, worker(id, log), { register: id })),
  })

describe("a supervisor", () => {
  it.effect("starts its children in order and stops them in reverse", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(three("one_for_one", log))
      expect(log).toEqual(["+a", "+b", "+c"])
      yield* stop(top)
      expect(log).toEqual(["+a", "+b", "+c", "-c", "-b", "-a"])
    }).pipe(withSystem),
  )

  it.effect.each<{ strategy: Strategy; expected: ReadonlyArray<string> }>([
    { strategy: "one_for_one", expected: ["-b", "+b"] },
    { strategy: "one_for_all", expected: ["-b", "-c", "-a", "+a", "+b", "+c"] },
    { strategy: "rest_for_one", expected: ["-b", "-c", "+b", "+c"] },
  ])("restarts $strategy", ({ strategy, expected }) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* spawn(three(strategy, log))
      const b = yield* find("b")
      const others = [yield* find("a"), yield* find("c")]
      log.length = 0
      yield* tell(b, "crash" as const)
      expect(yield* poke(b)).toBe(1)
      for (const ref of others) yield* poke(ref)
      expect(log).toEqual(expected)
    }).pipe(withSystem),
  )

  it.effect("keeps the mail of siblings that it restarts", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* spawn(three("one_for_all", log))
      const [a, b] = [yield* find("a"), yield* find("b")]
      const answers = yield* Effect.all([tell(b, "crash" as const), poke(a), poke(b)], { concurrency: "unbounded" })
      expect(answers[2]).toBe(1)
      expect((yield* ActorSystem).deadLetters).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("lets a transient child end and restarts it after a crash; a temporary one never comes back", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(
        supervisor({
          children: [
            child("transient", worker("transient", log), { register: "transient", restart: "transient" }),
            child("temporary", worker("temporary", log), { register: "temporary", restart: "temporary" }),
          ],
        }),
      )
      const [transient, temporary] = [yield* find("transient"), yield* find("temporary")]
      yield* tell(transient, "crash" as const)
      expect(yield* poke(transient)).toBe(1)
      yield* tell(transient, "end" as const)
      yield* tell(temporary, "crash" as const)
      yield* awaitDown(transient)
      yield* awaitDown(temporary)
      expect(yield* childrenOf(top)).toEqual([
        { id: "transient", ref: null },
        { id: "temporary", ref: null },
      ])
    }).pipe(withSystem),
  )

  it.effect("restarts a permanent child that ended by itself", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* spawn(three("one_for_one", log))
      const a = yield* find("a")
      yield* tell(a, "end" as const)
      expect(yield* poke(a)).toBe(1)
    }).pipe(withSystem),
  )

  it.effect("escalates one restart too many: its children stop in reverse and its parent sees the crash", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(three("one_for_one", log, { maxRestarts: 2, withinMs: 1_000 }))
      const b = yield* find("b")
      for (let i = 0; i < 2; i++) {
        yield* tell(b, "crash" as const)
        yield* poke(b)
      }
      log.length = 0
      yield* tell(b, "crash" as const)
      const { reason } = yield* awaitDown(top)
      expect(reason).toMatchObject({
        _tag: "Crashed",
        cause: { error: { _tag: "RestartIntensityExceeded", child: "/user/top-1/b", maxRestarts: 2 } },
      })
      expect(log).toEqual(["-b", "-c", "-a"])
    }).pipe(withSystem),
  )

  it.effect("counts restarts within a sliding window of the test clock", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(three("one_for_one", log, { maxRestarts: 2, withinMs: 1_000 }))
      const b = yield* find("b")
      const crashOnce = Effect.zipRight(tell(b, "crash" as const), poke(b))
      yield* crashOnce // at 0
      yield* TestClock.adjust(600)
      yield* crashOnce // at 600
      yield* TestClock.adjust(400)
      yield* crashOnce // at 1,000: the first has left the window
      yield* TestClock.adjust(599)
      yield* tell(b, "crash" as const) // at 1,599: 600 and 1,000 are still in it
      expect((yield* awaitDown(top)).reason._tag).toBe("Crashed")
    }).pipe(withSystem),
  )

  it.effect("is restarted by its own supervisor with fresh children after an escalation", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* spawn(
        supervisor({ name: "root", children: [child("inner", three("one_for_one", log, { maxRestarts: 0 }))] }),
      )
      const before = yield* find("b")
      yield* tell(before, "crash" as const)
      yield* awaitDown(before)
      const system = yield* ActorSystem
      const lastChild = Effect.zipRight(Effect.yieldNow(), system.registry.whereis("c"))
      yield* Effect.repeat(lastChild, { until: Option.isSome })
      const tree = yield* system.tree()
      const after = yield* find("b")
      expect(after).not.toBe(before)
      expect(yield* poke(after)).toBe(1)
      expect(tree.children[0]?.children[0]).toMatchObject({ name: "inner", kind: "supervisor", restarts: 1 })
    }).pipe(withSystem),
  )

  it.effect("fails to start when a child does not come up within the intensity, and stops the ones before it", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      let tries = 0
      const broken = worker("broken", log, () => {
        tries++
        return Effect.fail("no database")
      })
      const error = yield* Effect.flip(
        spawn(supervisor({ maxRestarts: 2, children: [child("a", worker("a", log)), child("broken", broken)] })),
      )
      expect(error.message).toContain("no database")
      expect(tries).toBe(3)
      expect(log).toEqual(["+a", "-a"])
      expect((yield* ActorSystem).actors).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("counts a failing init during a restart, and goes on when a later try succeeds", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      let starts = 0
      const flaky = worker("flaky", log, () => (++starts === 2 || starts === 3 ? Effect.fail("not yet") : Effect.void))
      yield* spawn(
        supervisor({
          strategy: "one_for_all",
          maxRestarts: 3,
          children: [child("a", worker("a", log)), child("flaky", flaky, { register: "flaky" })],
        }),
      )
      const ref = yield* find("flaky")
      yield* tell(ref, "crash" as const)
      expect(yield* poke(ref)).toBe(1)
      expect(starts).toBe(4)
      expect(log).toEqual(["+a", "+flaky", "-flaky", "-a", "+a", "-a", "+a", "-a", "+a", "+flaky"])
    }).pipe(withSystem),
  )

  it.effect("interrupts a child that overstays its shutdown deadline, and goes on to the next", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const busy = yield* Deferred.make<void>()
      const stubborn = behavior<null, "work">({
        init: () => null,
        receive: () =>
          Effect.onInterrupt(Effect.zipRight(Deferred.succeed(busy, undefined), Effect.never), () =>
            Effect.sync(() => void log.push("interrupted")),
          ),
      })
      const top = yield* spawn(
        supervisor({
          children: [
            child("a", worker("a", log)),
            child("stubborn", stubborn, { shutdownMs: 300, register: "stubborn" }),
          ],
        }),
      )
      const ref = Option.getOrThrow(yield* (yield* ActorSystem).registry.whereis<"work">("stubborn"))
      yield* tell(ref, "work" as const)
      yield* Deferred.await(busy)
      const stopping = yield* Effect.fork(stop(top))
      yield* Effect.yieldNow()
      yield* TestClock.adjust(299)
      expect(log).toEqual(["+a"])
      yield* TestClock.adjust(1)
      yield* Fiber.join(stopping)
      expect(log).toEqual(["+a", "interrupted", "-a"])
    }).pipe(withSystem),
  )

  it.effect("that is stopped while it restarts its children stops them all", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const again = yield* Deferred.make<void>()
      let starts = 0
      const slow = worker("slow", log, () =>
        ++starts === 1 ? Effect.void : Effect.zipRight(Deferred.succeed(again, undefined), Effect.never),
      )
      const top = yield* spawn(
        supervisor({
          strategy: "one_for_all",
          children: [child("a", worker("a", log)), child("slow", slow, { register: "slow" })],
        }),
      )
      yield* tell(yield* find("slow"), "crash" as const)
      yield* Deferred.await(again)
      yield* stop(top)
      expect((yield* ActorSystem).actors).toBe(0)
      expect(log).toEqual(["+a", "+slow", "-slow", "-a", "+a", "-a"])
    }).pipe(withSystem),
  )

  it.effect("goes on without a child that was stopped while it was being restarted", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const again = yield* Deferred.make<void>()
      let starts = 0
      const slow = worker("slow", log, () =>
        ++starts === 1 ? Effect.void : Effect.zipRight(Deferred.succeed(again, undefined), Effect.never),
      )
      const top = yield* spawn(
        supervisor({
          strategy: "one_for_all",
          children: [child("slow", slow, { register: "slow" }), child("b", worker("b", log), { register: "b" })],
        }),
      )
      const ref = yield* find("slow")
      yield* tell(ref, "crash" as const)
      yield* Deferred.await(again)
      yield* stop(ref)
      expect(yield* poke(yield* find("b"))).toBe(1)
      expect((yield* childrenOf(top)).map((info) => info.ref !== null)).toEqual([false, true])
      expect(log).toEqual(["+slow", "+b", "-slow", "-b", "+b"])
    }).pipe(withSystem),
  )

  it.effect("does not bring back a child that was stopped on request", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(three("one_for_all", log))
      yield* stop(yield* find("b"))
      yield* tell(yield* find("a"), "crash" as const)
      yield* poke(yield* find("c"))
      expect((yield* childrenOf(top)).map(({ id, ref }) => [id, ref !== null])).toEqual([
        ["a", true],
        ["b", false],
        ["c", true],
      ])
    }).pipe(withSystem),
  )

  it.effect("takes no children at run time, and no two of the same id", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(three("one_for_one", log))
      expect(yield* Effect.flip(spawn(worker("d", log), { parent: top }))).toMatchObject({ problem: "fixed_children" })
      expect(() => supervisor({ children: [child("x", worker("x", log)), child("x", worker("x", log))] })).toThrow(
        'children[1].id: expected a unique id, got "x" twice',
      )
      expect(() => supervisor({ maxRestarts: -1, children: [] })).toThrow(
        "maxRestarts: expected a number of at least 0, got -1",
      )
    }).pipe(withSystem),
  )
})

describe("a dynamic supervisor", () => {
  it.effect("restarts each child on its own, and forgets one that was stopped", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(dynamicSupervisor({ name: "pool" }))
      const a = yield* spawn(worker("a", log), { parent: top, name: "a" })
      const b = yield* spawn(worker("b", log), { parent: top, name: "b" })
      yield* tell(a, "crash" as const)
      expect(yield* poke(a)).toBe(1)
      expect(yield* poke(b)).toBe(1)
      yield* stop(b)
      const tree = yield* (yield* ActorSystem).tree()
      expect(tree.children[0]).toMatchObject({
        kind: "supervisor",
        state: "dynamic",
        children: [{ name: "a", restarts: 1 }],
      })
      yield* stop(top)
      expect(log).toEqual(["+a", "+b", "-a", "+a", "-b", "-a"])
    }).pipe(withSystem),
  )

  it.effect("shares one intensity among its children and escalates beyond it", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(dynamicSupervisor({ maxRestarts: 2 }))
      const refs = yield* Effect.forEach(["a", "b", "c"], (id) => spawn(worker(id, log), { parent: top }))
      for (const ref of refs) yield* tell(ref, "crash" as const)
      expect((yield* awaitDown(top)).reason._tag).toBe("Crashed")
      expect((yield* ActorSystem).actors).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("starts a child beside one whose init takes its time", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(dynamicSupervisor())
      const slow = yield* Effect.fork(
        spawn(
          worker("slow", log, () => Effect.never),
          { parent: top },
        ),
      )
      yield* Effect.yieldNow()
      expect(yield* poke(yield* spawn(worker("quick", log), { parent: top }))).toBe(1)
      yield* Fiber.interrupt(slow)
    }).pipe(withSystem),
  )

  it.effect("refuses more children than it may have", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(dynamicSupervisor({ maxChildren: 1 }))
      const only = yield* spawn(worker("a", log), { parent: top })
      expect(yield* Effect.flip(spawn(worker("b", log), { parent: top }))).toMatchObject({
        problem: "too_many_children",
      })
      yield* stop(only)
      yield* spawn(worker("b", log), { parent: top })
    }).pipe(withSystem),
  )

  it.effect("gives the spawner of a child that never comes up the error, and lives on", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const top = yield* spawn(dynamicSupervisor({ maxRestarts: 1 }))
      const error = yield* Effect.flip(
        spawn(
          worker("a", log, () => Effect.fail("never")),
          { parent: top },
        ),
      )
      expect(error).toMatchObject({ problem: "init_failed" })
      expect((yield* ActorSystem).actors).toBe(1)
    }).pipe(withSystem),
  )
})
