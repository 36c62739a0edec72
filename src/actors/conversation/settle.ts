/**
 * The end of a submission for whoever waits: its answer, and what the run cost, read from the transcript.
 */
import { Effect } from "effect"
import { type Failure, NotFound } from "../../domain/failure.ts"
import type { ConversationId, SubmissionId } from "../../domain/ids.ts"
import { textOf } from "../../domain/message.ts"
import { addUsage, noUsage } from "../../domain/usage.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { StoreReads } from "../../storage/store.ts"
import type { Receipt, Settled } from "../contract.ts"
import { orStorageFailure } from "./failures.ts"
import type { SubmissionRow } from "./machine/data.ts"

export const receiptOf = (row: SubmissionRow): Receipt => ({
  submission_id: row.id,
  conversation_id: row.conversation,
  status: row.status,
  reason: row.reason,
  detail: row.detail,
})

/** `row` must be `done` or `unanswered`. */
const settledOf = (store: StoreReads, row: SubmissionRow): Effect.Effect<Settled, ReadError> =>
  Effect.gen(function* () {
    const none: Settled = { ...receiptOf(row), entry_id: row.answer, text: null, model: null, usage: noUsage, turns: 0 }
    if (row.entry === null || row.answer === null) return none
    const entries = yield* store.entries(row.conversation, { from: row.entry, to: row.answer })
    const responses = entries.flatMap((entry) => entry.model).filter((message) => message.role === "assistant")
    const answer = responses.at(-1)
    return {
      ...none,
      text: answer === undefined ? null : textOf(answer.content),
      model: answer?.model ?? null,
      usage: responses.reduce((sum, message) => addUsage(sum, message.usage ?? noUsage), noUsage),
      turns: responses.length,
    }
  })

/** The end of a submission of the conversation that has ended. */
export const settledIn = (
  store: StoreReads,
  conversation: ConversationId,
  id: SubmissionId,
): Effect.Effect<Settled, Failure> =>
  Effect.flatMap(orStorageFailure(store.submission(id)), (row) =>
    row === null || row.conversation !== conversation
      ? Effect.fail(new NotFound({ what: `submission ${id}` }))
      : orStorageFailure(settledOf(store, row)),
  )
