/**
 * The legal transitions of a job as functions of its row. Pure. Whoever takes a job away from its worker (a rescue, a cancel) raises the
 * fencing token, so that what the worker still commits for it is refused.
 */
import type { Job, JobFailure, JobState } from "./job.ts"

/** A row before a commit stamps it. */
type Row = Omit<Job, "seq">

const legal: Readonly<Record<JobState, ReadonlyArray<JobState>>> = {
  // again available: due at another time
  available: ["available", "executing", "cancelled"],
  // again executing: a heartbeat
  executing: ["executing", "completed", "available", "discarded", "cancelled"],
  completed: ["available"],
  discarded: ["available"],
  cancelled: ["available"],
}

/** Whether a job may go from one state to the other. Ended jobs go back to `available` only when somebody retries them by hand. */
export const isLegalTransition = (from: JobState, to: JobState): boolean => legal[from].includes(to)

/** True for the states that a job does not leave by itself. */
export const isEnded = (state: JobState): boolean =>
  state === "completed" || state === "discarded" || state === "cancelled"

/** Failures that a row keeps. */
export const keptFailures = 10
/** Characters of one failure that a row keeps. */
const keptText = 2_000

const withFailure = (errors: Job["errors"], failure: JobFailure): Job["errors"] =>
  [...errors, { ...failure, error: failure.error.slice(0, keptText) }].slice(-keptFailures)

/** Whose attempt it is and until when without a heartbeat. Times in milliseconds since the epoch. */
export interface JobHold {
  readonly node: string
  readonly now: number
  readonly leaseUntil: number
}

/** `available → executing`: a new attempt under a new fencing token. */
export const claimed = (job: Row, hold: JobHold): Row => ({
  ...job,
  state: "executing",
  attempt: job.attempt + 1,
  fence: job.fence + 1,
  node: hold.node,
  leaseUntil: hold.leaseUntil,
  startedAt: hold.now,
})

/** `executing → executing`: the lease goes on. */
export const heartbeat = (job: Row, leaseUntil: number): Row => ({ ...job, leaseUntil })

const ended = (job: Row, state: JobState, at: number): Row => ({
  ...job,
  state,
  node: null,
  leaseUntil: null,
  endedAt: at,
  uniqueKey: job.uniqueFor === "live" ? null : job.uniqueKey,
})

const waiting = (job: Row, runAt: number): Row => ({ ...job, state: "available", node: null, leaseUntil: null, runAt })

/** `executing → completed`. */
export const completed = (job: Row, at: number): Row => ended(job, "completed", at)

/** `executing → available` at `runAt`, as a wish of the worker: the attempt does not count. */
export const snoozed = (job: Row, runAt: number): Row => ({ ...waiting(job, runAt), attempt: job.attempt - 1 })

/** `executing → available` at `runAt`, or `discarded` when this was the last attempt. */
export const failed = (job: Row, at: number, error: string, runAt: number): Row => {
  const errors = withFailure(job.errors, { at, attempt: job.attempt, error })
  return job.attempt >= job.maxAttempts
    ? { ...ended(job, "discarded", at), errors }
    : { ...waiting(job, runAt), errors }
}

/** `executing → available | discarded` of a job whose worker is gone. The attempt counts. */
export const rescued = (job: Row, at: number, error: string, runAt: number): Row => ({
  ...failed(job, at, error, runAt),
  fence: job.fence + 1,
})

/** `available | executing → cancelled`. */
export const cancelled = (job: Row, at: number, reason: string): Row => ({
  ...ended(job, "cancelled", at),
  fence: job.fence + 1,
  errors: withFailure(job.errors, { at, attempt: job.attempt, error: `cancelled: ${reason}` }),
})

/** Any state but `executing` → `available` now, with at least one attempt left. */
export const retried = (job: Row, at: number): Row => ({
  ...waiting(job, at),
  fence: job.fence + 1,
  maxAttempts: Math.max(job.maxAttempts, job.attempt + 1),
  endedAt: null,
})
