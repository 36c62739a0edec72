/**
 * Submissions: what somebody hands to a conversation. `queued → placed → done`, or `unanswered` with a reason.
 */
import { Schema } from "effect"
import { ConversationId, EntryId, Seq, SubmissionId } from "./ids.ts"
import { Json } from "./json.ts"

export const WhenBusy = Schema.Literal("followUp", "steer", "reject")
export type WhenBusy = typeof WhenBusy.Type

export const SubmissionStatus = Schema.Literal("queued", "placed", "done", "unanswered")
export type SubmissionStatus = typeof SubmissionStatus.Type

/** Why an input got no answer. */
export const UnansweredReason = Schema.Literal(
  "withdrawn",
  "aborted",
  "model_error",
  "run_failed",
  "faulted",
  "parked",
  /** A write whose head lies before the present context: it would bring back what a newer head cut off. */
  "stale",
  /** A reset ended the run before its answer. */
  "reset",
)
export type UnansweredReason = typeof UnansweredReason.Type

export const Submission = Schema.Struct({
  id: SubmissionId,
  conversation: ConversationId,
  kind: Schema.Literal("input", "write"),
  /** `input`: `{content: UserPart[], entry?: {kind, data}}`; `write`: the entry to append (`domain/write.ts`). */
  content: Json,
  whenBusy: WhenBusy,
  status: SubmissionStatus,
  reason: Schema.NullOr(UnansweredReason),
  /** One line that says what went wrong, for a person. */
  detail: Schema.NullOr(Schema.String),
  /** Unique per conversation: the same id returns the same submission. */
  requestId: Schema.NullOr(Schema.String),
  /** The entry that it was placed as. */
  entry: Schema.NullOr(EntryId),
  /** The entry that answers it. */
  answer: Schema.NullOr(EntryId),
  createdAt: Schema.Int,
  seq: Seq,
})
export type Submission = typeof Submission.Type
