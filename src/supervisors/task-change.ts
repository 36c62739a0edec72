/**
 * Changes of tasks by hand, as the contract names them.
 */
import { Effect } from "effect"
import type { TasksService } from "../actors/task/service.ts"
import type { Failure } from "../domain/failure.ts"
import type { TaskChange, TaskChanged } from "../domain/task-change.ts"

export const changeTask = (tasks: TasksService, change: TaskChange): Effect.Effect<TaskChanged, Failure> =>
  Effect.zipRight(
    perform(tasks, change),
    Effect.map(tasks.state(change.task), ({ task }) => ({
      task: task.id,
      status: task.status,
      abort: task.abortRequested,
    })),
  )

const perform = (tasks: TasksService, change: TaskChange): Effect.Effect<unknown, Failure> => {
  switch (change.type) {
    case "retry":
      return tasks.retry(change.task)
    case "abort":
      return tasks.abort(change.task, { background: change.background, reason: "aborted by hand" })
    case "discard":
      return tasks.discard(change.task)
  }
}
