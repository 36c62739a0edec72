/**
 * The queues of a node as its root takes them: the child, the service, and the engine's own workers, which begin once conversations can be
 * reached.
 */
import { Effect, Option, type Scope } from "effect"
import type { ActorSystemService } from "../actors/kernel/index.ts"
import type { QueuesService } from "../actors/queue/queues.ts"
import { WorkerRegistry } from "../actors/queue/registry.ts"
import { defaultQueueSettings, QueueConfig } from "../actors/queue/settings.ts"
import type { Failure } from "../domain/failure.ts"
import type { StoreService } from "../storage/store.ts"
import { child, type SupervisedChild } from "./child.ts"
import { type CompactionQueue, compactionQueue } from "./compaction-queue.ts"
import type { Conversations } from "./conversations.ts"
import { makeQueues, queueTree } from "./queues.ts"
import { retryWorker } from "./retry-worker.ts"
import { subagentWorker } from "./subagents.ts"
import { collector, Settled, verificationWorker } from "./verification.ts"

export interface QueueParts {
  readonly queues: QueuesService
  readonly child: SupervisedChild<never>
  readonly settled: Settled
  readonly compaction: CompactionQueue
  /** The store with which a commit wakes the queues of its jobs. */
  readonly store: StoreService
  /** Registers the workers of the engine until the scope closes. */
  readonly begin: (conversations: Conversations) => Effect.Effect<void, Failure, Scope.Scope>
}

/** With the settings of {@link QueueConfig}, or the defaults where there is none. */
export const queueParts = (options: {
  readonly store: StoreService
  readonly system: ActorSystemService
  readonly node: string
}): Effect.Effect<QueueParts> =>
  Effect.map(Effect.serviceOption(QueueConfig), (config) => {
    const settings = Option.getOrElse(config, () => defaultQueueSettings)
    const parts = { ...options, settings, workers: new WorkerRegistry() }
    const queues = makeQueues(parts)
    const settled = new Settled()
    const compaction = compactionQueue(queues)
    const collecting = child("settled", collector(settled, queues, settings.verifyAfterMs))
    return {
      queues,
      settled,
      compaction,
      store: {
        ...options.store,
        commit: (commit) => ((commit.jobs?.length ?? 0) === 0 ? options.store.commit(commit) : queues.commit(commit)),
      },
      child: child("queues", queueTree(parts, [collecting])),
      begin: (conversations) =>
        Effect.forEach(
          [
            retryWorker(options.store, conversations),
            compaction.worker,
            subagentWorker({ store: options.store, conversations }),
            verificationWorker(options.store, conversations, settings.verifyAfterMs),
          ],
          (worker) => queues.register(worker),
          { discard: true },
        ),
    }
  })
