/**
 * What if X arrives before Y: the orders of events that a kernel gets wrong.
 */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Option, TestClock } from "effect"
import {
  ActorDown,
  ActorSystem,
  ask,
  awaitDown,
  behavior,
  crashed,
  type Down,
  type ReplyTo,
  spawn,
  stop,
  tell,
  unsafeTell,
  watch,
} from "../../src/actors/kernel/index.ts"
import { add, type CounterMessage, counter, crash, gate, getTotal, hold, note, notes, withSystem } from "./support.ts"

const idle = behavior<null, never>({ init: () => null, receive: Effect.succeed })

describe("a stop", () => {
  it.effect("during init interrupts init, and the spawner learns it", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const entered = yield* Deferred.make<void>()
      const parent = yield* spawn(idle)
      const slow = behavior<null, never>({
        init: () =>
          Deferred.succeed(entered, undefined).pipe(
            Effect.zipRight(Effect.never),
            Effect.onInterrupt(() => Effect.sync(() => void log.push("init interrupted"))),
          ),
        receive: Effect.succeed,
        onStop: () => Effect.sync(() => void log.push("onStop")),
      })
      const spawning = yield* Effect.fork(Effect.flip(spawn(slow, { parent })))
      yield* Deferred.await(entered)
      yield* stop(parent)
      expect(yield* Fiber.join(spawning)).toMatchObject({ problem: "stopped" })
      expect(log).toEqual(["init interrupted"]) // there is no state that onStop could get
    }).pipe(withSystem),
  )

  it.effect("by the actor itself lets a handler that does not wait come to its end, also without a shutdown time", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const selfish = behavior<null, "end" | "end and wait">({
        init: () => null,
        receive: (state, message, self) => {
          const after = message === "end" ? Effect.void : Effect.never
          const rest = Effect.zipRight(
            after,
            Effect.sync(() => void log.push(`${message}: done`)),
          )
          const guarded = Effect.onInterrupt(rest, () => Effect.sync(() => void log.push(`${message}: interrupted`)))
          return Effect.as(Effect.zipRight(self.stop(), guarded), state)
        },
      })
      for (const message of ["end", "end and wait"] as const) {
        const ref = yield* spawn(selfish, { childSpec: { shutdownMs: 0 } })
        yield* tell(ref, message)
        yield* awaitDown(ref)
      }
      expect(log).toEqual(["end: done", "end and wait: interrupted"])
    }).pipe(withSystem),
  )

  it.effect("by the actor inside its own init ends it, and the spawn fails", () =>
    Effect.gen(function* () {
      const selfish = (asynchronous: boolean) =>
        behavior<null, never>({
          init: (self) =>
            asynchronous
              ? Effect.zipRight(Effect.zipRight(Effect.yieldNow(), self.stop()), Effect.never)
              : Effect.runSync(Effect.as(self.stop(), null)),
          receive: Effect.succeed,
        })
      expect(yield* Effect.flip(spawn(selfish(false)))).toMatchObject({ problem: "stopped" })
      expect(yield* Effect.flip(spawn(selfish(true)))).toMatchObject({ problem: "stopped" })
      expect((yield* ActorSystem).actors).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("of the spawner while init runs stops the newcomer", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const slow = behavior<null, never>({
        init: () => Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never),
        receive: Effect.succeed,
      })
      const spawning = yield* Effect.fork(spawn(slow))
      yield* Deferred.await(entered)
      expect((yield* ActorSystem).actors).toBe(1)
      yield* Fiber.interrupt(spawning)
      expect((yield* ActorSystem).actors).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("lets the running handler finish within the shutdown deadline", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const ref = yield* spawn(gate({ log }))
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      const stopping = yield* Effect.fork(stop(ref))
      yield* TestClock.adjust(4_999)
      expect(yield* Fiber.poll(stopping)).toEqual(Option.none())
      yield* release
      yield* Fiber.join(stopping)
      expect(log).toEqual(["stopped Shutdown"])
    }).pipe(withSystem),
  )

  it.effect("interrupts the running handler at the shutdown deadline", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const ref = yield* spawn(gate({ log }))
      yield* hold(ref, (message) => tell(ref, message))
      const stopping = yield* Effect.fork(stop(ref))
      yield* Effect.yieldNow()
      yield* TestClock.adjust(5_000)
      yield* Fiber.join(stopping)
      expect(log).toEqual(["interrupted", "stopped Shutdown"])
    }).pipe(withSystem),
  )

  it.effect("that is more urgent overtakes one that waits", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const ref = yield* spawn(gate({ log }))
      yield* hold(ref, (message) => tell(ref, message))
      const patient = yield* Effect.fork(stop(ref))
      yield* Effect.yieldNow()
      yield* stop(ref, undefined, { shutdownMs: 0 })
      yield* Fiber.join(patient)
      expect(log[0]).toBe("interrupted")
    }).pipe(withSystem),
  )

  it.effect("of an actor by itself does not wait for itself", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        behavior<null, "stop">({ init: () => null, receive: (state, _, self) => Effect.as(stop(self.ref), state) }),
      )
      yield* tell(ref, "stop" as const)
      expect((yield* awaitDown(ref)).reason._tag).toBe("Shutdown")
    }).pipe(withSystem),
  )

  it.effect("of the parent by a child's handler ends both, once the child's deadline has passed", () =>
    Effect.gen(function* () {
      const parent = yield* spawn(idle)
      const asked = yield* Deferred.make<void>()
      const child = yield* spawn(
        behavior<null, "stop parent">({
          init: () => null,
          receive: (state) => Effect.as(Effect.zipRight(Deferred.succeed(asked, undefined), stop(parent)), state),
        }),
        { parent },
      )
      yield* tell(child, "stop parent" as const)
      yield* Deferred.await(asked)
      const down = yield* Effect.fork(awaitDown(parent))
      yield* TestClock.adjust(5_000)
      yield* Fiber.join(down)
      expect((yield* ActorSystem).actors).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("twice at the same time is one stop", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const ref = yield* spawn(gate({ log }))
      yield* Effect.all([stop(ref), stop(ref), stop(ref)], { concurrency: "unbounded" })
      yield* stop(ref)
      expect(log).toEqual(["stopped Shutdown"])
    }).pipe(withSystem),
  )

  it.effect("of a permanent child is final", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter, { childSpec: { restart: "permanent" } })
      yield* stop(ref)
      expect(yield* Effect.flip(getTotal(ref))).toBeInstanceOf(ActorDown)
    }).pipe(withSystem),
  )

  it.effect("while a crashed incarnation winds down prevents the restart", () =>
    Effect.gen(function* () {
      const winding = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      let starts = 0
      const ref = yield* spawn(
        behavior<number, "crash">({
          init: () => ++starts,
          receive: () => Effect.fail("boom"),
          onStop: () => Effect.zipRight(Deferred.succeed(winding, undefined), Deferred.await(release)),
        }),
        { childSpec: { restart: "permanent" } },
      )
      yield* tell(ref, "crash" as const)
      yield* Deferred.await(winding)
      const stopping = yield* Effect.fork(stop(ref))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(stopping)
      expect(starts).toBe(1)
    }).pipe(withSystem),
  )
})

