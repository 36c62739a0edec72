/**
 * What one actor does: messages, answers, crashes, and handlers as real Effects.
 */
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, FiberRef, Layer, Option, Scope, TestClock } from "effect"
import { cellOf } from "../../src/actors/kernel/cell.ts"
import {
  ActorDown,
  ActorSystem,
  AskTimeout,
  ask,
  awaitDown,
  behavior,
  type ReplyTo,
  SpawnError,
  spawn,
  stop,
  tell,
  unsafeSpawn,
  unsafeTell,
  watch,
} from "../../src/actors/kernel/index.ts"
import { add, type CounterMessage, counter, crash, getTotal, withSystem } from "./support.ts"

describe("an actor", () => {
  it.effect("handles messages in the order in which one sender sent them", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const ref = yield* spawn(
        behavior<null, number | ReplyTo<null>>({
          init: () => null,
          receive: (state, message) => {
            if (typeof message === "number") seen.push(message)
            else message.succeed(null)
            return Effect.succeed(state)
          },
        }),
      )
      for (let i = 0; i < 2_500; i++) yield* tell(ref, i)
      yield* ask(ref, (reply: ReplyTo<null>) => reply)
      expect(seen).toEqual(Array.from({ length: 2_500 }, (_, i) => i))
    }).pipe(withSystem),
  )

  it.effect("answers an ask with a value or with its typed error", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter)
      yield* tell(ref, add(2))
      expect(yield* getTotal(ref)).toBe(2)
      const refused = yield* Effect.flip(
        ask(ref, (reply: ReplyTo<number, string>): CounterMessage => ({ _tag: "Refuse", reply })),
      )
      expect(refused).toBe("refused")
    }).pipe(withSystem),
  )

  it.effect("runs one handler at a time, also where handlers suspend", () =>
    Effect.gen(function* () {
      let inside = 0
      let most = 0
      const ref = yield* spawn(
        behavior<number, ReplyTo<number>>({
          init: () => 0,
          receive: (n, reply) =>
            Effect.gen(function* () {
              most = Math.max(most, ++inside)
              yield* Effect.yieldNow()
              yield* Effect.promise(() => Promise.resolve())
              inside--
              reply.succeed(n + 1)
              return n + 1
            }),
        }),
      )
      const answers = yield* Effect.all(
        Array.from({ length: 50 }, () => ask(ref, (reply: ReplyTo<number>) => reply)),
        { concurrency: "unbounded" },
      )
      expect(answers).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
      expect(most).toBe(1)
    }).pipe(withSystem),
  )

  it.effect("goes on beside an actor whose handler is suspended", () =>
    Effect.gen(function* () {
      const stuck = yield* spawn(behavior<null, null>({ init: () => null, receive: () => Effect.never }))
      const free = yield* spawn(counter)
      yield* tell(stuck, null)
      yield* tell(free, add())
      expect(yield* getTotal(free)).toBe(1)
      yield* stop(stuck, undefined, { shutdownMs: 0 })
    }).pipe(withSystem),
  )

  it.effect("gives its handlers the services and fiber-local values of the spawner", () => {
    class Unit extends Context.Tag("test/Unit")<Unit, string>() {}
    const Locale = FiberRef.unsafeMake("en")
    type Read = ReplyTo<readonly [string, string]>
    const reader = behavior<null, Read, Unit>({
      init: () => null,
      receive: Effect.fnUntraced(function* (state: null, reply: Read) {
        reply.succeed([yield* Unit, yield* FiberRef.get(Locale)])
        yield* FiberRef.set(Locale, "changed in a handler")
        return state
      }),
    })
    return Effect.gen(function* () {
      const metres = yield* spawn(reader).pipe(Effect.provideService(Unit, "m"), Effect.locally(Locale, "de"))
      const feet = yield* spawn(reader).pipe(Effect.provideService(Unit, "ft"))
      const read = (ref: typeof feet) => ask(ref, (reply: Read) => reply)
      expect(yield* read(metres)).toEqual(["m", "de"])
      expect(yield* read(feet)).toEqual(["ft", "en"])
      // A fiber-local value set in a handler ends with it, for this actor and for its neighbours.
      expect(yield* read(metres)).toEqual(["m", "de"])
      expect(yield* read(feet)).toEqual(["ft", "en"])
    }).pipe(withSystem)
  })

  it.effect("traces its handler under the span of the asker, not of the spawner", () =>
    Effect.gen(function* () {
      type Read = ReplyTo<string>
      const parentName = Effect.map(Effect.currentParentSpan, (span) => (span._tag === "Span" ? span.name : "external"))
      const ref = yield* spawn(
        behavior<null, Read>({
          init: () => null,
          receive: (state, reply) =>
            Effect.map(Effect.option(parentName), (name) => {
              reply.succeed(Option.getOrElse(name, () => "none"))
              return state
            }),
        }),
      ).pipe(Effect.withSpan("spawner"))
      const read = ask(ref, (reply: Read) => reply)
      expect(yield* Effect.withSpan(read, "asker")).toBe("asker")
      expect(yield* read).toBe("none")
    }).pipe(withSystem),
  )

  it.effect("ends what a handler forked when the handler ends, and keeps what self.fork forked until its own end", () =>
    Effect.gen(function* () {
      const ended: Array<string> = []
      const noteEnd = (name: string) => Effect.onExit(Effect.never, () => Effect.sync(() => void ended.push(name)))
      const ref = yield* spawn(
        behavior<number, ReplyTo<number>>({
          init: () => 0,
          receive: (n, reply, self) =>
            Effect.gen(function* () {
              if (n === 0) {
                yield* Effect.fork(noteEnd("fork"))
                yield* self.fork(noteEnd("self.fork"))
                yield* Effect.yieldNow()
              }
              reply.succeed(n)
              return n + 1
            }),
        }),
      )
      const next = ask(ref, (reply: ReplyTo<number>) => reply)
      yield* next
      expect(yield* next).toBe(1)
      expect(ended).toEqual(["fork"])
      yield* stop(ref)
      expect(ended).toEqual(["fork", "self.fork"])
    }).pipe(withSystem),
  )

  it.effect("releases the resources of its scope at its end", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const ref = yield* spawn(
        behavior<null, never>({
          init: (self) =>
            Effect.acquireRelease(
              Effect.as(
                Effect.sync(() => void log.push("open")),
                null,
              ),
              () => Effect.sync(() => void log.push("close")),
            ).pipe(Effect.provideService(Scope.Scope, self.scope)),
          receive: Effect.succeed,
          onStop: () => Effect.sync(() => void log.push("onStop")),
        }),
      )
      yield* stop(ref)
      expect(log).toEqual(["open", "onStop", "close"])
    }).pipe(withSystem),
  )

  it.effect("makes no fiber or timer of its own while it is idle", () =>
    Effect.gen(function* () {
      const refs = []
      for (let i = 0; i < 1_000; i++) refs.push(yield* spawn(counter))
      for (const ref of refs) yield* tell(ref, add())
      for (const ref of refs) expect(yield* getTotal(ref)).toBe(1)
      const system = yield* ActorSystem
      expect(system.actors).toBe(1_000)
      for (const ref of refs) expect(Reflect.get(ref, "worker")).toBeNull()
    }).pipe(withSystem),
  )
})

