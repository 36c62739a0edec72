/**
 * Jobs: units of background work in durable queues. Legal transitions (any other is refused, see `job-transitions.ts`):
 * `available → executing → completed | available (again, after a failure, a snooze or a rescue) | discarded`, `available | executing →
 * cancelled`, and by hand from an end back to `available`. A job is claimed under a lease and a fencing token; whoever finishes it
 * under an older token changes nothing.
 */
import { Schema } from "effect"
import { ConversationId, JobId, Seq } from "./ids.ts"
import { Json } from "./json.ts"

/** `available`: due at `runAt`, now or later, for the first time or again; `discarded`: out of attempts. */
export const JobState = Schema.Literal("available", "executing", "completed", "discarded", "cancelled")
export type JobState = typeof JobState.Type

/** How long a `uniqueKey` keeps others out: until the job has ended, or as long as its row is kept. */
export const UniqueFor = Schema.Literal("live", "kept")
export type UniqueFor = typeof UniqueFor.Type

/** One failed attempt. `at` is in milliseconds since the epoch. */
export const JobFailure = Schema.Struct({ at: Schema.Int, attempt: Schema.Int, error: Schema.String })
export type JobFailure = typeof JobFailure.Type

export const Job = Schema.Struct({
  id: JobId,
  queue: Schema.NonEmptyString,
  /** Name of the worker that runs it. */
  worker: Schema.NonEmptyString,
  args: Json,
  state: JobState,
  /** At most one job of a queue has it; null for none. Cleared at the end of a job that is unique only while `live`. */
  uniqueKey: Schema.NullOr(Schema.String),
  uniqueFor: UniqueFor,
  /** Attempts begun. */
  attempt: Schema.NonNegativeInt,
  maxAttempts: Schema.Int.pipe(Schema.positive()),
  /** Not before, in milliseconds since the epoch. */
  runAt: Schema.Int,
  /** The conversation that it is about: it goes with it. */
  conversation: Schema.NullOr(ConversationId),
  /** Who runs it, or null. */
  node: Schema.NullOr(Schema.String),
  /** Fencing token: grows with every claim, and whenever the job is taken from its worker. */
  fence: Schema.NonNegativeInt,
  /** Milliseconds since the epoch until which `node` holds it without a heartbeat. */
  leaseUntil: Schema.NullOr(Schema.Int),
  /** The newest failures, oldest first. */
  errors: Schema.Array(JobFailure),
  createdAt: Schema.Int,
  startedAt: Schema.NullOr(Schema.Int),
  endedAt: Schema.NullOr(Schema.Int),
  seq: Seq,
})
export type Job = typeof Job.Type

/** The six queues of the engine. Applications add their own. */
export const QueueName = {
  generationRetry: "generation_retry",
  compaction: "compaction",
  verification: "verification",
  subagents: "subagents",
  scheduleTick: "schedule_tick",
  scheduleRuns: "schedule_runs",
} as const
