/**
 * Calls of a cluster: they reach whoever holds the place, also when that one goes in the middle, and change nothing twice.
 */
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Effect, Fiber, Ref, Stream, TestClock } from "effect"
import type { SessionsService } from "../../src/actors/sessions.ts"
import type { Holder } from "../../src/domain/cluster.ts"
import { Busy, type Failure } from "../../src/domain/failure.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import { moved } from "../../src/domain/moved.ts"
import { OwnerGone, type SessionsOver } from "../../src/protocols/attach/attachment.ts"
import { routedSessions } from "../../src/protocols/peers/routing.ts"
import { PeerUnreachable } from "../../src/protocols/peers/service.ts"
import { makeFakeSessions } from "../protocols/fake-sessions.ts"

const id = ConversationId.make(1)
const text = (value: string) => [{ type: "text" as const, text: value }]

/** Two nodes, 1 (here) and 2; `holder` says who has the conversation. */
const cluster = Effect.gen(function* () {
  const here = yield* makeFakeSessions({ name: "one" })
  const there = yield* makeFakeSessions({ name: "two" })
  for (const node of [here, there]) {
    yield* node.sessions.open({ conversationId: null, agent: {}, title: null, requestId: null })
  }
  let now: Holder = "here"
  let reachable = true
  let silent = false
  let around: (sessions: SessionsService) => SessionsOver<OwnerGone> = (sessions) => sessions
  const sessions = routedSessions({
    here: here.sessions,
    link: (epoch) =>
      Effect.suspend(() =>
        silent
          ? Effect.never
          : reachable
            ? Effect.succeed(around(there.sessions))
            : new PeerUnreachable({ epoch, reason: "cut off" }),
      ),
    whereabouts: {
      self: 1,
      // as of the moment at which it is asked
      ofConversation: () => Effect.succeed(now),
      ofTask: () => Effect.succeed(now),
      conversationOf: () => Effect.succeed(id),
    },
  })
  return {
    here,
    there,
    sessions,
    hold: (by: Holder) =>
      Effect.sync(() => {
        now = by
      }),
    never: () => {
      silent = true
    },
    reach: (can: boolean) => {
      reachable = can
    },
    wrap: (wrapper: (sessions: SessionsService) => SessionsOver<OwnerGone>) => {
      around = wrapper
    },
  }
})

const submit = (sessions: SessionsService) =>
  sessions.submit({ conversationId: id, content: text("hello"), whenBusy: "followUp", requestId: null })

describe("the sessions of a cluster", () => {
  it.scoped("do here what is held here, and there what is held there", () =>
    Effect.gen(function* () {
      const { here, hold, sessions, there } = yield* cluster
      yield* submit(sessions)
      yield* hold({ epoch: 2 })
      yield* submit(sessions)
      expect(here.calls.filter((name) => name === "submit")).toHaveLength(1)
      expect(there.calls.filter((name) => name === "submit")).toHaveLength(1)
    }),
  )

  it.scoped("wait while nobody holds the place, and while its holder cannot be reached", () =>
    Effect.gen(function* () {
      const { hold, reach, sessions, there } = yield* cluster
      yield* hold("nobody")
      const call = yield* Effect.fork(submit(sessions))
      yield* TestClock.adjust("1 second")
      expect(yield* call.status).not.toMatchObject({ _tag: "Done" })
      reach(false)
      yield* hold({ epoch: 2 })
      yield* TestClock.adjust("1 second")
      expect(there.calls).not.toContain("submit")
      reach(true)
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(call)).conversation_id).toBe(id)
    }),
  )

  it.scoped("do not wait for ever for a node that is gone, also where the caller may not be interrupted", () =>
    Effect.gen(function* () {
      const { hold, never, sessions } = yield* cluster
      yield* hold({ epoch: 2 })
      never()
      const call = yield* Effect.fork(Effect.uninterruptible(submit(sessions)))
      yield* TestClock.adjust("1 second")
      yield* hold("here")
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(call)).conversation_id).toBe(id)
    }),
  )

  it.scoped("say that they are busy when nobody holds the place for long", () =>
    Effect.gen(function* () {
      const { hold, sessions } = yield* cluster
      yield* hold("nobody")
      const call = yield* Effect.fork(Effect.flip(submit(sessions)))
      yield* TestClock.adjust("31 seconds")
      const failure = yield* Fiber.join(call)
      expect(failure).toBeInstanceOf(Busy)
      expect(failure.message).toContain("no node holds the place")
    }),
  )

  it.scoped("repeat a call whose node went under the same request id, so that it counts once", () =>
    Effect.gen(function* () {
      const { hold, sessions, there, wrap } = yield* cluster
      yield* hold({ epoch: 2 })
      let losses = 2
      const asked: Array<string | null> = []
      wrap((real) => ({
        ...real,
        submit: (payload) => {
          asked.push(payload.requestId)
          const done = real.submit(payload)
          return losses-- > 0 ? Effect.zipRight(done, new OwnerGone()) : done
        },
      }))
      const call = yield* Effect.fork(submit(sessions))
      yield* TestClock.adjust("1 second")
      const receipt = yield* Fiber.join(call)
      expect(asked).toHaveLength(3)
      expect(new Set(asked).size).toBe(1)
      expect(asked[0]).not.toBeNull()
      const all = yield* there.sessions.submissions({ conversationId: id })
      expect(all.filter((one) => one.submission_id === receipt.submission_id).length).toBeLessThanOrEqual(1)
    }),
  )

  it.scoped("ask again where a place has moved meanwhile", () =>
    Effect.gen(function* () {
      const { here, hold, sessions, wrap } = yield* cluster
      yield* hold({ epoch: 2 })
      wrap((real) => ({
        ...real,
        submit: () => Effect.zipRight(hold("here"), Effect.fail<Failure>(moved("conversation 1"))),
      }))
      const call = yield* Effect.fork(submit(sessions))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(call)
      expect(here.calls).toContain("submit")
    }),
  )

  it.scoped("go on watching at the next holder, and say that what was unfinished is void", () =>
    Effect.gen(function* () {
      const { hold, here, sessions, there, wrap } = yield* cluster
      yield* hold({ epoch: 2 })
      const gone = yield* Ref.make(false)
      wrap((real) => ({
        ...real,
        watch: (payload) =>
          real
            .watch(payload)
            .pipe(
              Stream.take(1),
              Stream.concat(Stream.fromEffect(Effect.zipRight(Ref.set(gone, true), new OwnerGone()))),
            ),
      }))
      const watching = yield* Effect.fork(
        sessions.watch({ conversationId: id, after: null, interactive: false }).pipe(Stream.take(3), Stream.runCollect),
      )
      yield* Effect.repeat(Ref.get(gone), { until: (is) => is })
      yield* hold("here")
      yield* TestClock.adjust("1 second")
      const events = Chunk.toReadonlyArray(yield* Fiber.join(watching))
      expect(events.map(({ type }) => type)).toEqual(["snapshot", "stream_reset", "snapshot"])
      expect(here.calls).toContain("watch")
      expect(there.calls).toContain("watch")
    }),
  )
})