describe("a crash", () => {
  it.effect.each<{ readonly how: string; readonly message: CounterMessage }>([
    { how: "a typed failure", message: crash({ _tag: "Oops" }) },
    { how: "a thrown error", message: { _tag: "Throw" } },
  ])("by $how ends the actor and not its neighbour", ({ message }) =>
    Effect.gen(function* () {
      const neighbour = yield* spawn(counter)
      const ref = yield* spawn(counter)
      yield* tell(ref, message)
      const { reason } = yield* awaitDown(ref)
      expect(reason._tag).toBe("Crashed")
      expect(yield* getTotal(neighbour)).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("of an asked actor gives the asker the cause, and later askers fail at once", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter)
      const first = yield* Effect.flip(
        ask(ref, (reply: ReplyTo<number, string>): CounterMessage => ({ _tag: "CrashAsked", reply })),
      )
      expect(first).toBeInstanceOf(ActorDown)
      expect((first as ActorDown).message).toContain("crashed while asked")
      expect(yield* Effect.flip(getTotal(ref))).toBeInstanceOf(ActorDown)
    }).pipe(withSystem),
  )

  it.effect("restarts a permanent child, which keeps its ref and the mail that waited", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter, { childSpec: { restart: "permanent" } })
      yield* tell(ref, add(5))
      yield* tell(ref, crash())
      yield* tell(ref, add(1))
      yield* tell(ref, add(1))
      expect(yield* getTotal(ref)).toBe(2)
    }).pipe(withSystem),
  )

  it.effect("does not deliver the message that crashed the actor again", () =>
    Effect.gen(function* () {
      let deliveries = 0
      const ref = yield* spawn(
        behavior<null, "poison" | ReplyTo<number>>({
          init: () => null,
          receive: (state, message) => {
            if (message === "poison") {
              deliveries++
              return Effect.fail("poisoned")
            }
            message.succeed(deliveries)
            return Effect.succeed(state)
          },
        }),
        { childSpec: { restart: "permanent" } },
      )
      yield* tell(ref, "poison" as const)
      expect(yield* ask(ref, (reply: ReplyTo<number>) => reply)).toBe(1)
    }).pipe(withSystem),
  )

  it.effect("fails a kept reply port, as the state that would have answered is lost", () =>
    Effect.gen(function* () {
      type Message = { readonly keep: ReplyTo<number> } | "crash"
      const ref = yield* spawn(
        behavior<Array<ReplyTo<number>>, Message>({
          init: () => [],
          receive: (kept, message) =>
            message === "crash" ? Effect.fail("boom") : Effect.succeed([...kept, message.keep]),
        }),
        { childSpec: { restart: "permanent" } },
      )
      const asking = yield* Effect.fork(Effect.flip(ask(ref, (keep: ReplyTo<number>): Message => ({ keep }))))
      yield* Effect.yieldNow()
      yield* tell(ref, "crash" as const)
      expect(yield* Fiber.join(asking)).toBeInstanceOf(ActorDown)
    }).pipe(withSystem),
  )

  it.effect("counts a failing init of a restart, and ends the actor with the intensity", () =>
    Effect.gen(function* () {
      let starts = 0
      const ref = yield* spawn(
        behavior<number, "crash">({
          init: () => (++starts === 1 ? 0 : Effect.fail("cannot come back")),
          receive: () => Effect.fail("boom"),
        }),
        { childSpec: { restart: "permanent", maxRestarts: 3, withinMs: 1_000 } },
      )
      yield* tell(ref, "crash" as const)
      const { reason } = yield* awaitDown(ref)
      expect(reason._tag).toBe("Crashed")
      expect(starts).toBe(4)
    }).pipe(withSystem),
  )

  it.effect("shows in the live tree", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter, { name: "bank", childSpec: { restart: "permanent" } })
      yield* tell(ref, crash("out of money"))
      yield* getTotal(ref)
      const tree = yield* (yield* ActorSystem).tree()
      expect(tree.path).toBe("/user")
      expect(tree.children).toMatchObject([
        { name: "bank", path: "/user/bank", kind: "actor", state: "idle", mailbox: 0, restarts: 1 },
      ])
      expect(tree.children[0]?.lastCrash?.message).toBe("out of money")
    }).pipe(withSystem),
  )
})

