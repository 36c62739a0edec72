/**
 * What a queue decides about its jobs. Pure: rows in, transitions out; `queue.ts` commits them. Rules:
 * 1. A job runs only after the commit that claimed it, and ends in exactly one commit, which is refused once the job was taken away.
 * 2. A job that executes belongs to a holder, `node#epoch`. It is an orphan when its lease has lapsed, when its holder's epoch is over, when
 *    its holder is this node and does not run it, or when it is about a conversation at a place that this node holds by now. Orphans go
 *    back, their attempt counted.
 * 3. A clean stop hands running jobs back without counting the attempt; so does a node that gives up the place of their conversation.
 */
import type { Job } from "../../domain/job.ts"
import { cancelled, completed, failed, heartbeat, rescued, snoozed } from "../../domain/job-transitions.ts"
import type { JobUpdate } from "../../storage/job-port.ts"
import type { JobResult } from "./worker.ts"

/** How an attempt ended. */
export type Outcome = JobResult | { readonly type: "failed"; readonly error: string }

/** Who runs the jobs of this node. */
export interface Holder {
  readonly node: string
  /** The epoch of its store. */
  readonly epoch: number
}

/** What is known of other holders. */
export interface Gone {
  /** Epochs that are over for good. */
  readonly epochs: ReadonlySet<number>
  /** Jobs that nobody else may run any more. */
  readonly jobs: ReadonlySet<Job>
}

/** The `node` column of a job. */
export const holderName = ({ node, epoch }: Holder): string => `${node}#${epoch}`

/** Null for a holder that no version of ours wrote. */
const epochOf = (holder: string): number | null => {
  const epoch = Number(holder.slice(holder.lastIndexOf("#") + 1))
  return Number.isSafeInteger(epoch) ? epoch : null
}

/** What executes under another holder. */
export const foreignJobs = (executing: ReadonlyArray<Job>, self: Holder): ReadonlyArray<Job> =>
  executing.filter(({ node }) => node !== null && node !== holderName(self))

/** The epochs of the holders of jobs, each once. */
export const epochsOf = (jobs: ReadonlyArray<Job>): ReadonlyArray<number> => [
  ...new Set(jobs.flatMap(({ node }) => (node === null ? [] : (epochOf(node) ?? [])))),
]

const transition = (job: Job, next: Omit<Job, "seq">): JobUpdate => ({ job: next, from: job.state, fence: job.fence })

/** Ends an attempt. `backoff` are the milliseconds before a next one after a failure. */
export const ended = (job: Job, outcome: Outcome, now: number, backoff: number): JobUpdate => {
  switch (outcome.type) {
    case "done":
      return transition(job, completed(job, now))
    case "snooze":
      return transition(job, snoozed(job, now + Math.max(0, Math.round(outcome.ms))))
    case "cancel":
      return transition(job, cancelled(job, now, outcome.reason))
    case "failed":
      return transition(job, failed(job, now, outcome.error, now + backoff))
  }
}

/** The signs of life of what runs. */
export const heartbeats = (running: ReadonlyArray<Job>, leaseUntil: number): ReadonlyArray<JobUpdate> =>
  running.map((job) => transition(job, heartbeat(job, leaseUntil)))

/** A clean stop: back to the queue at once. */
export const released = (running: ReadonlyArray<Job>, now: number): ReadonlyArray<JobUpdate> =>
  running.map((job) => transition(job, snoozed(job, now)))

/** Whether this node still is the holder of a job that it runs. */
export const isHeld = (running: Job, stored: Job | null): boolean =>
  stored !== null && stored.state === "executing" && stored.fence === running.fence

/** What is said of a job that was taken from a worker. */
export const diedText = "the worker died"

/** The transitions of orphans among what executes in a queue. `runs` says whether this node runs a job. */
export const rescues = (
  executing: ReadonlyArray<Job>,
  runs: (job: Job) => boolean,
  self: Holder,
  gone: Gone,
  now: number,
): ReadonlyArray<JobUpdate> =>
  executing
    .filter((job) => !runs(job) && isOrphan(job, self, gone, now))
    .map((job) => transition(job, rescued(job, now, diedText, now)))

const isOrphan = (job: Job, self: Holder, gone: Gone, now: number): boolean =>
  job.node === null ||
  job.node === holderName(self) ||
  gone.epochs.has(epochOf(job.node) ?? -1) ||
  gone.jobs.has(job) ||
  job.leaseUntil === null ||
  job.leaseUntil <= now

/** Milliseconds until a queue is to be looked at again. */
export const nextLook = (dueAt: number | null, now: number, pollMs: number): number =>
  dueAt === null ? pollMs : Math.min(Math.max(0, dueAt - now), pollMs)
