/**
 * What others read of the tasks of a node.
 */
import { Schema } from "effect"
import { Task } from "./task.ts"
import { TaskNode } from "./task-graph.ts"

/** The open tasks, the oldest first. Another `tag` means that something changed. */
export const TaskList = Schema.Struct({ tag: Schema.String, tasks: Schema.Array(TaskNode) })
export type TaskList = typeof TaskList.Type

/** One task, ended or not, and what it owns. */
export const TaskDetail = Schema.Struct({ task: Task, owned: Schema.Array(Task) })
export type TaskDetail = typeof TaskDetail.Type
