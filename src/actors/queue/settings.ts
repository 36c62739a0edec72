/**
 * The queues of a node: their concurrency, and the times of the engine. All times in milliseconds.
 */
import { Context } from "effect"
import { QueueName } from "../../domain/job.ts"

export interface QueueOptions {
  /** Jobs of the queue that run at once on this node. */
  readonly concurrency: number
}

export interface QueueSettings {
  readonly queues: Readonly<Record<string, QueueOptions>>
  /** A job whose worker gave no sign of life for this long is taken from it. */
  readonly leaseMs: number
  /** Between two signs of life. */
  readonly heartbeatMs: number
  /** Between two looks at a queue that nobody has woken. */
  readonly pollMs: number
  /** Between two prunings. */
  readonly pruneEveryMs: number
  /** How long jobs are kept after their end. */
  readonly keepMs: number
  /** Between the end of a conversation's work and the check of its transcript. */
  readonly verifyAfterMs: number
}

/** The queues of a node, where they are not to be the defaults. */
export class QueueConfig extends Context.Tag("super-pi/QueueConfig")<QueueConfig, QueueSettings>() {}

export const defaultQueueSettings: QueueSettings = {
  queues: {
    [QueueName.generationRetry]: { concurrency: 10 },
    [QueueName.compaction]: { concurrency: 3 },
    [QueueName.verification]: { concurrency: 1 },
    [QueueName.subagents]: { concurrency: 5 },
    [QueueName.scheduleTick]: { concurrency: 1 },
    [QueueName.scheduleRuns]: { concurrency: 5 },
  },
  leaseMs: 30_000,
  heartbeatMs: 10_000,
  pollMs: 5_000,
  pruneEveryMs: 60_000,
  keepMs: 24 * 60 * 60 * 1000,
  verifyAfterMs: 60_000,
}

/** The defaults with other concurrencies, and with queues of an application. Throws a `RangeError` for one that makes no sense. */
export const queueSettings = (
  queues: Readonly<Record<string, QueueOptions>> = {},
  times: Partial<Omit<QueueSettings, "queues">> = {},
): QueueSettings => {
  for (const [name, { concurrency }] of Object.entries(queues)) {
    if (!/^[a-zA-Z0-9_.-]{1,100}$/.test(name)) {
      throw new RangeError(`queues: expected a name of letters, digits, "_", "-" and ".", got ${JSON.stringify(name)}`)
    }
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      throw new RangeError(`queues.${name}.concurrency: expected a whole number of at least 1, got ${concurrency}`)
    }
  }
  return { ...defaultQueueSettings, ...times, queues: { ...defaultQueueSettings.queues, ...queues } }
}

/** Attempts of a job whose inserter says nothing. */
export const defaultMaxAttempts = (queue: string): number => (queue === QueueName.generationRetry ? 20 : 3)

/** The longest backoff. */
const maxBackoffMs = 60 * 60 * 1000

/** 1 s, 2 s, 4 s … one hour between attempts, each shortened by up to half at random. `random` in [0, 1). */
export const backoffMs = (attempt: number, random: number): number =>
  Math.round(Math.min(1000 * 2 ** (attempt - 1), maxBackoffMs) * (1 - random / 2))
