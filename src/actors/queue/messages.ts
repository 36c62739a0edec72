/**
 * What the actor of a queue is told and asked.
 */
import type { Deferred } from "effect"
import type { JobId } from "../../domain/ids.ts"
import type { Job } from "../../domain/job.ts"
import type { ReplyTo } from "../kernel/index.ts"

/** Jobs that are to end or to stop. */
export interface Leaving {
  readonly jobs: Set<JobId>
  readonly reply: ReplyTo<void>
  /** None of them runs any more: no need to wait until their time is up. */
  readonly over: Deferred.Deferred<void>
}

export type QueueMessage =
  /** Something may be due. */
  | { readonly type: "look" }
  /** Time for signs of life and for orphans. */
  | { readonly type: "beat" }
  /** An attempt ended; `kept` false: the job was taken away before its end was committed. */
  | { readonly type: "ended"; readonly job: JobId; readonly fence: number; readonly kept: boolean }
  /** A job was changed by somebody else. */
  | { readonly type: "changed"; readonly job: JobId }
  | { readonly type: "paused"; readonly paused: boolean }
  /** Somebody else may have paused or resumed it. */
  | { readonly type: "pauseChanged" }
  /** Places came to this node: what their former node left is taken back at once. */
  | { readonly type: "gained" }
  /** Places leave it. Answered when none of their jobs runs here any more. */
  | {
      readonly type: "leaving"
      readonly shards: ReadonlySet<number>
      readonly graceMs: number
      readonly reply: ReplyTo<void>
    }
  /** The time of jobs that leave is up; then: their attempts have stopped. */
  | { readonly type: "stopLeaving"; readonly leaving: Leaving }
  | { readonly type: "handBack"; readonly jobs: ReadonlyArray<Job>; readonly leaving: Leaving }
