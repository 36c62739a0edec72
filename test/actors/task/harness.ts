/**
 * The task engine in the test's process, on a store in memory that outlives its nodes.
 */
import { Effect, Layer, Logger } from "effect"
import { ActorSystem } from "../../../src/actors/kernel/index.ts"
import { Tasks, type TasksService } from "../../../src/actors/task/index.ts"
import type { Failure } from "../../../src/domain/failure.ts"
import { type MemoryDatabase, makeMemoryStore } from "../../../src/storage/memory/store.ts"
import { Store, type StoreService } from "../../../src/storage/store.ts"
import { tasksLayer } from "../../../src/supervisors/tasks.ts"

export type WrapStore = (store: StoreService) => StoreService

/** A node on `database`; `wrapStore` stands between it and its store. */
export const nodeOn = (
  database: MemoryDatabase,
  wrapStore: WrapStore = (store) => store,
): Layer.Layer<Tasks | ActorSystem, Failure> =>
  tasksLayer({ node: "test" }).pipe(
    Layer.provideMerge(ActorSystem.layer()),
    Layer.provide(Layer.effect(Store, Effect.map(makeMemoryStore(database), wrapStore))),
  )

/** One life of a node: it ends with a clean stop. */
export const live = <A, E>(
  database: MemoryDatabase,
  use: (tasks: TasksService) => Effect.Effect<A, E>,
  wrapStore?: WrapStore,
): Effect.Effect<A, E | Failure> => Effect.flatMap(Tasks, use).pipe(Effect.provide(nodeOn(database, wrapStore)))

/** Warnings about parked tasks and crashes are meant: their log is not shown. */
export const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, Logger.remove(Logger.defaultLogger)))