describe("spawn", () => {
  it.effect("waits for an init that takes time, and fails with its cause", () =>
    Effect.gen(function* () {
      const opened = yield* Deferred.make<number>()
      const slow = behavior<number, ReplyTo<number>>({
        init: () => Deferred.await(opened),
        receive: (n, reply) => {
          reply.succeed(n)
          return Effect.succeed(n)
        },
      })
      const spawning = yield* Effect.fork(spawn(slow))
      yield* Effect.yieldNow()
      expect(yield* Fiber.poll(spawning)).toEqual(Option.none())
      yield* Deferred.succeed(opened, 7)
      const ref = yield* Fiber.join(spawning)
      expect(yield* ask(ref, (reply: ReplyTo<number>) => reply)).toBe(7)

      const failed = yield* Effect.flip(
        spawn(behavior<null, never>({ init: () => Effect.fail("no disk"), receive: Effect.succeed })),
      )
      expect(failed).toBeInstanceOf(SpawnError)
      expect(failed).toMatchObject({ problem: "init_failed" })
      expect(failed.message).toContain("no disk")
    }).pipe(withSystem),
  )

  it.effect("refuses a name that a sibling has, and takes it again after the sibling's end", () =>
    Effect.gen(function* () {
      const first = yield* spawn(counter, { name: "one" })
      expect(first.path).toBe("/user/one")
      expect(yield* Effect.flip(spawn(counter, { name: "one" }))).toMatchObject({ problem: "name_taken" })
      yield* stop(first)
      yield* spawn(counter, { name: "one" })
    }).pipe(withSystem),
  )

  it.effect("of a child by its parent stops it with the parent, the newest first", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const leaf = (name: string) =>
        behavior<null, never>({
          init: () => null,
          receive: Effect.succeed,
          onStop: (_, reason) => Effect.sync(() => void log.push(`${name} ${reason._tag}`)),
        })
      const parent = yield* spawn(
        behavior<null, never>({
          init: (self) =>
            Effect.gen(function* () {
              yield* self.spawn(leaf("a"))
              yield* self.spawn(leaf("b"))
              return null
            }),
          receive: Effect.succeed,
          onStop: () => Effect.sync(() => void log.push("parent")),
        }),
      )
      yield* stop(parent)
      expect(log).toEqual(["b Shutdown", "a Shutdown", "parent"])
    }).pipe(withSystem),
  )
})

