/**
 * What the actor system offers as a service: one per process (or test). The tag and its layer are in system.ts.
 */
import type { Effect, Option, Scheduler } from "effect"
import type { TreeNode } from "../../domain/tree.ts"
import type { NameTaken } from "./errors.ts"
import type { ActorRef } from "./ref.ts"

/** Names of live actors, unique in the system. A name is freed when its actor ends for good; it survives restarts. */
export interface Registry {
  readonly register: (name: string, ref: ActorRef<never>) => Effect.Effect<void, NameTaken>
  readonly unregister: (name: string) => Effect.Effect<void>
  /** The caller vouches for the message type, as the name carries none. */
  readonly whereis: <M>(name: string) => Effect.Effect<Option.Option<ActorRef<M>>>
  readonly names: Effect.Effect<ReadonlyArray<string>>
}

export interface ActorSystemService {
  readonly name: string
  /** `/user`: the parent of every actor spawned without one. */
  readonly guardian: ActorRef<never>
  readonly registry: Registry
  /**
   * The run queue of the system's own fibers. Effects that ask actors a lot run under it (`Effect.withScheduler`): an answer then
   * costs a turn in the queue instead of a promise.
   */
  readonly scheduler: Scheduler.Scheduler
  /** A snapshot of the live tree from `/user` down. */
  readonly tree: () => Effect.Effect<TreeNode>
  /** Messages that reached no live actor, since the start. */
  readonly deadLetters: number
  /** Live actors, the guardian not counted. */
  readonly actors: number
}
