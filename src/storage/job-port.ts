/**
 * Jobs in the storage port: what a commit may do with them, and how they are read.
 */
import type { Effect } from "effect"
import type { ConversationId, JobId } from "../domain/ids.ts"
import type { Job, JobState, UniqueFor } from "../domain/job.ts"
import type { Json } from "../domain/json.ts"
import type { ReadError } from "./errors.ts"

/** A new job, available at `runAt`. Where `uniqueKey` is taken in its queue the commit goes on and inserts nothing. */
export interface JobInsert {
  readonly id: JobId
  readonly queue: string
  readonly worker: string
  readonly args: Json
  readonly uniqueKey: string | null
  readonly uniqueFor: UniqueFor
  readonly maxAttempts: number
  /** Milliseconds since the epoch, as all times here. */
  readonly runAt: number
  readonly conversation: ConversationId | null
  readonly createdAt: number
}

/**
 * Replaces the row of a job that still is in `from` under `fence`. Refused as `Fenced` where the token is another by now, as `Conflict`
 * where the job is gone, in another state, or the transition is not legal. What a job is about (queue, worker, args, conversation)
 * stays, and its unique key, which may only be cleared.
 */
export interface JobUpdate {
  readonly job: Omit<Job, "seq">
  readonly from: JobState
  readonly fence: number
}

/** Takes what is due in a queue, the earliest first: `available → executing`, one more attempt, a new fencing token. */
export interface JobClaim {
  readonly queue: string
  readonly limit: number
  readonly now: number
  readonly leaseUntil: number
  /** Who takes them. */
  readonly node: string
}

/** Deletes jobs that ended before `endedBefore`, the oldest first and at most `limit` of them. */
export interface JobPruning {
  readonly endedBefore: number
  readonly limit: number
}

/** How many jobs of a queue are in a state. */
export interface JobCount {
  readonly queue: string
  readonly state: JobState
  readonly count: number
}

export interface JobReads {
  readonly job: (id: JobId) => Effect.Effect<Job | null, ReadError>
  /** The job that holds a unique key of a queue. */
  readonly jobByKey: (queue: string, uniqueKey: string) => Effect.Effect<Job | null, ReadError>
  /** Newest first. */
  readonly jobs: (options: {
    readonly queue?: string
    readonly state?: JobState
    readonly limit: number
    readonly before?: JobId
  }) => Effect.Effect<ReadonlyArray<Job>, ReadError>
  /** By queue and state, in the order of their names; without those of which there is none. */
  readonly jobCounts: () => Effect.Effect<ReadonlyArray<JobCount>, ReadError>
  /** The earliest `runAt` of what is available in a queue, or null. */
  readonly dueAt: (queue: string) => Effect.Effect<number | null, ReadError>
  /** What is executing in a queue, the oldest first. */
  readonly executingJobs: (queue: string) => Effect.Effect<ReadonlyArray<Job>, ReadError>
}

/** A new job's row, before a commit stamps it. */
export const jobRow = (insert: JobInsert): Omit<Job, "seq"> => ({
  ...insert,
  state: "available",
  attempt: 0,
  node: null,
  fence: 0,
  leaseUntil: null,
  errors: [],
  startedAt: null,
  endedAt: null,
})
