/**
 * A request whose conversation goes to another node while it is followed: whatever was missed, the answer is whole.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { Settled } from "../../../src/actors/contract.ts"
import type { SessionsService } from "../../../src/actors/sessions.ts"
import type { Event, EventBody, SessionState } from "../../../src/domain/event.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../../../src/domain/ids.ts"
import { noUsage } from "../../../src/domain/usage.ts"
import { silentLog } from "../../../src/protocols/http/log.ts"
import { collector } from "../../../src/protocols/openai/collector.ts"
import { runTurn } from "../../../src/protocols/openai/turn.ts"
import { makeFakeSessions } from "../fake-sessions.ts"

const conversation = ConversationId.make(1)
const submission = SubmissionId.make(7)

const event = (body: EventBody, turn: number | null = null): Event =>
  Object.assign(
    {
      v: 1 as const,
      conversation_id: conversation,
      turn_id: turn === null ? null : TaskId.make(turn),
      timestamp_ms: 0,
      seq_no: 1,
    },
    body,
  )

const receipt = {
  submission_id: submission,
  conversation_id: conversation,
  reason: null,
  detail: null,
  placed_entry_id: EntryId.make(1),
}
const settled: Settled = {
  ...receipt,
  status: "done",
  entry_id: EntryId.make(2),
  text: "the whole answer",
  model: "script/x",
  usage: { ...noUsage, input: 3, output: 2 },
  turns: 1,
}
const done = event({ type: "submission_updated", ...receipt, status: "done" })
const reset = event({ type: "stream_reset", reason: "another node took the conversation over" })
const text = (delta: string) => event({ type: "text_delta", text: delta }, 3)

/** What a request gets whose watch tells these events behind the first snapshot. */
const answerTo = (later: (snapshot: (turn: number | null) => Event) => ReadonlyArray<Event>) =>
  Effect.gen(function* () {
    const { sessions } = yield* makeFakeSessions({ hold: true })
    const state: SessionState = yield* sessions.open({ conversationId: null, agent: {}, title: null, requestId: null })
    const snapshot = (turn: number | null) =>
      event({ type: "snapshot", session: { ...state, turn_id: turn === null ? null : TaskId.make(turn) } })
    let ended = false
    const told: SessionsService = {
      ...sessions,
      submit: () => Effect.succeed({ ...receipt, status: "placed" as const }),
      watch: () =>
        Stream.fromIterable([snapshot(null), ...later(snapshot)]).pipe(
          Stream.rechunk(1),
          Stream.tap((one) =>
            Effect.sync(() => {
              ended ||= one === done
            }),
          ),
          Stream.concat(Stream.never),
        ),
      submission: (payload) =>
        Effect.map(sessions.submission({ ...payload, submissionId: null, requestId: "r" }), (row) => row).pipe(
          Effect.catchAll(() => Effect.succeed(null)),
          Effect.map(() => ({
            ...receipt,
            status: ended ? ("done" as const) : ("placed" as const),
            kind: "input" as const,
            when_busy: "followUp" as const,
            content: null,
            request_id: null,
            created_at: 0,
          })),
        ),
      awaitSubmission: () => Effect.succeed(settled),
      transcript: () => Effect.succeed([]),
    }
    const { follower, result } = collector(silentLog)
    yield* runTurn(
      {
        sessions: told,
        target: { conversationId: conversation },
        content: [{ type: "text", text: "hello" }],
        requestId: null,
        clientLeft: () => false,
      },
      follower,
    )
    return result().end
  })

describe("a request whose conversation moves while it is followed", () => {
  it.scoped("is answered whole where the run began before the next node was watched", () =>
    Effect.gen(function* () {
      const end = yield* answerTo((snapshot) => [reset, snapshot(3), text("answer"), done])
      expect(end).toMatchObject({ type: "answered", text: "the whole answer", usage: { input: 3, output: 2 } })
    }),
  )

  it.scoped("is answered whole where the run began and ended before the next node was watched", () =>
    Effect.gen(function* () {
      const end = yield* answerTo((snapshot) => [reset, snapshot(3), done])
      expect(end).toMatchObject({ type: "answered", text: "the whole answer" })
    }),
  )

  it.scoped("is answered once where the run begins behind the move", () =>
    Effect.gen(function* () {
      const started = event({ type: "turn_started", submission_ids: [submission], model: "script/x" }, 3)
      const completed = event(
        { type: "turn_completed", stop_reason: "stop", entry_id: EntryId.make(2), text: "the whole answer" },
        3,
      )
      const end = yield* answerTo((snapshot) => [
        reset,
        snapshot(null),
        started,
        text("the whole answer"),
        completed,
        done,
      ])
      expect(end).toMatchObject({ type: "answered", text: "the whole answer" })
    }),
  )
})
