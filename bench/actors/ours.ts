/**
 * The cases on our kernel: names, watches, bounded mailboxes and tracing are in, as in production.
 */
import { Context, Deferred, Effect, FiberRef, Layer, Logger, ManagedRuntime } from "effect"
import {
  type ActorRef,
  ActorSystem,
  ask,
  behavior,
  type ReplyTo,
  type SpawnError,
  spawn,
  stop,
  tell,
  unsafeSpawn,
  unsafeTell,
} from "../../src/actors/kernel/index.ts"
import { child, supervisor } from "../../src/supervisors/index.ts"
import { elapsedSeconds } from "../row.ts"

export class Step extends Context.Tag("bench/Step")<Step, number>() {}
const Offset = FiberRef.unsafeMake(0)

// A crash is logged in production; logging is not what is measured, and nact does not log here either.
const layer = Layer.mergeAll(ActorSystem.layer(), Layer.succeed(Step, 1)).pipe(
  Layer.provideMerge(Logger.remove(Logger.defaultLogger)),
)

export const open = () => {
  const runtime = ManagedRuntime.make(layer)
  const run = <A, E>(effect: Effect.Effect<A, E, ActorSystem | Step>): Promise<A> =>
    runtime.runPromise(Effect.flatMap(ActorSystem, ({ scheduler }) => Effect.withScheduler(effect, scheduler)))
  return { run, close: () => runtime.dispose() }
}
export type Ours = ReturnType<typeof open>

type Counted = { readonly _tag: "Add" } | { readonly _tag: "Get"; readonly reply: ReplyTo<number> }
const add: Counted = { _tag: "Add" }
const get = (reply: ReplyTo<number>): Counted => ({ _tag: "Get", reply })

const answer = (total: number, reply: ReplyTo<number>): number => {
  reply.succeed(total)
  return total
}

const plain = behavior<number, Counted>({
  init: () => 0,
  receive: (total, message) => Effect.succeed(message._tag === "Add" ? total + 1 : answer(total, message.reply)),
})

const withServices = behavior<number, Counted, Step>({
  init: () => 0,
  receive: Effect.fnUntraced(function* (total: number, message: Counted) {
    const step = yield* Step
    const offset = yield* FiberRef.get(Offset)
    return message._tag === "Add" ? total + step + offset : answer(total, message.reply)
  }),
})

const inlineGen = behavior<number, Counted, Step>({
  init: () => 0,
  receive: (total, message) =>
    Effect.gen(function* () {
      const step = yield* Step
      const offset = yield* FiberRef.get(Offset)
      return message._tag === "Add" ? total + step + offset : answer(total, message.reply)
    }),
})

/** Sends with back-pressure from a fiber outside of the system. */
const sendAll = (n: number, target: ActorRef<Counted>) => {
  let left = n
  return Effect.whileLoop({ while: () => left-- > 0, body: () => tell(target, add), step: () => {} })
}

/** Sends from a callback, in bursts that fit the mailbox. */
const burst = (n: number, target: ActorRef<Counted>) =>
  Effect.gen(function* () {
    for (let sent = 0; sent < n; ) {
      while (sent < n && unsafeTell(target, add)) sent++
      yield* ask(target, get)
    }
  })

const timed = (
  name: string,
  n: number,
  behaviorOf: typeof plain | typeof withServices,
  send: typeof sendAll | typeof burst,
) => ({
  name,
  run: ({ run }: Ours) =>
    run(
      Effect.gen(function* () {
        const target = yield* spawn(behaviorOf)
        const start = elapsedSeconds()
        yield* send(n, target)
        const total = yield* ask(target, get)
        const seconds = elapsedSeconds() - start
        if (total !== n) throw new Error(`${name}: expected ${n} messages, got ${total}`)
        yield* stop(target)
        return n / seconds
      }),
    ),
})

export const tellPlain = timed("tell", 1_000_000, plain, burst).run
export const tellEffect = timed("tell as an Effect", 600_000, plain, sendAll).run
export const tellServices = timed("tell with services", 300_000, withServices, burst).run
export const tellGen = timed("tell inline gen", 150_000, inlineGen, burst).run

export const askSequential = ({ run }: Ours) =>
  run(
    Effect.gen(function* () {
      const n = 200_000
      const target = yield* spawn(plain)
      let left = n
      const start = elapsedSeconds()
      yield* Effect.whileLoop({ while: () => left-- > 0, body: () => ask(target, get), step: () => {} })
      const rate = n / (elapsedSeconds() - start)
      yield* stop(target)
      return rate
    }),
  )

const idle = behavior<{ readonly n: number }, never>({ init: () => ({ n: 0 }), receive: Effect.succeed })
const keeper = behavior<null, never>({ init: () => null, receive: Effect.succeed })

/** Times `n` spawns under one parent, which is stopped afterwards. */
const spawning = (spawnAll: (n: number, parent: ActorRef<never>) => Effect.Effect<void, SpawnError, ActorSystem>) => ({
  run: ({ run }: Ours) =>
    run(
      Effect.gen(function* () {
        const n = 200_000
        const parent = yield* spawn(keeper)
        const start = elapsedSeconds()
        yield* spawnAll(n, parent)
        const rate = n / (elapsedSeconds() - start)
        yield* stop(parent)
        return rate
      }),
    ),
})