describe("an ask", () => {
  it.effect("fails at its deadline on the test clock, and a late answer is known to be late", () =>
    Effect.gen(function* () {
      const late: Array<boolean> = []
      const ref = yield* spawn(
        behavior<null, ReplyTo<number>>({
          init: () => null,
          receive: (state, reply) =>
            Effect.as(
              Effect.delay(
                Effect.sync(() => void late.push(reply.succeed(1))),
                10_000,
              ),
              state,
            ),
        }),
      )
      const asking = yield* Effect.fork(Effect.flip(ask(ref, (reply: ReplyTo<number>) => reply, { timeoutMs: 3_000 })))
      yield* Effect.yieldNow()
      yield* TestClock.adjust(2_999)
      expect(yield* Fiber.poll(asking)).toEqual(Option.none())
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(asking)).toEqual(new AskTimeout({ path: ref.path, timeoutMs: 3_000 }))
      yield* TestClock.adjust(10_000)
      yield* stop(ref)
      expect(late).toEqual([false])
    }).pipe(withSystem),
  )

  it.live("keeps short and long deadlines apart in real time", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(behavior<null, ReplyTo<number>>({ init: () => null, receive: Effect.succeed }))
      const waiting = (timeoutMs: number) => Effect.flip(ask(ref, (reply: ReplyTo<number>) => reply, { timeoutMs }))
      const longest = yield* Effect.fork(waiting(3_600_000))
      yield* Effect.yieldNow()
      expect(yield* waiting(1_000)).toBeInstanceOf(AskTimeout)
      expect(yield* waiting(20)).toBeInstanceOf(AskTimeout)
      expect(yield* Fiber.poll(longest)).toEqual(Option.none())
      yield* stop(ref)
      expect(yield* Fiber.join(longest)).toBeInstanceOf(ActorDown)
    }).pipe(withSystem),
  )
})

