/**
 * Queues as callers see them, on the wire too.
 */
import { Schema } from "effect"
import { Job, JobState } from "./job.ts"

/** One queue. */
export const QueueView = Schema.Struct({
  queue: Schema.String,
  /** Jobs that run at once on the node; null where no node is asked. */
  concurrency: Schema.NullOr(Schema.Int),
  paused: Schema.Boolean,
  /** Workers on the node; none: its jobs wait for a node that has some. Null where no node is asked. */
  workers: Schema.NullOr(Schema.Array(Schema.String)),
  /** Jobs by state, without those of which there is none. */
  counts: Schema.partial(Schema.Record({ key: JobState, value: Schema.Int })),
  /** When the next job is due, in milliseconds since the epoch, or null. */
  due_at: Schema.NullOr(Schema.Int),
})
export type QueueView = typeof QueueView.Type

/** What can be done with queues and jobs by hand. */
export const QueueChange = Schema.Union(
  Schema.Struct({ type: Schema.Literal("pause", "resume"), queue: Schema.NonEmptyString }),
  Schema.Struct({ type: Schema.Literal("retry"), job: Job.fields.id }),
  Schema.Struct({ type: Schema.Literal("cancel"), job: Job.fields.id, reason: Schema.NullOr(Schema.String) }),
  /** Deletes ended jobs, all of them or those that ended before `before` (milliseconds since the epoch). */
  Schema.Struct({ type: Schema.Literal("prune"), before: Schema.NullOr(Schema.Int) }),
)
export type QueueChange = typeof QueueChange.Type

/** What a change came to: the queue, the job as it is now, or how many jobs were deleted. */
export const QueueChanged = Schema.Struct({
  queue: Schema.NullOr(QueueView),
  job: Schema.NullOr(Job),
  pruned: Schema.NullOr(Schema.Int),
})
export type QueueChanged = typeof QueueChanged.Type
