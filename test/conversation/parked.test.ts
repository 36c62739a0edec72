/**
 * A run that takes its process along again and again: it is parked, everybody who waits or looks is told, and a retry or a cancel decides.
 */
import { Effect, Fiber, Logger } from "effect"
import { describe, expect, it } from "vitest"
import type { SessionsService } from "../../src/actors/sessions.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { restartLimit } from "../../src/domain/task.ts"
import type { Commit, StoreService } from "../../src/storage/store.ts"
import { open, prompt, until, withNode } from "./harness.ts"

const rules = [{ match: "", steps: [{ text: "done" }] }]

const isAnswer = (commit: Commit) => commit.entries?.some((entry) => entry.kind === "pi.assistant") === true

/** A store in which the commit of an answer kills its actor, until `heal`. */
const deadly = () => {
  let ill = true
  return {
    heal: () => {
      ill = false
    },
    wrapStore: (store: StoreService): StoreService => ({
      ...store,
      commit: (commit) =>
        Effect.suspend(() => (ill && isAnswer(commit) ? Effect.dieMessage("killed") : store.commit(commit))),
    }),
  }
}

/** The crashes are meant: their log is not shown. */
const quietly = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, Logger.remove(Logger.defaultLogger)))

const submit = (sessions: SessionsService, conversationId: ConversationId, value: string) =>
  sessions.submit({ conversationId, content: [text(value)], requestId: null })

describe("a run that is parked", () => {
  it("is told to whoever waited all along, shown in state, listing and snapshot, and answered after a retry", () => {
    const { heal, wrapStore } = deadly()
    return quietly(
      withNode({ rules, wrapStore }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const first = yield* prompt(sessions, conversationId, "one")
          expect(first).toMatchObject({ status: "placed", reason: "parked", text: null })
          expect(first.detail).toMatch(
            /^the run is parked \(restart_limit: .*\): retry runs that run again, cancel ends it$/,
          )

          const parked = { reason: expect.stringContaining("restart_limit"), crashes: restartLimit }
          expect(yield* sessions.state({ conversationId })).toMatchObject({ state: "idle", parked })
          expect(yield* sessions.list({})).toMatchObject([{ busy: true, parked: parked.reason }])
          yield* until(
            sessions,
            conversationId,
            (event) => event.type === "snapshot" && event.session.parked?.crashes === restartLimit,
          )

          heal()
          expect(yield* sessions.retry({ conversationId })).toMatchObject({ parked: null })
          const { submission_id: submissionId } = first
          expect(yield* sessions.awaitSubmission({ conversationId, submissionId })).toMatchObject({
            status: "done",
            text: "done",
          })
          expect(yield* sessions.list({})).toMatchObject([{ busy: false, parked: null }])
        }),
      ),
    )
  })

  it("holds up what is queued behind it without keeping its callers waiting, and a cancel withdraws both", () => {
    const { wrapStore } = deadly()
    return quietly(
      withNode({ rules, wrapStore }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const one = yield* submit(sessions, conversationId, "one")
          const waiting = yield* Effect.fork(
            sessions.awaitSubmission({ conversationId, submissionId: one.submission_id }),
          )
          expect(yield* Fiber.join(waiting)).toMatchObject({ status: "placed", reason: "parked" })
          const behind = yield* prompt(sessions, conversationId, "two")
          expect(behind).toMatchObject({ status: "queued", reason: "parked" })
          expect(behind.detail).toContain("waits behind a run that is parked")

          expect(yield* sessions.cancel({ conversationId })).toEqual({ cancelled: true })
          expect((yield* sessions.state({ conversationId })).parked).toBeNull()
          const ended = yield* Effect.forEach([one, behind], ({ submission_id: submissionId }) =>
            sessions.awaitSubmission({ conversationId, submissionId }),
          )
          expect(ended.map(({ status, reason }) => [status, reason])).toEqual([
            ["unanswered", "aborted"],
            ["unanswered", "withdrawn"],
          ])
        }),
      ),
    )
  })
})
