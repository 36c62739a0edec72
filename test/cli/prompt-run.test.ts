/**
 * One prompt to one conversation, against sessions in memory.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import type { Settled } from "../../src/actors/contract.ts"
import type { SessionsService } from "../../src/actors/sessions.ts"
import { openConversation } from "../../src/cli/conversation.ts"
import { CommandFailure } from "../../src/cli/exit.ts"
import { runPrompt } from "../../src/cli/prompt-run.ts"
import { errorOf, resultOf } from "../../src/cli/result.ts"
import type { Event } from "../../src/domain/event.ts"
import { ConversationId, SubmissionId } from "../../src/domain/ids.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { makeFakeSessions } from "../protocols/fake-sessions.ts"

const fresh = { id: null, latest: false, fresh: { cwd: "/w" }, overrides: {} }

/** Sessions whose turn streams half an answer and then waits: for {@link settle}, or for a cancel. */
const held = Effect.gen(function* () {
  const fake = yield* makeFakeSessions({ hold: true })
  const end = yield* Deferred.make<Settled>()
  const cancelled = yield* Deferred.make<void>()
  const settle = (how: Pick<Settled, "status" | "reason" | "text"> & { readonly detail?: string }) =>
    Deferred.succeed(end, {
      detail: null,
      ...how,
      submission_id: SubmissionId.make(2),
      conversation_id: ConversationId.make(1),
      placed_entry_id: null,
      entry_id: null,
      model: "mock/echo",
      usage: noUsage,
      turns: 1,
    })
  const sessions: SessionsService = {
    ...fake.sessions,
    awaitSubmission: () => Deferred.await(end),
    cancel: () =>
      Effect.gen(function* () {
        yield* settle({ status: "unanswered", reason: "aborted", text: null })
        fake.emit(1, {
          type: "submission_updated",
          submission_id: SubmissionId.make(2),
          status: "unanswered",
          reason: "aborted",
          detail: null,
        })
        yield* Deferred.succeed(cancelled, undefined)
        return { cancelled: true }
      }),
  }
  return { sessions, emit: fake.emit, settle, cancelled }
})

const start = (sessions: SessionsService, prompt: string, onEvent?: (event: Event) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { conversation_id } = yield* openConversation(sessions, fresh, "a title")
    const interrupt = yield* Deferred.make<void>()
    const run = yield* Effect.fork(
      runPrompt({
        sessions,
        conversationId: conversation_id,
        prompt,
        interrupt,
        ...(onEvent === undefined ? {} : { onEvent }),
      }),
    )
    return { run, interrupt, conversation_id }
  })

describe("one prompt", () => {
  it.live("gives the answer and its result line", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { sessions } = yield* makeFakeSessions({})
        const { run, conversation_id } = yield* start(sessions, "hello")
        const outcome = yield* Fiber.join(run)
        expect(outcome.settled.text).toBe("HELLO")
        expect(errorOf(outcome)).toBeNull()
        expect(resultOf(outcome)).toMatchObject({
          type: "result",
          conversation_id,
          text: "HELLO",
          stop_reason: "stop",
          is_error: false,
        })
      }),
    ),
  )

  it.live(
    "hands over every event from the snapshot to the end of the submission, though the answer was there before",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { sessions, emit, settle } = yield* held
          const events = yield* Queue.unbounded<Event>()
          const { run, conversation_id } = yield* start(sessions, "hello", (event) => Queue.offer(events, event))
          for (;;) if ((yield* Queue.take(events)).type === "text_delta") break
          const submission_id = SubmissionId.make(2)
          yield* settle({ status: "done", reason: null, text: "HELLO" })
          emit(conversation_id, { type: "notice", level: "info", message: "late" })
          emit(conversation_id, {
            type: "submission_updated",
            submission_id,
            status: "done",
            reason: null,
            detail: null,
          })
          emit(conversation_id, { type: "notice", level: "info", message: "of the next turn" })
          const outcome = yield* Fiber.join(run)
          const rest = [...(yield* Queue.takeAll(events))]
          expect(rest.map((event) => event.type)).toEqual(["notice", "submission_updated"])
          expect(outcome.settled.submission_id).toBe(submission_id)
        }),
      ),
  )

  it.live("does not wait behind a parked run, and says how to go on", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { sessions, settle } = yield* held
        const { run } = yield* start(sessions, "hello", () => Effect.void)
        yield* settle({ status: "queued", reason: "parked", text: null, detail: "the run is parked (why)" })
        const outcome = yield* Fiber.join(run)
        expect(outcome).toMatchObject({ interrupted: false, stopReason: "error" })
        expect(resultOf(outcome)).toMatchObject({
          is_error: true,
          error:
            "the run is parked (why); type /retry or /cancel in: super-pi chat --conversation 1 (session.retry and session.cancel over JSON-RPC)",
        })
      }),
    ),
  )

  it.live("is cancelled durably when interrupted, and says so", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { sessions, cancelled } = yield* held
        const events = yield* Queue.unbounded<Event>()
        const { run, interrupt } = yield* start(sessions, "hello", (event) => Queue.offer(events, event))
        for (;;) if ((yield* Queue.take(events)).type === "text_delta") break
        yield* Deferred.succeed(interrupt, undefined)
        yield* Deferred.await(cancelled)
        const outcome = yield* Fiber.join(run)
        expect(outcome).toMatchObject({ interrupted: true, stopReason: "aborted" })
        expect(resultOf(outcome)).toMatchObject({ is_error: true, error: "the turn was cancelled" })
      }),
    ),
  )
})

describe("the conversation of a command", () => {
  it.live("is the most recent one with -c, and an error where there is none", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { sessions } = yield* makeFakeSessions({})
        const none = yield* Effect.flip(openConversation(sessions, { ...fresh, latest: true }, null))
        expect(none).toBeInstanceOf(CommandFailure)
        expect(none.message).toBe("there is no conversation to go on with; start one without -c")
        const first = yield* openConversation(sessions, fresh, null)
        const again = yield* openConversation(sessions, { ...fresh, latest: true }, null)
        expect(again.conversation_id).toBe(first.conversation_id)
      }),
    ),
  )

  it.live("is refused where it does not exist", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { sessions } = yield* makeFakeSessions({})
        const error = yield* Effect.flip(openConversation(sessions, { ...fresh, id: 99 }, null))
        expect(error.message).toContain("conversation 99 was not found")
      }),
    ),
  )
})
