/**
 * Queues of several nodes on one database in memory, under the test's clock.
 */
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { ActorSystem, spawn, stop } from "../../src/actors/kernel/index.ts"
import { JobPlacing } from "../../src/actors/queue/placing.ts"
import { WorkerRegistry } from "../../src/actors/queue/registry.ts"
import { defaultQueueSettings } from "../../src/actors/queue/settings.ts"
import type { QueueWorker } from "../../src/actors/queue/worker.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import { followPlaces, hearSignals } from "../../src/supervisors/queue-cluster.ts"
import { makeQueues, queueTree } from "../../src/supervisors/queues.ts"
import { type ClusterNode, MemoryCluster } from "../support/memory-cluster.ts"
import { type Node, queue } from "./harness.ts"

export interface QueueNode extends Node, Pick<ClusterNode, "gain" | "leave" | "fence"> {}

/** A node with one queue, until the scope closes. */
export const clusterNode = (
  cluster: MemoryCluster,
  name: string,
  worker: QueueWorker,
  concurrency = 2,
): Effect.Effect<QueueNode, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { database } = cluster
    const scope = yield* Scope.make()
    const close = Scope.close(scope, Exit.void)
    yield* Effect.addFinalizer(() => close)
    const context = yield* Layer.buildWithScope(ActorSystem.layer(), scope)
    const system = Context.get(context, ActorSystem)
    const { fence, gain, leave, placement, places, signals, store } = cluster.node(name)
    const parts = {
      store,
      system,
      signals,
      workers: new WorkerRegistry(),
      settings: { ...defaultQueueSettings, queues: { [queue]: { concurrency } } },
      node: name,
      placing: new JobPlacing(placement.holds, places.placeOfConversation),
    }
    const queues = makeQueues(parts)
    yield* Effect.acquireRelease(spawn(queueTree(parts), { name: "queues" }), (ref) => stop(ref)).pipe(
      Effect.orDie,
      Effect.provide(context),
      Scope.extend(scope),
    )
    yield* queues.register(worker).pipe(Effect.orDie, Scope.extend(scope))
    const here = { system, queues: [queue] }
    yield* Scope.extend(Effect.zipRight(hearSignals(here, signals), followPlaces(here, placement)), scope)
    return { queues, store, system, database, close, fence, gain, leave }
  })

/** Conversations as the jobs name them; shard of id N is N + 1. */
export const conversations = (cluster: MemoryCluster, ...ids: ReadonlyArray<number>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const writer = cluster.node("writer")
    yield* writer.store.commit({
      conversations: ids.map((id) => ({
        ...{ id: ConversationId.make(id), parent: null, owner: null, principal: "local", title: null },
        ...{ createdAt: 0, updatedAt: 0 },
      })),
    })
  }).pipe(Effect.orDie)

export const shardsOf = (...ids: ReadonlyArray<number>): ReadonlyArray<number> => ids.map((id) => id + 1)
export { MemoryCluster }
