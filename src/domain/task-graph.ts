/**
 * The live task graph: every task that has not ended, as one value, and its changes commit by commit. A node appears with the commit that
 * creates its task and leaves with the commit that ends it. Pure.
 */
import { Schema } from "effect"
import { ConversationId, type Seq, TaskId } from "./ids.ts"
import type { Task } from "./task.ts"
import { TaskStatus, WaitPolicy } from "./task.ts"
import { isOpen } from "./task-rules.ts"

export const TaskNode = Schema.Struct({
  id: TaskId,
  kind: Schema.String,
  version: Schema.NonNegativeInt,
  status: TaskStatus,
  /** The task that it works for, or null. */
  owner: Schema.NullOr(TaskId),
  conversation: Schema.NullOr(ConversationId),
  /** Neither aborted with its owner nor waited for by it. */
  background: Schema.Boolean,
  /** An abort was accepted. */
  abort: Schema.Boolean,
  waitingOn: Schema.NullOr(Schema.Struct({ on: Schema.Array(TaskId), policy: WaitPolicy })),
  /** When a sleeping task wakes, in milliseconds since the epoch. */
  wakeAt: Schema.NullOr(Schema.Int),
  /** How a `completing` task will end. */
  outcome: Schema.NullOr(Schema.String),
  crashes: Schema.NonNegativeInt,
  /** Why it is parked, or null. */
  parked: Schema.NullOr(Schema.String),
  /** Why the code that is loaded cannot run it (no definition, a newer version), or null. */
  blocked: Schema.NullOr(Schema.String),
})
export type TaskNode = typeof TaskNode.Type

/** By task id. */
export type TaskGraph = ReadonlyMap<TaskId, TaskNode>

/** `graph` is the whole value, first of all and again for a reader that fell far behind; `change` is one commit, or several for a slow reader. */
export type TaskGraphEvent =
  | { readonly type: "graph"; readonly tasks: TaskGraph }
  | {
      readonly type: "change"
      /** The newest commit that it holds; null where only `blocked` changed. */
      readonly seq: Seq | null
      readonly changed: ReadonlyArray<TaskNode>
      readonly ended: ReadonlyArray<TaskId>
    }

/** The node of a task, or null when it has ended. */
export const taskNode = (task: Omit<Task, "seq">, blocked: string | null): TaskNode | null =>
  isOpen(task)
    ? {
        id: task.id,
        kind: task.kind,
        version: task.version,
        status: task.status,
        owner: task.owner,
        conversation: task.conversation,
        background: task.background,
        abort: task.abortRequested,
        waitingOn: task.waitingOn,
        wakeAt: task.wakeAt,
        outcome: task.status === "completing" ? (task.outcome?.status ?? null) : null,
        crashes: task.crashes,
        parked: task.parked,
        blocked,
      }
    : null

/** The graph after an event. */
export const applyGraphEvent = (graph: TaskGraph, event: TaskGraphEvent): TaskGraph => {
  if (event.type === "graph") return event.tasks
  const next = new Map(graph)
  for (const node of event.changed) next.set(node.id, node)
  for (const id of event.ended) next.delete(id)
  return next
}
