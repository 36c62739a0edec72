/**
 * One prompt to one conversation: submit, wait, and cancel on request.
 *
 * 1. With `onEvent` the watch has begun before the prompt is submitted, and every event up to the end of the submission is handed over
 *    before this returns.
 * 2. `interrupt` cancels the run durably; the outcome then says how the submission ended, which may still be `done`.
 * 3. Behind a parked run there is no end to wait for: the outcome is the submission as it is, with the reason `parked`.
 */
import { Clock, Deferred, Effect, Fiber, Ref, Stream } from "effect"
import type { Settled } from "../actors/contract.ts"
import type { SessionsService } from "../actors/sessions.ts"
import type { Event } from "../domain/event.ts"
import type { Failure } from "../domain/failure.ts"
import type { ConversationId, SubmissionId } from "../domain/ids.ts"
import { type StopReason, text } from "../domain/message.ts"

export interface PromptRun {
  readonly sessions: SessionsService
  readonly conversationId: ConversationId
  readonly prompt: string
  readonly interrupt: Deferred.Deferred<void>
  readonly onEvent?: (event: Event) => Effect.Effect<void>
}

export interface Outcome {
  readonly settled: Settled
  readonly stopReason: StopReason
  readonly durationMs: number
  /** `interrupt` came before the end. */
  readonly interrupted: boolean
}

/** How long the watch may lag behind the end of the submission, in milliseconds: only a lost event makes it wait. */
const watchLag = 2_000

const stopReasonOf = (settled: Settled, seen: StopReason | null): StopReason => {
  if (settled.status === "done") return seen ?? "stop"
  return settled.reason === "aborted" || settled.reason === "withdrawn" ? "aborted" : "error"
}

const hasEnded = ({ status }: Pick<Settled, "status">): boolean => status === "done" || status === "unanswered"

const isEnd = (event: Event, id: SubmissionId | null): boolean =>
  event.type === "submission_updated" && event.submission_id === id && hasEnded(event)

/** How long what plugins do after a run may hold up the end of a prompt, in milliseconds; it goes on at the next start. */
const afterRunMs = 30_000

/** Waits while plugins end the run: a program that leaves now would leave that to the next one. */
const atRest = ({ conversationId, sessions }: PromptRun): Effect.Effect<void, Failure> =>
  Effect.flatMap(sessions.state({ conversationId }), ({ state }) =>
    state !== "settling_run"
      ? Effect.void
      : sessions.watch({ conversationId, after: null }).pipe(
          Stream.takeUntil(
            (event) =>
              (event.type === "snapshot" && event.session.state !== "settling_run") || event.type === "state_changed",
          ),
          Stream.runDrain,
          Effect.timeoutOption(afterRunMs),
          Effect.asVoid,
        ),
  )

export const runPrompt = (run: PromptRun): Effect.Effect<Outcome, Failure> =>
  Effect.gen(function* () {
    const { sessions, conversationId, onEvent } = run
    const startedAt = yield* Clock.currentTimeMillis
    const submission = yield* Deferred.make<SubmissionId>()
    const stopReason = yield* Ref.make<StopReason | null>(null)
    const watching = yield* Deferred.make<void, Failure>()

    const watch =
      onEvent === undefined
        ? Effect.void
        : sessions.watch({ conversationId, after: null }).pipe(
            Stream.mapEffect((event) =>
              Effect.gen(function* () {
                yield* Deferred.succeed(watching, undefined)
                if (event.type === "turn_completed") yield* Ref.set(stopReason, event.stop_reason)
                yield* onEvent(event)
                const id = event.type === "submission_updated" ? yield* Deferred.await(submission) : null
                return isEnd(event, id)
              }),
            ),
            Stream.takeUntil((ended) => ended),
            Stream.runDrain,
            Effect.tapErrorCause((cause) => Deferred.failCause(watching, cause)),
          )
    const watcher = yield* Effect.fork(watch)
    if (onEvent !== undefined) yield* Deferred.await(watching)

    const receipt = yield* sessions.submit({
      conversationId,
      content: [text(run.prompt)],
      requestId: crypto.randomUUID(),
    })
    yield* Deferred.succeed(submission, receipt.submission_id)
    const waiting = yield* Effect.fork(
      sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id }),
    )
    yield* Effect.raceFirst(Fiber.await(waiting), Deferred.await(run.interrupt))
    const interrupted = (yield* Deferred.isDone(run.interrupt)) && (yield* Fiber.poll(waiting))._tag === "None"
    if (interrupted) yield* sessions.cancel({ conversationId })
    const settled = yield* Fiber.join(waiting)
    yield* Fiber.await(watcher).pipe(
      Effect.timeoutOption(hasEnded(settled) ? watchLag : 0),
      Effect.ensuring(Fiber.interrupt(watcher)),
    )
    if (hasEnded(settled)) yield* atRest(run)
    const endedAt = yield* Clock.currentTimeMillis
    return {
      settled,
      stopReason: stopReasonOf(settled, yield* Ref.get(stopReason)),
      durationMs: endedAt - startedAt,
      interrupted,
    }
  })