describe("an ask", () => {
  it.effect("of a stopping actor fails at once", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate())
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      const stopping = yield* Effect.fork(stop(ref))
      yield* Effect.yieldNow()
      expect(yield* Effect.flip(notes(ref))).toBeInstanceOf(ActorDown)
      yield* release
      yield* Fiber.join(stopping)
    }).pipe(withSystem),
  )

  it.effect("that waits in the mailbox survives a restart and is answered by the next incarnation", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter, { childSpec: { restart: "permanent" } })
      yield* tell(ref, add(5))
      yield* tell(ref, crash())
      const waiting = yield* Effect.all([getTotal(ref), getTotal(ref)], { concurrency: "unbounded" })
      expect(waiting).toEqual([0, 0])
    }).pipe(withSystem),
  )

  it.effect("whose asker is interrupted leaves the actor and the other askers alone", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate())
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      const impatient = yield* Effect.fork(notes(ref))
      const patient = yield* Effect.fork(notes(ref))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(impatient)
      yield* release
      expect(yield* Fiber.join(patient)).toEqual([])
    }).pipe(withSystem),
  )

  it.effect("of an asker that may not be interrupted is answered although somebody tried", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate({ capacity: 1 }))
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      yield* tell(ref, note("a"))
      let answer: ReadonlyArray<string> = []
      const held = Effect.map(notes(ref), (read) => {
        answer = read
      })
      const asking = yield* Effect.fork(Effect.uninterruptible(held)) // held back by the full mailbox
      yield* Effect.yieldNow()
      yield* Fiber.interruptFork(asking)
      yield* Effect.yieldNow()
      yield* release
      yield* Fiber.await(asking)
      expect(answer).toEqual(["a"])
    }).pipe(withSystem),
  )

  it.effect("whose asker was interrupted tells the answering actor so", () =>
    Effect.gen(function* () {
      const ports: Array<ReplyTo<number>> = []
      const ref = yield* spawn(
        behavior<null, ReplyTo<number>>({
          init: () => null,
          receive: (state, reply) => {
            ports.push(reply)
            return Effect.succeed(state)
          },
        }),
      )
      const asking = yield* Effect.fork(
        ask(ref, (reply: ReplyTo<number>) => reply, { timeoutMs: Number.POSITIVE_INFINITY }),
      )
      yield* Effect.yieldNow()
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(asking)
      expect(ports.map((reply) => reply.succeed(1))).toEqual([false])
    }).pipe(withSystem),
  )

  it.effect("from a handler whose actor is stopped is interrupted with the handler", () =>
    Effect.gen(function* () {
      const silent = yield* spawn(behavior<null, ReplyTo<number>>({ init: () => null, receive: Effect.succeed }))
      const asking = yield* Deferred.make<void>()
      const front = yield* spawn(
        behavior<null, "go">({
          init: () => null,
          receive: (state) =>
            Effect.as(
              Effect.zipRight(
                Deferred.succeed(asking, undefined),
                ask(silent, (reply: ReplyTo<number>) => reply),
              ),
              state,
            ),
        }),
      )
      yield* tell(front, "go" as const)
      yield* Deferred.await(asking)
      yield* stop(front, undefined, { shutdownMs: 0 })
      expect((yield* ActorSystem).actors).toBe(1)
    }).pipe(withSystem),
  )

  it.effect("to a dead actor from inside a handler is a typed failure there, not a hang", () =>
    Effect.gen(function* () {
      const gone = yield* spawn(counter)
      yield* stop(gone)
      const front = yield* spawn(
        behavior<null, ReplyTo<string>>({
          init: () => null,
          receive: (state, reply) =>
            getTotal(gone).pipe(
              Effect.catchTag("ActorDown", ({ _tag }) => Effect.sync(() => void reply.succeed(_tag))),
              Effect.as(state),
            ),
        }),
      )
      expect(yield* ask(front, (reply: ReplyTo<string>) => reply)).toBe("ActorDown")
    }).pipe(withSystem),
  )

  it.effect("by a handler of its own actor is a defect, not a wait for itself", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        behavior<null, ReplyTo<null>>({
          init: () => null,
          receive: (state, _, self) =>
            Effect.as(
              ask(self.ref, (reply: ReplyTo<null>) => reply),
              state,
            ),
        }),
      )
      const error = yield* Effect.flip(ask(ref, (reply: ReplyTo<null>) => reply))
      expect(error.message).toContain("expected another actor to ask, got itself")
    }).pipe(withSystem),
  )

  it.effect("is answered once: the second answer comes too late", () =>
    Effect.gen(function* () {
      const results: Array<boolean> = []
      const ref = yield* spawn(
        behavior<null, ReplyTo<number, string>>({
          init: () => null,
          receive: (state, reply) => {
            results.push(reply.succeed(1), reply.fail("no"), reply.die("no"))
            return Effect.succeed(state)
          },
        }),
      )
      expect(yield* ask(ref, (reply: ReplyTo<number, string>) => reply)).toBe(1)
      expect(results).toEqual([true, false, false])
    }).pipe(withSystem),
  )

  it.effect("whose reply port is itself sent as a message is not taken for the ask", () =>
    Effect.gen(function* () {
      const sink: Array<unknown> = []
      const collector = yield* spawn(
        behavior<null, unknown>({
          init: () => null,
          receive: (state, message) => {
            sink.push(message)
            return Effect.succeed(state)
          },
        }),
      )
      const forwarder = yield* spawn(
        behavior<null, ReplyTo<number>>({
          init: () => null,
          receive: (state, reply, self) =>
            Effect.gen(function* () {
              yield* tell(collector, reply)
              yield* Effect.yieldNow()
              reply.succeed(self.id)
              return state
            }),
        }),
      )
      expect(yield* ask(forwarder, (reply: ReplyTo<number>) => reply)).toBe(forwarder.id)
      yield* stop(collector)
      expect(sink).toHaveLength(1)
      expect(typeof (sink[0] as ReplyTo<number>).succeed).toBe("function")
    }).pipe(withSystem),
  )
})

