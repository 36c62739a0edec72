/**
 * What can be done with a task by hand, on the wire too.
 */
import { Schema } from "effect"
import { TaskId } from "./ids.ts"
import { TaskStatus } from "./task.ts"

export const TaskChange = Schema.Union(
  /** Runs a parked task again. */
  Schema.Struct({ type: Schema.Literal("retry"), task: TaskId }),
  /** Aborts it and what it owns; with `background` also through background work. */
  Schema.Struct({ type: Schema.Literal("abort"), task: TaskId, background: Schema.Boolean }),
  /** Gives up a task whose code is missing. */
  Schema.Struct({ type: Schema.Literal("discard"), task: TaskId }),
)
export type TaskChange = typeof TaskChange.Type

/** The task right after the change. */
export const TaskChanged = Schema.Struct({ task: TaskId, status: TaskStatus, abort: Schema.Boolean })
export type TaskChanged = typeof TaskChanged.Type
