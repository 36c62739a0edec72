/**
 * The worker of `generation_retry`: wakes a conversation whose retry slept past its time (see `machine/retry-job.ts`).
 */
import { Clock, Effect } from "effect"
import { retryGraceMs, retryWorkerName } from "../actors/conversation/machine/retry-job.ts"
import { tell } from "../actors/kernel/index.ts"
import { done, type QueueWorker, snooze } from "../actors/queue/worker.ts"
import { TaskId } from "../domain/ids.ts"
import { QueueName } from "../domain/job.ts"
import { isRecord } from "../domain/json.ts"
import type { StoreService } from "../storage/store.ts"
import type { Conversations } from "./conversations.ts"

export const retryWorker = (store: StoreService, conversations: Conversations): QueueWorker => ({
  queue: QueueName.generationRetry,
  name: retryWorkerName,
  run: ({ job }) =>
    Effect.gen(function* () {
      const id = isRecord(job.args) && typeof job.args.task === "number" ? TaskId.make(job.args.task) : null
      const task = id === null ? null : yield* store.task(id)
      if (task === null || task.conversation === null || task.status !== "sleeping" || task.wakeAt === null) return done
      const left = task.wakeAt - (yield* Clock.currentTimeMillis)
      if (left > 0) return snooze(left + retryGraceMs)
      // Where it was not in memory its recovery goes on with the retry; where it is, its timer was lost or is late.
      const ref = yield* conversations.get(task.conversation)
      yield* tell(ref, { type: "timer", timer: "backoff" })
      return done
    }),
})
