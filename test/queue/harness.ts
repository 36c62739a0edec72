/**
 * Queues on a store in memory, under the test's clock: time passes only when a test says so.
 */
import { Context, Effect, Exit, Layer, Random, Scope, TestClock } from "effect"
import { ActorSystem, spawn, stop } from "../../src/actors/kernel/index.ts"
import type { QueuesService } from "../../src/actors/queue/queues.ts"
import { WorkerRegistry } from "../../src/actors/queue/registry.ts"
import { defaultQueueSettings, type QueueSettings } from "../../src/actors/queue/settings.ts"
import type { QueueWorker } from "../../src/actors/queue/worker.ts"
import type { JobId } from "../../src/domain/ids.ts"
import type { Job } from "../../src/domain/job.ts"
import { type MemoryDatabase, makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { makeQueues, queueTree } from "../../src/supervisors/queues.ts"

/** Most tests run in this queue. */
export const queue = "q"

const settings: QueueSettings = { ...defaultQueueSettings, queues: { [queue]: { concurrency: 2 } } }

export interface Node {
  readonly queues: QueuesService
  readonly store: StoreService
  readonly system: Context.Tag.Service<ActorSystem>
  readonly database: MemoryDatabase
  /** A clean stop. */
  readonly close: Effect.Effect<void>
}

export interface NodeOptions {
  readonly database?: MemoryDatabase
  readonly settings?: Partial<QueueSettings>
  readonly workers?: ReadonlyArray<QueueWorker>
  readonly wrapStore?: (store: StoreService) => StoreService
  readonly name?: string
}

/** A node with queues, until the scope closes. A new one on the same database fences the one before, as after a death. */
export const nodeOn = (options: NodeOptions = {}): Effect.Effect<Node, never, Scope.Scope> =>
  Effect.gen(function* () {
    const database = options.database ?? memoryDatabase()
    const scope = yield* Scope.make()
    const close = Scope.close(scope, Exit.void)
    yield* Effect.addFinalizer(() => close)
    const context = yield* Layer.buildWithScope(ActorSystem.layer(), scope)
    const system = Context.get(context, ActorSystem)
    const memory = yield* makeMemoryStore(database)
    const store = options.wrapStore?.(memory) ?? memory
    const workers = new WorkerRegistry()
    const parts = {
      store,
      workers,
      settings: { ...settings, ...options.settings },
      node: options.name ?? "node",
    }
    const queues = makeQueues({ ...parts, system })
    yield* Effect.acquireRelease(spawn(queueTree(parts), { name: "queues" }), (ref) => stop(ref)).pipe(
      Effect.orDie,
      Effect.provide(context),
      Scope.extend(scope),
    )
    for (const worker of options.workers ?? []) {
      yield* queues.register(worker).pipe(Effect.orDie, Scope.extend(scope))
    }
    return { queues, store, system, database, close }
  }).pipe(Effect.withRandom(Random.make("queues")))

/** Lets everything that is ready run. */
export const settle: Effect.Effect<void> = Effect.repeatN(
  Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve))),
  5,
)

/** Lets time pass, and what it wakes run. */
export const pass = (ms: number): Effect.Effect<void> => Effect.zipRight(TestClock.adjust(ms), settle)

/** Waits for something to become true; defects when it does not. */
export const until = (what: string, check: Effect.Effect<boolean>, tries = 500): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let left = tries; left > 0; left--) {
      if (yield* check) return
      yield* settle
    }
    return yield* Effect.dieMessage(`expected ${what}`)
  })

/** Waits until a job is in a state; gives it. */
export const reaches = (node: Node, id: JobId, state: Job["state"]): Effect.Effect<Job> =>
  Effect.gen(function* () {
    const read = Effect.orDie(node.queues.job(id))
    yield* until(
      `job ${id} to be ${state}`,
      Effect.map(read, (job) => job.state === state),
    )
    return yield* read
  })

/** Inserts a job for the worker `w`. */
export const insert = (node: Node, some: Partial<Parameters<QueuesService["insert"]>[0]> = {}) =>
  Effect.map(Effect.orDie(node.queues.insert({ queue, worker: "w", args: null, ...some })), ({ job }) => job)

export const worker = (run: QueueWorker["run"], some: Partial<QueueWorker> = {}): QueueWorker => ({
  queue,
  name: "w",
  run,
  ...some,
})
