/**
 * The end of a submission for whoever waits: its answer, and what the run cost, read from the transcript. A submission that a parked
 * run holds up has no end to wait for, and says so.
 */
import { Effect } from "effect"
import type { ContextEntry } from "../../domain/context.ts"
import { type Failure, NotFound } from "../../domain/failure.ts"
import type { ConversationId, SubmissionId } from "../../domain/ids.ts"
import { textOf } from "../../domain/message.ts"
import { addUsage, noUsage } from "../../domain/usage.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { StoreReads } from "../../storage/store.ts"
import type { Receipt, Settled } from "../contract.ts"
import { orStorageFailure } from "./failures.ts"
import type { Data, SubmissionRow } from "./machine/data.ts"

export const receiptOf = (row: SubmissionRow): Receipt => ({
  submission_id: row.id,
  conversation_id: row.conversation,
  status: row.status,
  reason: row.reason,
  detail: row.detail,
  placed_entry_id: row.entry,
})

const nothingYet = (row: SubmissionRow): Settled => ({
  entry_id: row.answer,
  text: null,
  model: null,
  usage: noUsage,
  turns: 0,
  ...receiptOf(row),
})

/** A submission that a parked run holds up, as it is: nothing but a retry or a cancel ends it. Null where none holds it up. */
export const heldUpIn = ({ parked, queue }: Data, id: SubmissionId): Settled | null => {
  if (parked === null) return null
  const row = [...parked.submissions, ...queue].find((one) => one.id === id)
  if (row === undefined) return null
  const what =
    row.status === "queued"
      ? `the ${row.kind === "input" ? "prompt" : "write"} waits behind a run that is parked`
      : "the run is parked"
  const detail = `${what} (${parked.reason}): retry runs that run again, cancel ends it`
  return { ...nothingYet(row), reason: "parked", detail }
}

/** Whether it was an input that asked no model: its entry is its answer. */
const isCommand = ({ answer, entry }: SubmissionRow): boolean => entry !== null && entry === answer

const commandEnd = (row: SubmissionRow): Settled => Object.assign(nothingYet(row), { text: row.detail })

/** The end of `row`, from the entries between its input and its answer. */
const settledBy = (row: SubmissionRow, entries: ReadonlyArray<ContextEntry>): Settled => {
  const responses = entries.flatMap((entry) => entry.model).filter((message) => message.role === "assistant")
  const answer = responses.at(-1)
  return {
    ...nothingYet(row),
    text: answer === undefined ? null : textOf(answer.content),
    model: answer?.model ?? null,
    usage: responses.reduce((sum, message) => addUsage(sum, message.usage ?? noUsage), noUsage),
    turns: responses.length,
  }
}

/** The end of a submission that has just ended, from what is in memory; null where its input is not there any more. */
export const justSettled = ({ context }: Data, row: SubmissionRow): Settled | null => {
  const { answer, entry } = row
  if (isCommand(row)) return commandEnd(row)
  if (entry === null || answer === null) return nothingYet(row)
  const entries = context.entries.takeLastWhile((one) => one.id >= entry)
  return entries[0]?.id === entry
    ? settledBy(
        row,
        entries.filter((one) => one.id <= answer),
      )
    : null
}

/** `row` must be `done` or `unanswered`. */
const settledOf = (store: StoreReads, row: SubmissionRow): Effect.Effect<Settled, ReadError> =>
  row.entry === null || row.answer === null || isCommand(row)
    ? Effect.succeed(isCommand(row) ? commandEnd(row) : nothingYet(row))
    : Effect.map(store.entries(row.conversation, { from: row.entry, to: row.answer }), (entries) =>
        settledBy(row, entries),
      )

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
