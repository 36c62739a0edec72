/**
 * What an application writes to run jobs: a worker, by name, for one queue. Jobs run at least once: a worker that dies between its effect
 * and its commit runs again. So it either puts its effect into the commit that ends the job (`done` with `commit`), or gives
 * `idempotencyKey` to the service that it calls.
 */
import type { Effect } from "effect"
import type { Job } from "../../domain/job.ts"
import type { Commit } from "../../storage/store.ts"

/** Rows that a worker commits together with the end of its job: both or neither. */
export type JobCommit = Omit<Commit, "jobUpdates" | "jobClaims" | "pruneJobs">

export type JobResult =
  | { readonly type: "done"; readonly commit?: JobCommit }
  /** Again in `ms`; the attempt does not count. */
  | { readonly type: "snooze"; readonly ms: number }
  /** Never again; the reason is kept. */
  | { readonly type: "cancel"; readonly reason: string }

/** One attempt, as its worker sees it. The lease is kept alive while the Effect runs; when it is lost the Effect is interrupted. */
export interface JobRun {
  readonly job: Job
  /** The same for every attempt of the job. */
  readonly idempotencyKey: string
}

export interface QueueWorker<R = never> {
  /** Name of a queue of the node. */
  readonly queue: string
  /** Unique in its queue; jobs name it. */
  readonly name: string
  /** A failure or a defect is a failed attempt: the job runs again after a backoff until its attempts are used up. */
  readonly run: (run: JobRun) => Effect.Effect<JobResult, unknown, R>
  /** Longer counts as a failure. Default: no limit. */
  readonly timeoutMs?: number
  /** Milliseconds between the failed attempt (counted from 1) and the next. Default {@link backoffMs}. */
  readonly backoff?: (attempt: number) => number
}

/** Done, with nothing to commit. */
export const done: JobResult = { type: "done" }
export const doneWith = (commit: JobCommit): JobResult => ({ type: "done", commit })
export const snooze = (ms: number): JobResult => ({ type: "snooze", ms })
export const cancelJob = (reason: string): JobResult => ({ type: "cancel", reason })

export const idempotencyKeyOf = (job: Pick<Job, "id" | "createdAt">): string =>
  `super-pi-job-${job.createdAt}-${job.id}`