describe("unsafeSpawn", () => {
  it.effect("starts an actor from a callback, which gets its mail once it is up", () =>
    Effect.gen(function* () {
      const { guardian } = yield* ActorSystem
      const open = yield* Deferred.make<void>()
      const slow = behavior<number, CounterMessage>({ ...counter, init: () => Effect.as(Deferred.await(open), 10) })
      const ref = unsafeSpawn(slow, { parent: guardian, name: "slow" })
      expect(ref.path).toBe("/user/slow")
      expect(unsafeTell(ref, add())).toBe(true)
      yield* Deferred.succeed(open, undefined)
      expect(yield* getTotal(ref)).toBe(11)
    }).pipe(withSystem),
  )

  it.effect("throws where the parent takes no child, or none of that name", () =>
    Effect.gen(function* () {
      const parent = yield* spawn(counter, { name: "parent" })
      unsafeSpawn(counter, { parent, name: "one" })
      const refused = (problem: string) => expect.objectContaining({ _tag: "SpawnError", problem })
      expect(() => unsafeSpawn(counter, { parent, name: "one" })).toThrow(refused("name_taken"))
      yield* stop(parent)
      expect(() => unsafeSpawn(counter, { parent })).toThrow(refused("parent_down"))
    }).pipe(withSystem),
  )

  it.effect("gives the ref of an actor that does not come up, and of one that the parent brings up again", () =>
    Effect.gen(function* () {
      const { guardian } = yield* ActorSystem
      let attempts = 0
      const late = behavior<number, CounterMessage>({
        ...counter,
        init: () => (++attempts < 3 ? Effect.fail("not yet") : 0),
      })
      const given = unsafeSpawn(late, { parent: guardian, childSpec: { restart: "permanent" } })
      expect(unsafeTell(given, add())).toBe(true)
      expect(yield* getTotal(given)).toBe(1)
      const never = behavior<number, CounterMessage>({ ...counter, init: () => Effect.fail("no disk") })
      const ended = unsafeSpawn(never, { parent: guardian })
      expect((yield* awaitDown(ended)).reason._tag).toBe("Crashed")
    }).pipe(withSystem),
  )
})

describe("a dead letter", () => {
  it.effect("is counted for every message that reaches no live actor", () =>
    Effect.gen(function* () {
      const system = yield* ActorSystem
      const ref = yield* spawn(counter)
      yield* stop(ref)
      yield* tell(ref, add())
      expect(unsafeTell(ref, add())).toBe(false)
      expect(system.deadLetters).toBe(2)
    }).pipe(withSystem),
  )

  it.effect("is every message that is left in the mailbox at the end", () =>
    Effect.gen(function* () {
      const system = yield* ActorSystem
      const ref = yield* spawn(counter)
      yield* tell(ref, crash())
      for (let i = 0; i < 4; i++) yield* tell(ref, add())
      yield* awaitDown(ref)
      expect(system.deadLetters).toBe(4)
    }).pipe(withSystem),
  )
})

describe("the system", () => {
  it.effect("stops every actor, the newest first, when its layer is released", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const named = (name: string) =>
        behavior<null, never>({
          init: () => null,
          receive: Effect.succeed,
          onStop: () => Effect.sync(() => void log.push(name)),
        })
      const after = yield* Effect.gen(function* () {
        yield* spawn(named("first"))
        return yield* spawn(named("second"))
      }).pipe(withSystem)
      expect(log).toEqual(["second", "first"])
      expect(Exit.isFailure(yield* Effect.exit(ask(after, (_: ReplyTo<never>) => undefined as never)))).toBe(true)
    }),
  )

  it.effect("keeps two systems apart", () =>
    Effect.gen(function* () {
      const a = yield* Effect.provide(
        Effect.map(ActorSystem, (system) => system),
        Layer.fresh(ActorSystem.layer()),
      )
      const b = yield* Effect.provide(
        Effect.map(ActorSystem, (system) => system),
        Layer.fresh(ActorSystem.layer()),
      )
      expect(a).not.toBe(b)
    }),
  )
})

describe("a dead actor", () => {
  it.effect("keeps no more than its name for those who hold its ref", () =>
    Effect.gen(function* () {
      const plain = yield* spawn(counter)
      const named = yield* spawn(counter, { name: "alice" })
      for (const ref of [plain, named]) {
        const { path } = ref
        yield* watch(ref)
        yield* stop(ref)
        expect(ref.path).toBe(path)
      }
      expect(cellOf(plain).hasExtras).toBeNull()
    }).pipe(withSystem),
  )
})
