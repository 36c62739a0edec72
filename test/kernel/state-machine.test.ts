/**
 * State machines: transitions, postponed messages, enter effects, timeouts.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FastCheck as fc, TestClock } from "effect"
import {
  ActorDown,
  ActorSystem,
  ask,
  awaitDown,
  cancelTimeout,
  type Down,
  keep,
  next,
  nextEvent,
  postpone,
  type ReplyTo,
  spawn,
  stateMachine,
  stateTimeout,
  stop,
  stopMachine,
  tell,
  timeout,
} from "../../src/actors/kernel/index.ts"
import { counter, silently, withSystem } from "./support.ts"

type State = "closed" | "open"
type DoorMessage =
  | { readonly _tag: "Open" }
  | { readonly _tag: "Close" }
  | { readonly _tag: "Enter"; readonly who: number }
  | { readonly _tag: "EnterAsk"; readonly reply: ReplyTo<State> }
  | {
      readonly _tag: "Read"
      readonly reply: ReplyTo<{ readonly state: State; readonly inside: ReadonlyArray<number> }>
    }
  | { readonly _tag: "Crash" }
  | { readonly _tag: "End" }

/** People enter while it is open; while it is closed they wait. */
const door = (capacity = 1_000) =>
  stateMachine<ReadonlyArray<number>, DoorMessage, State>({
    name: "door",
    capacity,
    init: () => ({ state: "closed", data: [] }),
    handle: (state, message, inside) => {
      switch (message._tag) {
        case "Open":
          return Effect.succeed(next("open", inside))
        case "Close":
          return Effect.succeed(next("closed", inside))
        case "Enter":
          return Effect.succeed(state === "open" ? keep([...inside, message.who]) : postpone)
        case "EnterAsk":
          if (state === "closed") return Effect.succeed(postpone)
          message.reply.succeed(state)
          return Effect.succeed(keep(inside))
        case "Read":
          message.reply.succeed({ state, inside })
          return Effect.succeed(keep(inside))
        case "Crash":
          return Effect.fail("boom")
        case "End":
          return Effect.succeed(stopMachine())
      }
    },
  })

const open: DoorMessage = { _tag: "Open" }
const close: DoorMessage = { _tag: "Close" }
const enter = (who: number): DoorMessage => ({ _tag: "Enter", who })
const read = (reply: ReplyTo<{ readonly state: State; readonly inside: ReadonlyArray<number> }>): DoorMessage => ({
  _tag: "Read",
  reply,
})

