/**
 * The task engine as a service: an application registers its definitions and runs durable workflows, beside conversations or for them.
 */
import { Context, type Effect, type Stream } from "effect"
import type { Failure } from "../../domain/failure.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { Task, TaskOutcome } from "../../domain/task.ts"
import type { TaskGraph, TaskGraphEvent } from "../../domain/task-graph.ts"
import type { Outcome, TaskDefinition } from "./define.ts"
import type { TaskParked } from "./errors.ts"

export interface StartOptions {
  /** Unique among all tasks: starting again with it gives the task that there is, also after a restart. Default none. */
  readonly requestId?: string
  /** The conversation that the task belongs to; it must exist. Default none. */
  readonly conversation?: ConversationId
  readonly background?: boolean
}

export interface TaskState {
  /** The committed row. */
  readonly task: Task
  /** Why the loaded code cannot run it, or null. */
  readonly blocked: string | null
}

export interface TasksService {
  /**
   * Loads the code of a kind, with the services of the caller for its phases. Open tasks of that kind go on. The newest registration counts.
   */
  readonly register: <Input, A, E, R>(definition: TaskDefinition<Input, A, E, R>) => Effect.Effect<void, Failure, R>
  /** Starts a task of a registered kind; answers once it is stored. `InvalidRequest` where the input does not fit or the kind is not registered. */
  readonly start: <Input, A, E, R>(
    definition: TaskDefinition<Input, A, E, R>,
    input: Input,
    options?: StartOptions,
  ) => Effect.Effect<TaskId, Failure>
  /**
   * Waits until the task has ended, however often its node restarts meanwhile and whoever started it. Fails with `TaskParked` where it goes on
   * only after a retry. Interrupting the wait ends the wait only.
   */
  readonly wait: (id: TaskId) => Effect.Effect<TaskOutcome, Failure | TaskParked>
  /** {@link wait}, with the types of the definition. `InvalidRequest` where the task is of another kind. */
  readonly outcome: <Input, A, E, R>(
    definition: TaskDefinition<Input, A, E, R>,
    id: TaskId,
  ) => Effect.Effect<Outcome<A, E>, Failure | TaskParked>
  readonly state: (id: TaskId) => Effect.Effect<TaskState, Failure>
  /**
   * Aborts the task and all that it owns; with `background` also through background work. Answers once that is stored: `wait` tells when it is
   * done. False for a task that has ended or is being aborted already.
   */
  readonly abort: (
    id: TaskId,
    options?: { readonly background?: boolean; readonly reason?: string },
  ) => Effect.Effect<{ readonly aborted: boolean }, Failure>
  /** Runs a parked task again, with a crash count that starts over. `Refused` for one that is not parked. */
  readonly retry: (id: TaskId) => Effect.Effect<void, Failure>
  /** Gives up a task whose code is missing: it ends as `orphaned`, without an abort handler. `Refused` for one that can run. */
  readonly discard: (id: TaskId, reason?: string) => Effect.Effect<void, Failure>
  /** The live task graph: the whole value, then its changes, commit by commit. In a cluster: of the tasks at places that this node holds. */
  readonly graph: Stream.Stream<TaskGraphEvent>
  readonly graphNow: Effect.Effect<TaskGraph>
  /** The graph of every open task, on whatever node. */
  readonly graphOfAll: Effect.Effect<TaskGraph, Failure>
}

export class Tasks extends Context.Tag("super-pi/Tasks")<Tasks, TasksService>() {}
