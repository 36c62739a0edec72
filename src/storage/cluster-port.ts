/**
 * What several nodes on one database need of it beyond the storage port: where work belongs. Rules:
 * 1. Every conversation and task has a *place*, a number that never changes: that of its root. A conversation's root is itself, or the
 *    root of the task that owns it (a subagent works where its parent works); a task's is its conversation's, its owner's, or itself.
 * 2. A shard is a set of places (`shardOf` in `domain/cluster.ts`). At most one node holds a shard; only it works at those places.
 */
import { Context, type Effect } from "effect"
import type { ConversationId, TaskId } from "../domain/ids.ts"
import type { Task } from "../domain/task.ts"
import type { CommitError, ReadError } from "./errors.ts"

/** Tasks that a node took over. */
export interface AdoptedTasks {
  /** From the sequence of epochs and tokens: larger than every one before. The applications' tasks among `tasks` carry it. */
  readonly fence: number
  /** Oldest first, as they were when the fence was raised. */
  readonly tasks: ReadonlyArray<{ readonly task: Task; readonly place: number }>
}

export interface ClusterStoreService {
  /** The place of a conversation; null where there is none. */
  readonly placeOfConversation: (id: ConversationId) => Effect.Effect<number | null, ReadError>
  readonly placeOfTask: (id: TaskId) => Effect.Effect<number | null, ReadError>
  /** Conversations of these shards with an open task that is not parked, oldest first: those that are to go on by themselves. */
  readonly busyConversations: (shards: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<ConversationId>, ReadError>
  /**
   * Takes over the open tasks at these shards. The fence of those of applications (`isWorkflow` in `domain/task-rules.ts`) is raised in the
   * same transaction that reads them, so that whoever had them before can write nothing of them any more; those of conversations are read
   * only, their conversation's token guards them.
   */
  readonly adoptTasks: (shards: ReadonlyArray<number>) => Effect.Effect<AdoptedTasks, CommitError | ReadError>
  /** Fences off a node that is gone: every commit that still comes from it fails `Fenced`. */
  readonly fenceOff: (epoch: number) => Effect.Effect<void, ReadError>
  /** When the oldest work that waits for somebody began to wait, in milliseconds since the epoch; null: none waits. */
  readonly oldestUnserved: Effect.Effect<number | null, ReadError>
}

/** Provided by the PostgreSQL engine beside its `Store`. */
export class ClusterStore extends Context.Tag("super-pi/ClusterStore")<ClusterStore, ClusterStoreService>() {}