describe("a full mailbox", () => {
  it.effect("holds tellers and askers back, in order, and takes their messages as room comes", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate({ capacity: 2 }))
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      yield* tell(ref, note("a"))
      yield* tell(ref, note("b"))
      expect(unsafeTell(ref, note("refused"))).toBe(false)
      const third = yield* Effect.fork(tell(ref, note("c")))
      yield* Effect.yieldNow()
      const fourth = yield* Effect.fork(tell(ref, note("d")))
      yield* Effect.yieldNow()
      const asking = yield* Effect.fork(notes(ref))
      yield* Effect.yieldNow()
      expect(yield* Fiber.poll(third)).toEqual(Option.none())
      yield* release
      yield* Fiber.join(third)
      yield* Fiber.join(fourth)
      expect(yield* Fiber.join(asking)).toEqual(["a", "b", "c", "d"])
      expect((yield* ActorSystem).deadLetters).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("forgets a held-back sender that was interrupted", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate({ capacity: 1 }))
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      yield* tell(ref, note("a"))
      const interrupted = yield* Effect.fork(tell(ref, note("never sent")))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(interrupted)
      yield* release
      expect(yield* notes(ref)).toEqual(["a"])
    }).pipe(withSystem),
  )

  it.effect("counts the time that an asker is held back against the ask's deadline", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate({ capacity: 1 }))
      const { release } = yield* hold(ref, (message) => tell(ref, message))
      yield* tell(ref, note("a"))
      const asking = yield* Effect.fork(Effect.flip(notes(ref)))
      yield* Effect.yieldNow()
      yield* TestClock.adjust(5_000)
      expect((yield* Fiber.join(asking))._tag).toBe("AskTimeout")
      yield* release
      expect(yield* notes(ref)).toEqual(["a"])
    }).pipe(withSystem),
  )

  it.effect("of a stopping actor lets held-back senders go: dead letters, and failed asks", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(gate({ capacity: 1 }))
      yield* hold(ref, (message) => tell(ref, message))
      yield* tell(ref, note("a"))
      const telling = yield* Effect.fork(tell(ref, note("b")))
      yield* Effect.yieldNow()
      const asking = yield* Effect.fork(Effect.flip(notes(ref)))
      yield* Effect.yieldNow()
      yield* stop(ref, undefined, { shutdownMs: 0 })
      yield* Fiber.join(telling)
      expect(yield* Fiber.join(asking)).toBeInstanceOf(ActorDown)
      expect((yield* ActorSystem).deadLetters).toBe(2)
    }).pipe(withSystem),
  )

  it.effect("does not hold back what an actor tells itself", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        behavior<number, "spread" | "one" | ReplyTo<number>>({
          capacity: 1,
          init: () => 0,
          receive: (n, message, self) => {
            if (message === "spread") return Effect.as(Effect.replicateEffect(tell(self.ref, "one" as const), 10), n)
            if (message === "one") return Effect.succeed(n + 1)
            message.succeed(n)
            return Effect.succeed(n)
          },
        }),
      )
      yield* tell(ref, "spread" as const)
      yield* ask(ref, (reply: ReplyTo<number>) => reply)
      expect(yield* ask(ref, (reply: ReplyTo<number>) => reply)).toBe(10)
    }).pipe(withSystem),
  )
})

