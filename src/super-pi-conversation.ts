/**
 * One conversation as an application drives it: the calls of the contract on one id, and what is usually made of them. A handle holds nothing;
 * as many as one likes may stand for the same conversation.
 */
import { Effect, Schema, Stream } from "effect"
import type { Receipt, Settled } from "./actors/contract.ts"
import type { SessionsService } from "./actors/sessions.ts"
import type { CompactionResult } from "./domain/compaction-task.ts"
import type { AgentDocument } from "./domain/document.ts"
import type { Entry } from "./domain/entry.ts"
import type { Event, SessionState } from "./domain/event.ts"
import type { Failure } from "./domain/failure.ts"
import { ConversationId, type EntryId, SubmissionId } from "./domain/ids.ts"
import { text, type UserPart } from "./domain/message.ts"
import { UnansweredReason, type WhenBusy } from "./domain/submission.ts"
import type { WriteRequest } from "./domain/write.ts"

/** An input got no answer: its run failed or was cancelled, it was withdrawn, or a parked run holds it up. */
export class Unanswered extends Schema.TaggedError<Unanswered>()("Unanswered", {
  conversation: ConversationId,
  submission: SubmissionId,
  reason: Schema.NullOr(UnansweredReason),
  detail: Schema.NullOr(Schema.String),
}) {
  override get message() {
    const why = this.detail ?? this.reason ?? "no reason was given"
    return `input ${this.submission} of conversation ${this.conversation} has no answer: ${why}`
  }
}

/** Text, or parts: text and images. */
export type Input = string | ReadonlyArray<UserPart>

export interface SubmitOptions {
  /** What happens while the conversation works on another input. Default `followUp`: it waits for its turn. */
  readonly whenBusy?: WhenBusy
  /** The same id admits the input once, also after a restart, and gives the same submission. Default none. */
  readonly requestId?: string
}

export interface ForkOptions {
  /** The newest entry that the fork sees. Default: the newest that there is. */
  readonly at?: EntryId
  readonly agent?: AgentDocument
  readonly title?: string
  readonly requestId?: string
}

export interface ConversationHandle {
  readonly id: ConversationId
  /** Admits an input durably, then answers. */
  readonly submit: (input: Input, options?: SubmitOptions) => Effect.Effect<Receipt, Failure>
  /** The end of a submission, however often its node restarts meanwhile. Interrupting the wait ends the wait only. */
  readonly await: (submission: SubmissionId) => Effect.Effect<Settled, Failure>
  /** Submits, and waits for the answer. `text` of the result is what the model said last. */
  readonly ask: (input: Input, options?: SubmitOptions) => Effect.Effect<Settled, Failure | Unanswered>
  /** Submits, and gives every event from the snapshot before it to the one that ends the submission. */
  readonly run: (input: Input, options?: SubmitOptions) => Stream.Stream<Event, Failure>
  /** A snapshot, then every event as it happens; goes on over restarts of the conversation's actor, each with a new snapshot. */
  readonly events: Stream.Stream<Event, Failure>
  /** The events behind number `after`, where they are still there; else as {@link events}. */
  readonly eventsAfter: (after: number) => Stream.Stream<Event, Failure>
  readonly state: Effect.Effect<SessionState, Failure>
  /** The visible entries, oldest first. */
  readonly transcript: Effect.Effect<ReadonlyArray<Entry>, Failure>
  /** Changes what it runs with, from the next request on. */
  readonly configure: (agent: AgentDocument) => Effect.Effect<SessionState, Failure>
  /** Withdraws queued inputs and cancels the run; answers once the conversation is idle. */
  readonly cancel: Effect.Effect<{ readonly cancelled: boolean }, Failure>
  readonly withdraw: (submission: SubmissionId) => Effect.Effect<Receipt, Failure>
  /** Runs a parked run again. */
  readonly retry: Effect.Effect<SessionState, Failure>
  /** A conversation that sees the entries up to one of this one, and goes its own way. */
  readonly fork: (options?: ForkOptions) => Effect.Effect<ConversationHandle, Failure>
  /** Appends an entry and asks no model. */
  readonly write: (
    request: Partial<WriteRequest>,
    options?: { readonly requestId?: string },
  ) => Effect.Effect<Receipt, Failure>
  /** Starts a new context, from nothing or from a note. */
  readonly reset: (options?: {
    readonly handoff?: string
    readonly requestId?: string
  }) => Effect.Effect<Receipt, Failure>
  readonly compact: (instructions?: string) => Effect.Effect<CompactionResult, Failure>
  /** Deletes the idle conversation for good. */
  readonly remove: Effect.Effect<void, Failure>
}

