/**
 * The slots of summaries beside the work, from the durable queue `compaction`: each waits for a job of its own and holds it while its
 * model writes. So the queue's concurrency limits the node, and `super-pi queue` shows, pauses and resumes them. A job whose compaction is
 * not in this process any more (the process died, or it went ahead without) has nothing to do: a compaction that is taken up at the
 * next start inserts another.
 */
import { randomUUID } from "node:crypto"
import { Deferred, Effect } from "effect"
import type { CompactionSlots } from "../actors/conversation/compaction-slots.ts"
import type { QueuesService } from "../actors/queue/queues.ts"
import { done, type QueueWorker } from "../actors/queue/worker.ts"
import type { TaskId } from "../domain/ids.ts"
import { QueueName } from "../domain/job.ts"
import { isRecord } from "../domain/json.ts"

/** A compaction that waits for its slot or holds it. */
interface Holder {
  readonly task: TaskId
  readonly granted: Deferred.Deferred<void>
  readonly ended: Deferred.Deferred<void>
}

const workerName = "slot"

export interface CompactionQueue {
  readonly slots: CompactionSlots
  readonly worker: QueueWorker
}

export const compactionQueue = (queues: Pick<QueuesService, "insert">): CompactionQueue => {
  const holders = new Map<string, Holder>()
  const slots: CompactionSlots = {
    use: ({ conversation, task }, work) =>
      Effect.acquireUseRelease(
        Effect.gen(function* () {
          const slot = randomUUID()
          const holder = { task, granted: yield* Deferred.make<void>(), ended: yield* Deferred.make<void>() }
          holders.set(slot, holder)
          return { slot, holder }
        }),
        ({ holder, slot }) =>
          queues.insert({ queue: QueueName.compaction, worker: workerName, args: { task, slot }, conversation }).pipe(
            // A limit is no reason to fail: what cannot be queued goes ahead.
            Effect.catchAll((failure) =>
              Effect.zipRight(
                Effect.logWarning(`compaction ${task} takes no slot: ${failure.message}`),
                Deferred.succeed(holder.granted, undefined),
              ),
            ),
            Effect.zipRight(Deferred.await(holder.granted)),
            Effect.zipRight(work),
          ),
        ({ holder, slot }) => {
          holders.delete(slot)
          return Deferred.succeed(holder.ended, undefined)
        },
      ),
    hurry: (task) =>
      Effect.forEach(
        [...holders.values()].filter((holder) => holder.task === task),
        ({ granted }) => Deferred.succeed(granted, undefined),
        { discard: true },
      ),
  }
  const worker: QueueWorker = {
    queue: QueueName.compaction,
    name: workerName,
    run: ({ job }) => {
      const slot = isRecord(job.args) && typeof job.args.slot === "string" ? job.args.slot : ""
      const holder = holders.get(slot)
      if (holder === undefined) return Effect.succeed(done)
      return Deferred.succeed(holder.granted, undefined).pipe(
        Effect.zipRight(Deferred.await(holder.ended)),
        Effect.as(done),
      )
    },
  }
  return { slots, worker }
}