describe("a crash", () => {
  it.effect("in onStop is recorded and does not keep the actor from ending", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        behavior<null, never>({ init: () => null, receive: Effect.succeed, onStop: () => Effect.die("in onStop") }),
      )
      yield* stop(ref)
      expect((yield* awaitDown(ref)).reason._tag).toBe("Shutdown")
    }).pipe(withSystem),
  )

  it.effect("in an onStop that throws is the same", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        behavior<null, never>({
          init: () => null,
          receive: Effect.succeed,
          onStop: () => {
            throw new Error("thrown in onStop")
          },
        }),
      )
      yield* stop(ref)
    }).pipe(withSystem),
  )

  it.effect("while an onStop hangs ends at the shutdown deadline", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        behavior<null, never>({ init: () => null, receive: Effect.succeed, onStop: () => Effect.never }),
      )
      const stopping = yield* Effect.fork(stop(ref))
      yield* Effect.yieldNow()
      yield* TestClock.adjust(5_000)
      yield* Fiber.join(stopping)
    }).pipe(withSystem),
  )

  it.effect("of the parent while a child's handler is suspended ends the child too", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const parent = yield* spawn(counter)
      const child = yield* spawn(gate({ log }), { parent, childSpec: { shutdownMs: 0 } })
      yield* hold(child, (message) => tell(child, message))
      yield* tell(parent, crash())
      yield* awaitDown(parent)
      expect(log).toEqual(["interrupted"])
    }).pipe(withSystem),
  )

  it.effect("from outside of a suspended handler (an escalating child) interrupts that handler", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const parent = yield* spawn(gate({ log }))
      const child = yield* spawn(counter, { parent, childSpec: { restart: "permanent", maxRestarts: 0 } })
      yield* hold(parent, (message) => tell(parent, message))
      yield* tell(child, crash())
      const { reason } = yield* awaitDown(parent)
      expect(reason._tag).toBe("Crashed")
      expect(log).toEqual(["interrupted", "stopped Crashed"])
    }).pipe(withSystem),
  )

  it.effect("by a handler's own interruption is a crash like any other", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(behavior<null, "go">({ init: () => null, receive: () => Effect.interrupt }))
      yield* tell(ref, "go" as const)
      const { reason } = yield* awaitDown(ref)
      expect(reason._tag === "Crashed" && Cause.isInterruptedOnly(reason.cause)).toBe(true)
    }).pipe(withSystem),
  )

  it.effect("of one actor does not disturb a neighbour that shares its worker", () =>
    Effect.gen(function* () {
      const neighbours = yield* Effect.replicateEffect(spawn(counter), 20)
      const fragile = yield* Effect.replicateEffect(spawn(counter, { childSpec: { restart: "permanent" } }), 20)
      for (let i = 0; i < 3; i++) {
        for (const ref of fragile) yield* tell(ref, i === 1 ? { _tag: "Throw" as const } : crash())
        for (const ref of neighbours) yield* tell(ref, add())
      }
      for (const ref of neighbours) expect(yield* getTotal(ref)).toBe(3)
      for (const ref of fragile) expect(yield* getTotal(ref)).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("of a handler with forked children ends them before the next incarnation starts", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const ref = yield* spawn(
        behavior<null, "crash" | ReplyTo<null>>({
          init: () => {
            log.push("init")
            return null
          },
          receive: (state, message) => {
            if (message !== "crash") {
              message.succeed(null)
              return Effect.succeed(state)
            }
            return Effect.never.pipe(
              Effect.onInterrupt(() => Effect.sync(() => void log.push("child ended"))),
              Effect.fork,
              Effect.zipRight(Effect.yieldNow()),
              Effect.zipRight(Effect.fail("boom")),
            )
          },
        }),
        { childSpec: { restart: "permanent" } },
      )
      yield* tell(ref, "crash" as const)
      yield* ask(ref, (reply: ReplyTo<null>) => reply)
      expect(log).toEqual(["init", "child ended", "init"])
    }).pipe(withSystem),
  )

  it.effect("leaves no interruption behind for the next handler of the same worker", () =>
    Effect.gen(function* () {
      const other = yield* spawn(counter)
      const held = yield* spawn(gate())
      yield* hold(held, (message) => tell(held, message))
      yield* Effect.all([stop(held, undefined, { shutdownMs: 0 }), tell(other, add())], { concurrency: "unbounded" })
      for (let i = 0; i < 200; i++) yield* tell(other, add())
      expect(yield* getTotal(other)).toBe(201)
    }).pipe(withSystem),
  )
})

