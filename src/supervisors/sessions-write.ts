/**
 * Writes, resets and withdrawals, and the submissions that they are, as the session contract has them.
 */
import { Effect, Either } from "effect"
import type { SubmissionView } from "../actors/contract.ts"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { SubmissionRow } from "../actors/conversation/machine/data.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import { receiptOf } from "../actors/conversation/settle.ts"
import type { ReplyTo } from "../actors/kernel/index.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import { type Failure, InvalidRequest, NotFound } from "../domain/failure.ts"
import type { InputEntry, WriteRequest } from "../domain/write.ts"
import { checkKind, type EntryDraft, entryDraftOf, namedEntries, resetDraft } from "../domain/write.ts"
import type { StoreReads } from "../storage/store.ts"
import { visibleEntry } from "./visible.ts"

/** How a message reaches the conversation's actor. */
export type Request = <A>(
  target: Target,
  message: (reply: ReplyTo<A, Failure>) => ConversationMessage,
  timeoutMs?: number,
) => Effect.Effect<A, Failure>

export interface WriteParts {
  readonly store: StoreReads
  readonly request: Request
  /** Fails with `NotFound` for a conversation that is not there or not the caller's. */
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
}

/** An input's own kind must be the application's. */
export const checkInputEntry = (entry: InputEntry | undefined): Effect.Effect<void, Failure> =>
  entry === undefined ? Effect.void : Effect.asVoid(checkKind("entry.kind", entry.kind))

const viewOf = (row: SubmissionRow): SubmissionView => ({
  ...receiptOf(row),
  kind: row.kind,
  when_busy: row.whenBusy,
  content: row.content,
  request_id: row.requestId,
  created_at: row.createdAt,
})

export const makeWrites = ({
  allowed,
  request,
  store,
}: WriteParts): Pick<SessionsService, "write" | "reset" | "withdraw" | "submission" | "submissions"> => {
  const admit = (target: Target, entry: EntryDraft, requestId: string | null) =>
    Effect.map(
      request<SubmissionRow>(target, (reply) => ({ type: "write", entry, requestId, reply })),
      receiptOf,
    )

  /** Every entry that a draft names must be visible; entries are never taken away, so this holds until it is placed. */
  const checkNamed = (target: Target, draft: EntryDraft): Effect.Effect<void, Failure> =>
    Effect.forEach(
      namedEntries(draft),
      ({ id, path }) =>
        Effect.flatMap(orStorageFailure(visibleEntry(store, target.conversationId, id)), (entry) =>
          entry !== null
            ? Effect.void
            : Effect.fail(
                new InvalidRequest({
                  path,
                  expected: `an entry that conversation ${target.conversationId} sees`,
                  actual: String(id),
                }),
              ),
        ),
      { discard: true },
    )

  return {
    write: ({ data = null, edits = [], head = null, kind = null, model = [], requestId, ...target }) =>
      Effect.gen(function* () {
        yield* allowed(target)
        const asked: WriteRequest = { data, edits, head, kind, model }
        const draft = yield* Either.match(entryDraftOf(asked), {
          onLeft: (fault): Effect.Effect<EntryDraft, Failure> => Effect.fail(fault),
          onRight: (fine) => Effect.succeed(fine),
        })
        yield* checkNamed(target, draft)
        return yield* admit(target, draft, requestId)
      }),
    reset: ({ handoff, requestId, ...target }) =>
      handoff !== null && handoff.trim() === ""
        ? Effect.fail(
            new InvalidRequest({
              path: "handoff",
              expected: "a note, or null for an empty context",
              actual: "an empty text",
            }),
          )
        : admit(target, resetDraft(handoff), requestId),
    withdraw: ({ submissionId, ...target }) =>
      Effect.map(
        request<SubmissionRow>(target, (reply) => ({ type: "withdraw", submission: submissionId, reply })),
        receiptOf,
      ),
    submission: ({ requestId, submissionId, ...target }) =>
      Effect.gen(function* () {
        yield* allowed(target)
        if ((submissionId === null) === (requestId === null)) {
          return yield* new InvalidRequest({
            path: "submissionId",
            expected: "either it or requestId",
            actual: submissionId === null ? "neither" : "both",
          })
        }
        const row = yield* orStorageFailure(
          submissionId !== null
            ? store.submission(submissionId)
            : store.submissionByRequest(target.conversationId, requestId ?? ""),
        )
        if (row === null || row.conversation !== target.conversationId) {
          const what = submissionId !== null ? String(submissionId) : `of request ${JSON.stringify(requestId)}`
          return yield* new NotFound({ what: `submission ${what}` })
        }
        return viewOf(row)
      }),
    submissions: (target) =>
      Effect.zipRight(
        allowed(target),
        Effect.map(orStorageFailure(store.openSubmissions(target.conversationId)), (rows) => rows.map(viewOf)),
      ),
  }
}