const partsOf = (input: Input): ReadonlyArray<UserPart> => (typeof input === "string" ? [text(input)] : input)

const ended = (receipt: Pick<Receipt, "status">): boolean =>
  receipt.status === "done" || receipt.status === "unanswered"

export const conversationHandle = (
  sessions: SessionsService,
  conversationId: ConversationId,
  principal: string,
): ConversationHandle => {
  const target = { conversationId, principal }
  const submit: ConversationHandle["submit"] = (input, { requestId = null, whenBusy = "followUp" } = {}) =>
    sessions.submit({ ...target, content: partsOf(input), whenBusy, requestId })
  const awaitEnd: ConversationHandle["await"] = (submissionId) => sessions.awaitSubmission({ ...target, submissionId })
  const eventsFrom = (after: number | null) => sessions.watch({ ...target, after })

  /** Submits at the first snapshot, so that no event is missed; a later snapshot stands for a gap, in which the end may have been. */
  const run: ConversationHandle["run"] = (input, options) =>
    Stream.suspend(() => {
      let mine: SubmissionId | null = null
      const isLast = (event: Event): Effect.Effect<boolean, Failure> => {
        if (event.type === "submission_updated") return Effect.succeed(event.submission_id === mine && ended(event))
        if (event.type !== "snapshot") return Effect.succeed(false)
        if (mine !== null)
          return Effect.map(sessions.submission({ ...target, submissionId: mine, requestId: null }), ended)
        return Effect.map(submit(input, options), (receipt) => {
          mine = receipt.submission_id
          return ended(receipt)
        })
      }
      return Stream.takeUntilEffect(eventsFrom(null), isLast)
    })

  return {
    id: conversationId,
    submit,
    await: awaitEnd,
    ask: (input, options) =>
      Effect.flatMap(submit(input, options), ({ submission_id }) =>
        Effect.flatMap(awaitEnd(submission_id), (settled) =>
          settled.status === "done"
            ? Effect.succeed(settled)
            : Effect.fail(
                new Unanswered({
                  conversation: conversationId,
                  submission: submission_id,
                  reason: settled.reason,
                  detail: settled.detail,
                }),
              ),
        ),
      ),
    run,
    events: eventsFrom(null),
    eventsAfter: eventsFrom,
    state: sessions.state(target),
    transcript: sessions.transcript(target),
    configure: (agent) => sessions.configure({ ...target, agent }),
    cancel: sessions.cancel(target),
    withdraw: (submissionId) => sessions.withdraw({ ...target, submissionId }),
    retry: sessions.retry(target),
    fork: ({ agent = {}, at = null, requestId = null, title = null } = {}) =>
      Effect.map(sessions.fork({ ...target, entryId: at, agent, title, requestId }), (state) =>
        conversationHandle(sessions, state.conversation_id, principal),
      ),
    write: (request, { requestId = null } = {}) => sessions.write({ ...target, ...request, requestId }),
    reset: ({ handoff = null, requestId = null } = {}) => sessions.reset({ ...target, handoff, requestId }),
    compact: (instructions = "") =>
      sessions.compact({ ...target, instructions: instructions === "" ? null : instructions }),
    remove: Effect.asVoid(sessions.remove(target)),
  }
}