describe("a watch", () => {
  const watcher = behavior<
    ReadonlyArray<Down>,
    { readonly watch: Parameters<typeof awaitDown>[0] } | ReplyTo<ReadonlyArray<Down>>
  >({
    init: () => [],
    receive: (downs, message, self) => {
      if ("watch" in message) return Effect.as(self.watch(message.watch), downs)
      message.succeed(downs)
      return Effect.succeed(downs)
    },
    onDown: (downs, down) => Effect.succeed([...downs, down]),
  })
  const downsOf = (ref: Effect.Effect.Success<ReturnType<typeof spawnWatcher>>) =>
    ask(ref, (reply: ReplyTo<ReadonlyArray<Down>>) => reply)
  const spawnWatcher = () => spawn(watcher)

  it.effect("after the death gives the reason of the death", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter)
      yield* tell(ref, crash("first"))
      yield* awaitDown(ref)
      const late = yield* spawnWatcher()
      yield* tell(late, { watch: ref })
      yield* downsOf(late) // the notice comes behind what is in the mailbox already
      const downs = yield* downsOf(late)
      expect(downs.map((down) => down.ref)).toEqual([ref])
      expect(downs[0]?.reason).toEqual(crashed(Cause.fail("first")))
    }).pipe(withSystem),
  )

  it.effect("twice gives one Down", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter)
      const observer = yield* spawnWatcher()
      yield* tell(observer, { watch: ref })
      yield* tell(observer, { watch: ref })
      yield* downsOf(observer)
      yield* stop(ref)
      expect(yield* downsOf(observer)).toHaveLength(1)
    }).pipe(withSystem),
  )

  it.effect("sees no Down at a restart", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter, { childSpec: { restart: "permanent" } })
      const observer = yield* spawnWatcher()
      yield* tell(observer, { watch: ref })
      yield* downsOf(observer)
      yield* tell(ref, crash())
      yield* getTotal(ref)
      expect(yield* downsOf(observer)).toEqual([])
    }).pipe(withSystem),
  )

  it.effect("of an actor that has no onDown is a defect of the watcher", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter)
      const blind = yield* spawn(
        behavior<null, "watch">({ init: () => null, receive: (state, _, self) => Effect.as(self.watch(ref), state) }),
      )
      yield* tell(blind, "watch" as const)
      const { reason } = yield* awaitDown(blind)
      expect(reason._tag === "Crashed" && Cause.pretty(reason.cause)).toContain("onDown")
    }).pipe(withSystem),
  )

  it.effect("from outside sees the Down that came before it was asked for", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(counter)
      const down = yield* watch(ref)
      yield* stop(ref)
      expect((yield* down).reason._tag).toBe("Shutdown")
      expect((yield* down).ref).toBe(ref)
    }).pipe(withSystem),
  )
})

