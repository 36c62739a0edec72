/**
 * Queues as listings show them, read from any store.
 */
import { Effect } from "effect"
import { QueueName } from "../../domain/job.ts"
import type { QueueView } from "../../domain/queue.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { StoreReads } from "../../storage/store.ts"
import { isPaused } from "./pause.ts"

/** What a running node adds to what is stored. */
export interface QueueNode {
  readonly concurrency: (queue: string) => number | null
  readonly workers: (queue: string) => ReadonlyArray<string>
  /** Its queues. */
  readonly names: ReadonlyArray<string>
}

/** Every queue of the engine and of the node, and every other one that has jobs, by name. `node` null: nobody is asked. */
export const queueViews = (
  reads: StoreReads,
  node: QueueNode | null,
): Effect.Effect<ReadonlyArray<QueueView>, ReadError> =>
  Effect.gen(function* () {
    const counted = yield* reads.jobCounts()
    const known = [...Object.values(QueueName), ...(node?.names ?? []), ...counted.map((count) => count.queue)]
    return yield* Effect.forEach([...new Set(known)].sort(), (queue) =>
      Effect.gen(function* () {
        const counts = Object.fromEntries(
          counted.flatMap((one) => (one.queue === queue ? [[one.state, one.count] as const] : [])),
        )
        return {
          queue,
          concurrency: node?.concurrency(queue) ?? null,
          paused: yield* isPaused(reads, queue),
          workers: node === null ? null : [...node.workers(queue)],
          counts,
          due_at: yield* reads.dueAt(queue),
        }
      }),
    )
  })
