/**
 * The durable side of a compaction: what its task was asked, where it is, how it ended, and how others see it.
 */
import { Schema } from "effect"
import { CompactionPlan } from "./compaction.ts"
import { CompactionMode, CompactionReason } from "./compaction-settings.ts"
import { EntryId, TaskId } from "./ids.ts"

/** Input of a `pi.compaction` task: the intent. */
export const CompactionInput = Schema.Struct({
  reason: CompactionReason,
  /** What a person wants the summary to look at. */
  instructions: Schema.NullOr(Schema.String),
  mode: CompactionMode,
  /** The conversation's `provider/model`, "" where it is not known. */
  model: Schema.String,
  /** The model that writes the summary; "" for the node's default. */
  writer: Schema.String,
  plan: CompactionPlan,
})
export type CompactionInput = typeof CompactionInput.Type

/** What is put in place of the older part. `text` is empty for stubs; `todo` is the todo list as text. */
export const CompactionSummary = Schema.Struct({ text: Schema.String, todo: Schema.NullOr(Schema.String) })
export type CompactionSummary = typeof CompactionSummary.Type

/** Where it is: the summary is being made, or is there and waits for a turn boundary. */
export const CompactionCheckpoint = Schema.Union(
  Schema.Struct({ phase: Schema.Literal("summarise"), attempt: Schema.Int.pipe(Schema.positive()) }),
  Schema.Struct({
    phase: Schema.Literal("place"),
    attempt: Schema.Int.pipe(Schema.positive()),
    summary: CompactionSummary,
  }),
)
export type CompactionCheckpoint = typeof CompactionCheckpoint.Type

/**
 * `stale`: the context had moved on, nothing was placed; `nothing`: there was nothing to compact, and no task; `declined`: a plugin did not
 * want it.
 */
export const CompactionStatus = Schema.Literal("completed", "stale", "nothing", "declined", "cancelled", "failed")
export type CompactionStatus = typeof CompactionStatus.Type

/** How a compaction ended, for whoever asked for it. Tokens are estimates. */
export const CompactionResult = Schema.Struct({
  status: CompactionStatus,
  task_id: Schema.NullOr(TaskId),
  /** The entry that it was placed as. */
  entry_id: Schema.NullOr(EntryId),
  tokens_before: Schema.NonNegativeInt,
  /** Null where nothing was placed. */
  tokens_after: Schema.NullOr(Schema.NonNegativeInt),
})
export type CompactionResult = typeof CompactionResult.Type

/** A compaction that is not over, as it stands in `pi.live` and in a snapshot. `retry.at` in milliseconds since the epoch. */
export const CompactionView = Schema.Struct({
  task: TaskId,
  reason: CompactionReason,
  attempt: Schema.Int,
  retry: Schema.NullOr(Schema.Struct({ attempt: Schema.Int, at: Schema.Int, reason: Schema.String })),
})
export type CompactionView = typeof CompactionView.Type

/** The newest compaction that failed, until one succeeds. */
export const CompactionFailure = Schema.Struct({ task: TaskId, reason: CompactionReason, error: Schema.String })
export type CompactionFailure = typeof CompactionFailure.Type