describe("a name in the registry", () => {
  it.effect("is refused while its holder lives, survives a restart, and is free after the end", () =>
    Effect.gen(function* () {
      const { registry } = yield* ActorSystem
      const holder = yield* spawn(counter, { childSpec: { restart: "permanent" } })
      const other = yield* spawn(counter)
      yield* registry.register("bank", holder)
      expect(yield* Effect.flip(registry.register("bank", other))).toMatchObject({
        _tag: "NameTaken",
        holder: holder.path,
      })
      yield* tell(holder, crash())
      yield* getTotal(holder)
      expect(yield* registry.whereis<CounterMessage>("bank")).toEqual(Option.some(holder))
      yield* stop(holder)
      expect(yield* registry.whereis("bank")).toEqual(Option.none())
      yield* registry.register("bank", other)
      expect(yield* registry.names).toEqual(["bank"])
    }).pipe(withSystem),
  )

  it.effect("is not given to a dead actor", () =>
    Effect.gen(function* () {
      const { registry } = yield* ActorSystem
      const ref = yield* spawn(counter)
      yield* stop(ref)
      yield* registry.register("late", ref)
      expect(yield* registry.whereis("late")).toEqual(Option.none())
    }).pipe(withSystem),
  )
})

describe("a spawn", () => {
  it.effect("of a child that never comes up is the spawner's failure, not its parent's crash", () =>
    Effect.gen(function* () {
      const parent = yield* spawn(counter)
      const broken = (init: () => Effect.Effect<null, unknown>) =>
        behavior<null, never>({ init, receive: Effect.succeed })
      for (const maxRestarts of [0, 2]) {
        const childSpec = { restart: "permanent", maxRestarts } as const
        for (const init of [
          () => Effect.fail("at once"),
          () => Effect.zipRight(Effect.yieldNow(), Effect.fail("later")),
        ]) {
          expect(yield* Effect.flip(spawn(broken(init), { parent, childSpec }))).toMatchObject({
            problem: "init_failed",
          })
        }
      }
      expect(yield* getTotal(parent)).toBe(0)
    }).pipe(withSystem),
  )

  it.effect("under a stopping or dead parent fails", () =>
    Effect.gen(function* () {
      const parent = yield* spawn(idle)
      yield* stop(parent)
      expect(yield* Effect.flip(spawn(counter, { parent }))).toMatchObject({ problem: "parent_down" })
    }).pipe(withSystem),
  )

  it.effect("in a system that has been released fails", () =>
    Effect.gen(function* () {
      const system = yield* withSystem(Effect.map(ActorSystem, (service) => service))
      const exit = yield* Effect.exit(Effect.provideService(spawn(counter), ActorSystem, system))
      expect(Exit.isFailure(exit)).toBe(true)
    }),
  )
})
