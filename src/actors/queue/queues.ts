/**
 * The queues of a node as a service: inserting jobs, registering workers, and everything that a person does with queues.
 */
import type { Effect, Scope } from "effect"
import { Context } from "effect"
import type { Failure } from "../../domain/failure.ts"
import type { ConversationId, JobId, Seq } from "../../domain/ids.ts"
import type { Job, JobState, UniqueFor } from "../../domain/job.ts"
import type { Json } from "../../domain/json.ts"
import type { QueueChange, QueueChanged, QueueView } from "../../domain/queue.ts"
import type { CommitError } from "../../storage/errors.ts"
import type { JobInsert } from "../../storage/job-port.ts"
import type { Commit } from "../../storage/store.ts"
import type { QueueWorker } from "./worker.ts"

/** A job to be. */
export interface NewJob {
  readonly queue: string
  /** Name of the worker that is to run it. */
  readonly worker: string
  readonly args: Json
  /** While another job of the queue has this key, nothing is inserted. */
  readonly uniqueKey?: string
  /** Default `live`: until that job has ended. `kept`: as long as its row is kept. */
  readonly uniqueFor?: UniqueFor
  /** Default 0. */
  readonly delayMs?: number
  /** Default 20 in `generation_retry`, 3 elsewhere. */
  readonly maxAttempts?: number
  /** The job goes with this conversation when that is removed. */
  readonly conversation?: ConversationId
}

export interface Inserted {
  readonly job: Job
  /** False: a job with this unique key was there already, and is `job`. */
  readonly inserted: boolean
}

export interface QueuesService {
  /** Inserts a job durably. */
  readonly insert: (job: NewJob) => Effect.Effect<Inserted, Failure>
  /** The rows of jobs, for a commit of the caller's: the jobs come into being with it. Give it to `commit`, which also wakes the queues. */
  readonly rows: (jobs: ReadonlyArray<NewJob>) => Effect.Effect<ReadonlyArray<JobInsert>, Failure>
  /** Commits, and wakes the queues of the jobs in it. Without it they are found within five seconds. */
  readonly commit: (commit: Commit) => Effect.Effect<Seq, CommitError>
  /** Runs the jobs of its name from now on, until the scope closes. Fails for a queue that the node does not have. */
  readonly register: <R>(worker: QueueWorker<R>) => Effect.Effect<void, Failure, R | Scope.Scope>
  readonly list: Effect.Effect<ReadonlyArray<QueueView>, Failure>
  readonly jobs: (options: {
    readonly queue?: string
    readonly state?: JobState
    readonly limit?: number
    readonly before?: JobId
  }) => Effect.Effect<ReadonlyArray<Job>, Failure>
  readonly job: (id: JobId) => Effect.Effect<Job, Failure>
  /** Pauses (running jobs end, no other starts) or resumes a queue, durably; retries or cancels a job; prunes. */
  readonly change: (change: QueueChange) => Effect.Effect<QueueChanged, Failure>
}

export class Queues extends Context.Tag("super-pi/Queues")<Queues, QueuesService>() {}
