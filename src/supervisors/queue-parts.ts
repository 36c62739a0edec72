/**
 * The queues of a node as its root takes them: the child, the service, and the engine's own workers, which begin once conversations can be
 * reached.
 */
import { Effect, Option, type Scope } from "effect"
import type { ActorSystemService } from "../actors/kernel/index.ts"
import { JobPlacing } from "../actors/queue/placing.ts"
import type { QueuesService } from "../actors/queue/queues.ts"
import { WorkerRegistry } from "../actors/queue/registry.ts"
import { defaultQueueSettings, QueueConfig } from "../actors/queue/settings.ts"
import type { Failure } from "../domain/failure.ts"
import { ClusterStore } from "../storage/cluster-port.ts"
import { Signals } from "../storage/signal-port.ts"
import type { Commit, StoreService } from "../storage/store.ts"
import { child, type SupervisedChild } from "./child.ts"
import { Placement } from "./cluster/placement.ts"
import { type CompactionQueue, compactionQueue } from "./compaction-queue.ts"
import type { Conversations } from "./conversations.ts"
import { followPlaces, hearSignals } from "./queue-cluster.ts"
import { commitHere } from "./queue-wake.ts"
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

/** With the settings of {@link QueueConfig}, or the defaults where there is none; among other nodes where there is a {@link Placement}. */
export const queueParts = (options: {
  readonly store: StoreService
  readonly system: ActorSystemService
  readonly node: string
}): Effect.Effect<QueueParts> =>
  Effect.gen(function* () {
    const settings = Option.getOrElse(yield* Effect.serviceOption(QueueConfig), () => defaultQueueSettings)
    const placement = Option.getOrNull(yield* Effect.serviceOption(Placement))
    const places = Option.getOrNull(yield* Effect.serviceOption(ClusterStore))
    const signals = Option.getOrNull(yield* Effect.serviceOption(Signals))
    const placing =
      placement === null || places === null ? undefined : new JobPlacing(placement.holds, places.placeOfConversation)
    const parts = { ...options, settings, workers: new WorkerRegistry(), placing, signals: signals ?? undefined }
    const queues = makeQueues(parts)
    const settled = new Settled()
    const compaction = compactionQueue(queues)
    // What a node does for its own conversations concerns no other.
    const own = { ...queues, commit: (commit: Commit) => commitHere(parts, commit) }
    const collecting = child("settled", collector(settled, own, settings.verifyAfterMs))
    const here = { system: options.system, queues: Object.keys(settings.queues) }
    return {
      queues,
      settled,
      compaction,
      store: {
        ...options.store,
        commit: (commit) =>
          (commit.jobs?.length ?? 0) === 0 ? options.store.commit(commit) : commitHere(parts, commit),
      },
      child: child("queues", queueTree(parts, [collecting])),
      begin: (conversations) =>
        Effect.gen(function* () {
          for (const worker of [
            retryWorker(options.store, conversations),
            compaction.worker,
            subagentWorker({ store: options.store, conversations }),
            verificationWorker(options.store, conversations, settings.verifyAfterMs),
          ]) {
            yield* queues.register(worker)
          }
          if (signals !== null) yield* hearSignals(here, signals)
          if (placement !== null) yield* followPlaces(here, placement)
        }),
    }
  })