describe("a state machine", () => {
  it.effect("delivers postponed messages in order, before what came later, on the next state change", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door())
      for (const who of [1, 2, 3]) yield* tell(ref, enter(who))
      yield* tell(ref, open)
      yield* tell(ref, enter(4))
      expect(yield* ask(ref, read)).toEqual({ state: "open", inside: [1, 2, 3, 4] })
    }).pipe(withSystem),
  )

  it.effect("does not deliver postponed messages again when the state stays", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door())
      yield* tell(ref, enter(1))
      yield* tell(ref, close) // closed already
      expect(yield* ask(ref, read)).toEqual({ state: "closed", inside: [] })
    }).pipe(withSystem),
  )

  it.effect("answers a postponed ask after the state change, and fails it when the machine ends before", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door())
      const enterAsk = (reply: ReplyTo<State>): DoorMessage => ({ _tag: "EnterAsk", reply })
      const waiting = yield* Effect.fork(ask(ref, enterAsk))
      yield* Effect.yieldNow()
      yield* tell(ref, open)
      expect(yield* Fiber.join(waiting)).toBe("open")
      yield* tell(ref, close)
      const lost = yield* Effect.fork(Effect.flip(ask(ref, enterAsk)))
      yield* Effect.yieldNow()
      yield* tell(ref, { _tag: "End" })
      expect(yield* Fiber.join(lost)).toBeInstanceOf(ActorDown)
      expect((yield* awaitDown(ref)).reason._tag).toBe("Normal")
    }).pipe(withSystem),
  )

  it.effect("keeps postponed messages, asks too, across a restart", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door(), { childSpec: { restart: "permanent" } })
      const waiting = yield* Effect.fork(
        ask(ref, (reply: ReplyTo<State>): DoorMessage => ({ _tag: "EnterAsk", reply })),
      )
      yield* Effect.yieldNow()
      yield* tell(ref, enter(1))
      yield* tell(ref, { _tag: "Crash" })
      yield* tell(ref, enter(2))
      yield* tell(ref, open)
      expect((yield* ask(ref, read)).inside).toEqual([1, 2])
      expect(yield* Fiber.join(waiting)).toBe("open")
    }).pipe(withSystem),
  )

  it.effect("counts what it still postpones as dead letters at its end", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door())
      for (const who of [1, 2, 3]) yield* tell(ref, enter(who))
      yield* ask(ref, read)
      yield* stop(ref)
      expect((yield* ActorSystem).deadLetters).toBe(3)
    }).pipe(withSystem),
  )

  it.effect("crashes with a clear error when it postpones more than its mailbox may hold", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door(2))
      yield* Effect.forEach([1, 2, 3], (who) => tell(ref, enter(who)), { discard: true })
      const { reason } = yield* awaitDown(ref)
      expect(reason).toMatchObject({ cause: { error: { _tag: "PostponeOverflow", state: "closed", capacity: 2 } } })
    }).pipe(withSystem),
  )

  it.effect("shows its state in the live tree", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(door())
      yield* tell(ref, open)
      yield* ask(ref, read)
      expect((yield* (yield* ActorSystem).tree()).children).toMatchObject([{ kind: "machine", state: "open" }])
    }).pipe(withSystem),
  )

  it.effect("is the same as a queue that opens and closes, for every sequence of messages", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(fc.constantFrom("enter", "open", "close"), { maxLength: 40 }), async (script) => {
          // The model: arrivals wait while the door is closed, and enter in order of arrival.
          let isOpen = false
          let who = 0
          const waiting: Array<number> = []
          const inside: Array<number> = []
          for (const step of script) {
            if (step === "enter") (isOpen ? inside : waiting).push(++who)
            else isOpen = step === "open"
            if (isOpen) inside.push(...waiting.splice(0))
          }
          const machine = await Effect.gen(function* () {
            const ref = yield* spawn(door())
            let arrived = 0
            for (const step of script) {
              yield* tell(ref, step === "enter" ? enter(++arrived) : step === "open" ? open : close)
            }
            return yield* ask(ref, read)
          }).pipe(withSystem, silently, Effect.runPromise)
          expect(machine).toEqual({ state: isOpen ? "open" : "closed", inside })
        }),
        { numRuns: 60 },
      ),
    ),
  )
})

describe("an enter effect", () => {
  type Phase = "first" | "second"
  type Go = { readonly go: Phase } | { readonly read: ReplyTo<ReadonlyArray<string>> }

  it.effect("runs for the first state and for each change, and its data is the machine's", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        stateMachine<ReadonlyArray<string>, Go, Phase>({
          init: () => ({ state: "first", data: [] }),
          onEnter: {
            first: (log, _self, from) => Effect.succeed([...log, `first from ${from}`]),
            second: (log, _self, from) => Effect.as(Effect.yieldNow(), [...log, `second from ${from}`]),
          },
          handle: (_state, message, log) => {
            if ("go" in message) return Effect.succeed(next(message.go, log))
            message.read.succeed(log)
            return Effect.succeed(keep(log))
          },
        }),
      )
      yield* tell(ref, { go: "first" })
      yield* tell(ref, { go: "second" })
      expect(yield* ask(ref, (reply: ReplyTo<ReadonlyArray<string>>): Go => ({ read: reply }))).toEqual([
        "first from null",
        "second from first",
      ])
    }).pipe(withSystem),
  )

  it.effect("that fails leaves the old state to onStop and crashes the machine", () =>
    Effect.gen(function* () {
      const seen = yield* Deferred.make<Phase>()
      const ref = yield* spawn(
        stateMachine<null, Go, Phase>({
          init: () => ({ state: "first", data: null }),
          onEnter: { second: () => Effect.fail("cannot enter") },
          handle: (_state, message, data) => Effect.succeed("go" in message ? next(message.go, data) : keep(data)),
          onStop: (state) => Deferred.succeed(seen, state),
        }),
      )
      yield* tell(ref, { go: "second" })
      expect((yield* awaitDown(ref)).reason._tag).toBe("Crashed")
      expect(yield* Deferred.await(seen)).toBe("first")
    }).pipe(withSystem),
  )
})

