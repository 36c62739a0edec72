/**
 * The net under a sleeping retry: a durable job that is due a second after the actor's own timer. Where that fired it finds nothing to do;
 * where the actor left memory, or never came back, it wakes the conversation.
 */
import type { TaskId } from "../../../domain/ids.ts"
import { QueueName } from "../../../domain/job.ts"
import type { DraftJob } from "./draft.ts"

/** Name of the worker in `generation_retry`. */
export const retryWorkerName = "wake"

/** Milliseconds after the wake-up time: the actor's own timer comes first. */
export const retryGraceMs = 1_000

/** The job of one sleep. Each sleep of a task has its own, so that none is missed while another one runs. */
export const retryJob = (task: TaskId, wakeAt: number): DraftJob => ({
  queue: QueueName.generationRetry,
  worker: retryWorkerName,
  args: { task },
  uniqueKey: `${task}/${wakeAt}`,
  uniqueFor: "live",
  maxAttempts: 20,
  runAt: wakeAt + retryGraceMs,
})