/** By plain calls, as nact spawns. */
export const spawnMany = spawning((n, parent) =>
  Effect.sync(() => {
    for (let i = 0; i < n; i++) unsafeSpawn(idle, { parent })
  }),
).run

export const spawnEffect = spawning((n, parent) => {
  let left = n
  return Effect.whileLoop({ while: () => left-- > 0, body: () => spawn(idle, { parent }), step: () => {} })
}).run

/** What only the current turn of the event loop holds is not the actors'. */
const settled = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

export const bytesPerIdle = ({ run }: Ours, gc: () => void) =>
  run(
    Effect.gen(function* () {
      const n = 100_000
      const parent = yield* spawn(keeper)
      yield* settled
      gc()
      const before = process.memoryUsage().heapUsed
      for (let i = 0; i < n; i++) yield* spawn(idle, { parent })
      yield* settled
      gc()
      const bytes = (process.memoryUsage().heapUsed - before) / n
      yield* stop(parent)
      return bytes
    }),
  )

type Ball = { readonly _tag: "Peer"; readonly peer: ActorRef<Ball> } | { readonly _tag: "Ball"; readonly left: number }

/** 500 pairs, each with a ball that goes to and fro. */
export const pingPong = ({ run }: Ours) =>
  run(
    Effect.gen(function* () {
      const pairs = 500
      const hits = 1_000
      let open = pairs
      const finished = yield* Deferred.make<void>()
      const player = behavior<ActorRef<Ball> | null, Ball>({
        init: () => null,
        receive: (peer, message) => {
          if (message._tag === "Peer") return Effect.succeed(message.peer)
          if (message.left === 0) {
            if (--open === 0) Deferred.unsafeDone(finished, Effect.void)
          } else if (peer !== null) {
            unsafeTell(peer, { _tag: "Ball", left: message.left - 1 })
          }
          return Effect.succeed(peer)
        },
      })
      const parent = yield* spawn(keeper)
      const first: Array<ActorRef<Ball>> = []
      for (let i = 0; i < pairs; i++) {
        const a = yield* spawn(player, { parent })
        const b = yield* spawn(player, { parent })
        yield* tell(a, { _tag: "Peer", peer: b })
        yield* tell(b, { _tag: "Peer", peer: a })
        first.push(a)
      }
      const start = elapsedSeconds()
      for (const ref of first) yield* tell(ref, { _tag: "Ball", left: hits })
      yield* Deferred.await(finished)
      const rate = (pairs * hits) / (elapsedSeconds() - start)
      yield* stop(parent)
      return rate
    }),
  )

interface Work {
  readonly n: number
  readonly reply: ReplyTo<number>
}

export const askInside = ({ run }: Ours) =>
  run(
    Effect.gen(function* () {
      const n = 60_000
      const backend = yield* spawn(plain)
      const front = yield* spawn(
        behavior<null, Work>({
          init: () => null,
          receive: (state, work) =>
            Effect.map(ask(backend, get), (total) => {
              work.reply.succeed(total + work.n)
              return state
            }),
        }),
      )
      let left = n
      const start = elapsedSeconds()
      yield* Effect.whileLoop({
        while: () => left-- > 0,
        body: () => ask(front, (reply: ReplyTo<number>) => ({ n: left, reply })),
        step: () => {},
      })
      const rate = n / (elapsedSeconds() - start)
      yield* stop(front)
      yield* stop(backend)
      return rate
    }),
  )

type Fragile = { readonly _tag: "Crash" } | { readonly _tag: "Ping"; readonly reply: ReplyTo<number> }

/** Crash, restart by a supervisor, answer: one after another. */
export const restarts = ({ run }: Ours, failure: () => unknown) =>
  run(
    Effect.gen(function* () {
      const n = 20_000
      const fragile = behavior<number, Fragile>({
        init: () => 1,
        receive: (state, message) => {
          if (message._tag === "Crash") return Effect.fail(failure())
          message.reply.succeed(state)
          return Effect.succeed(state)
        },
      })
      const top = yield* spawn(
        supervisor({
          maxRestarts: Number.POSITIVE_INFINITY,
          withinMs: 1,
          children: [child("fragile", fragile, { register: "fragile" })],
        }),
      )
      const target = yield* Effect.flatten((yield* ActorSystem).registry.whereis<Fragile>("fragile"))
      const ping = (reply: ReplyTo<number>): Fragile => ({ _tag: "Ping", reply })
      const round = Effect.zipRight(tell(target, { _tag: "Crash" }), ask(target, ping))
      let left = n
      const start = elapsedSeconds()
      yield* Effect.whileLoop({ while: () => left-- > 0, body: () => round, step: () => {} })
      const rate = n / (elapsedSeconds() - start)
      yield* stop(top)
      return rate
    }),
  )