describe("a timeout", () => {
  type Phase = "waiting" | "working"
  type Message =
    | { readonly _tag: "Work"; readonly limitMs?: number }
    | { readonly _tag: "Done" }
    | { readonly _tag: "Late" }
    | { readonly _tag: "Ping"; readonly name: string; readonly ms: number }
    | { readonly _tag: "Pong"; readonly name: string }
    | { readonly _tag: "Cancel"; readonly name: string }
    | { readonly _tag: "Insert" }
    | { readonly _tag: "Read"; readonly reply: ReplyTo<string> }

  const machine = stateMachine<string, Message, Phase>({
    init: () => ({ state: "waiting", data: "" }),
    stateTimeouts: { working: { ms: 1_000, message: { _tag: "Late" } } },
    handle: (state, message, log) => {
      switch (message._tag) {
        case "Work":
          return Effect.succeed(
            next(
              "working",
              `${log}w`,
              message.limitMs === undefined ? [] : [stateTimeout(message.limitMs, { _tag: "Late" as const })],
            ),
          )
        case "Done":
          return Effect.succeed(next("waiting", `${log}d`))
        case "Late":
          return Effect.succeed(keep(`${log}L(${state})`))
        case "Ping":
          return Effect.succeed(
            keep(log, [timeout(message.name, message.ms, { _tag: "Pong" as const, name: message.name })]),
          )
        case "Pong":
          return Effect.succeed(keep(`${log}${message.name}`))
        case "Cancel":
          return Effect.succeed(keep(log, [cancelTimeout(message.name)]))
        case "Insert":
          return Effect.succeed(
            keep(`${log}i`, [
              nextEvent({ _tag: "Pong" as const, name: "1" }),
              nextEvent({ _tag: "Pong" as const, name: "2" }),
            ]),
          )
        case "Read":
          message.reply.succeed(log)
          return Effect.succeed(keep(log))
      }
    },
  })
  const readLog = (reply: ReplyTo<string>): Message => ({ _tag: "Read", reply })

  it.effect("of a state fires while the machine stays in it, and not after it has left", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(machine)
      yield* tell(ref, { _tag: "Work" })
      yield* ask(ref, readLog)
      yield* TestClock.adjust(1_000)
      expect(yield* ask(ref, readLog)).toBe("wL(working)")
      yield* tell(ref, { _tag: "Done" })
      yield* tell(ref, { _tag: "Work" })
      yield* ask(ref, readLog)
      yield* TestClock.adjust(999)
      yield* tell(ref, { _tag: "Done" })
      yield* ask(ref, readLog)
      yield* TestClock.adjust(5_000)
      expect(yield* ask(ref, readLog)).toBe("wL(working)dwd")
    }).pipe(withSystem),
  )

  it.effect("that has fired is not delivered when the state changed before its turn", () =>
    Effect.gen(function* () {
      const held = yield* Deferred.make<void>()
      const ref = yield* spawn(
        stateMachine<string, "hold" | "late" | ReplyTo<string>, "a" | "b">({
          init: () => ({ state: "a", data: "" }),
          stateTimeouts: { a: { ms: 100, message: "late" } },
          handle: (state, message, log) => {
            if (message === "hold") return Effect.as(Deferred.await(held), next("b", log))
            if (message === "late") return Effect.succeed(keep(`${log}late in ${state}`))
            message.succeed(log)
            return Effect.succeed(keep(log))
          },
        }),
      )
      yield* tell(ref, "hold" as const)
      yield* Effect.yieldNow()
      yield* TestClock.adjust(100) // fires into the mailbox
      yield* Deferred.succeed(held, undefined)
      expect(yield* ask(ref, (reply: ReplyTo<string>) => reply)).toBe("")
    }).pipe(withSystem),
  )

  it.effect("given with the transition replaces the declared one", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(machine)
      yield* tell(ref, { _tag: "Work", limitMs: 10 })
      yield* ask(ref, readLog)
      yield* TestClock.adjust(10)
      expect(yield* ask(ref, readLog)).toBe("wL(working)")
      yield* TestClock.adjust(2_000)
      expect(yield* ask(ref, readLog)).toBe("wL(working)")
    }).pipe(withSystem),
  )

  it.effect("with a name outlives state changes, is replaced by its like, and can be cancelled", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(machine)
      yield* tell(ref, { _tag: "Ping", name: "x", ms: 100 })
      yield* tell(ref, { _tag: "Ping", name: "y", ms: 100 })
      yield* tell(ref, { _tag: "Ping", name: "x", ms: 300 })
      yield* tell(ref, { _tag: "Work" })
      yield* ask(ref, readLog)
      yield* TestClock.adjust(100)
      expect(yield* ask(ref, readLog)).toBe("wy")
      yield* tell(ref, { _tag: "Cancel", name: "x" })
      yield* ask(ref, readLog)
      yield* TestClock.adjust(400)
      expect(yield* ask(ref, readLog)).toBe("wy")
    }).pipe(withSystem),
  )

  it.effect("does not reach the next incarnation", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(
        stateMachine<string, "crash" | "late" | ReplyTo<string>, "only">({
          init: () => ({ state: "only", data: "" }),
          handle: (_state, message, log) => {
            if (message === "crash") return Effect.fail("boom")
            if (message === "late") return Effect.succeed(keep(`${log}late`))
            message.succeed(log)
            return Effect.succeed(keep(log, [timeout("t", 50, "late" as const)]))
          },
        }),
        { childSpec: { restart: "permanent" } },
      )
      const readOnly = ask(ref, (reply: ReplyTo<string>) => reply)
      yield* readOnly
      yield* tell(ref, "crash" as const)
      yield* TestClock.adjust(50)
      expect(yield* readOnly).toBe("")
    }).pipe(withSystem),
  )

  it.effect("and inserted events: the latter come before everything that waits", () =>
    Effect.gen(function* () {
      const ref = yield* spawn(machine)
      yield* tell(ref, { _tag: "Insert" })
      yield* tell(ref, { _tag: "Work" })
      expect(yield* ask(ref, readLog)).toBe("i12w")
    }).pipe(withSystem),
  )
})

describe("a machine that watches", () => {
  it.effect("gets the Down as a transition and may postpone it", () =>
    Effect.gen(function* () {
      const watched = yield* spawn(counter)
      type Message = "watch" | "ready" | ReplyTo<string>
      const ref = yield* spawn(
        stateMachine<string, Message, "busy" | "ready">({
          init: () => ({ state: "busy", data: "" }),
          handle: (_state, message, log, self) => {
            if (message === "watch") return Effect.as(self.watch(watched), keep(log))
            if (message === "ready") return Effect.succeed(next("ready", `${log}ready `))
            message.succeed(log)
            return Effect.succeed(keep(log))
          },
          onDown: (state, down: Down, log) =>
            Effect.succeed(state === "busy" ? postpone : keep(`${log}down ${down.reason._tag}`)),
        }),
      )
      yield* tell(ref, "watch" as const)
      yield* ask(ref, (reply: ReplyTo<string>) => reply)
      yield* stop(watched)
      yield* tell(ref, "ready" as const)
      yield* ask(ref, (reply: ReplyTo<string>) => reply)
      expect(yield* ask(ref, (reply: ReplyTo<string>) => reply)).toBe("ready down Shutdown")
    }).pipe(withSystem),
  )
})
