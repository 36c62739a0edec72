/**
 * Handlers that wait and are resumed: each keeps its worker, and a worker that has come to the end of a resumed handler goes on with
 * the run queue in place of the one that resumed it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { type ActorRef, ask, behavior, type ReplyTo, spawn, stop, unsafeTell } from "../../src/actors/kernel/index.ts"
import { withSystem } from "./support.ts"

type Question = { readonly depth: number; readonly reply: ReplyTo<number> }

/** The most calls on the stack when the first of a chain has its answer. */
let calls = 0

/** Asks the actor behind it before it answers. */
const link = (next: ActorRef<Question> | null) =>
  behavior<null, Question>({
    name: "link",
    init: () => null,
    receive: (state, { depth, reply }) => {
      const rest =
        next === null
          ? Effect.succeed(0)
          : ask(next, (answer: ReplyTo<number>): Question => ({ depth: depth + 1, reply: answer }))
      return Effect.map(rest, (below) => {
        if (depth === 0) calls = Math.max(calls, callDepth())
        reply.succeed(below + 1)
        return state
      })
    },
  })

const callDepth = (): number => {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = Number.POSITIVE_INFINITY
  const depth = new Error("depth").stack?.split("\n").length ?? 0
  Error.stackTraceLimit = stackTraceLimit
  return depth
}

describe("workers", () => {
  it.effect(
    "of three hundred actors that ask one another in a chain all come to their end, without a tower of calls",
    () =>
      Effect.gen(function* () {
        let first: ActorRef<Question> | null = null
        for (let i = 0; i < 300; i++) first = yield* spawn(link(first))
        const head = first
        if (head === null) throw new Error("expected a chain")
        for (let round = 0; round < 5; round++) {
          expect(yield* ask(head, (reply: ReplyTo<number>): Question => ({ depth: 0, reply }))).toBe(300)
        }
        expect(calls).toBeLessThan(1_000)
      }).pipe(withSystem),
  )

  it.effect("that are resumed all at once serve every actor", () =>
    Effect.gen(function* () {
      const count = 3_000
      const open = yield* Deferred.make<void>()
      const seen: Array<number> = []
      const done = yield* Deferred.make<void>()
      const waiter = behavior<number, "wait" | "after">({
        init: ({ id }) => id,
        receive: (id, message) => {
          if (message === "wait") return Effect.as(Deferred.await(open), id)
          seen.push(id)
          if (seen.length === count) Deferred.unsafeDone(done, Effect.void)
          return Effect.succeed(id)
        },
      })
      const refs: Array<ActorRef<"wait" | "after">> = []
      for (let i = 0; i < count; i++) refs.push(yield* spawn(waiter))
      for (const ref of refs) {
        unsafeTell(ref, "wait")
        unsafeTell(ref, "after")
      }
      yield* Effect.yieldNow()
      yield* Deferred.succeed(open, undefined)
      yield* Deferred.await(done)
      expect([...seen].sort((a, b) => a - b)).toEqual(refs.map(({ id }) => id))
    }).pipe(withSystem),
  )

  it.effect("that come to the end of a resumed handler take the next actor, which may wait, crash or be stopped", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const open = yield* Deferred.make<void>()
      const gated = behavior<null, "wait">({
        init: () => null,
        receive: (state) =>
          Effect.zipRight(
            Deferred.await(open),
            Effect.zipRight(
              Effect.sync(() => log.push("resumed")),
              Effect.succeed(state),
            ),
          ),
      })
      const waits = behavior<null, "go">({ init: () => null, receive: () => Effect.never })
      const fails = behavior<null, "go">({
        init: () => null,
        receive: () => Effect.zipRight(Effect.yieldNow(), Effect.fail("no")),
      })
      const answers = behavior<null, ReplyTo<string>>({
        init: () => null,
        receive: (state, reply) =>
          Effect.as(
            Effect.sync(() => reply.succeed("served")),
            state,
          ),
      })
      const [a, b, c, d] = [yield* spawn(gated), yield* spawn(waits), yield* spawn(fails), yield* spawn(answers)]
      unsafeTell(a, "wait")
      yield* Effect.yieldNow()
      yield* Deferred.succeed(open, undefined)
      unsafeTell(b, "go")
      unsafeTell(c, "go")
      expect(yield* ask(d, (reply: ReplyTo<string>) => reply)).toBe("served")
      yield* stop(b, undefined, { shutdownMs: 0 })
      expect(yield* ask(d, (reply: ReplyTo<string>) => reply)).toBe("served")
      expect(log).toEqual(["resumed"])
    }).pipe(withSystem),
  )
})
