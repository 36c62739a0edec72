/**
 * The tasks of a cluster as an application on one node uses them: what changes a task goes to the node that holds it.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { TasksService } from "../actors/task/service.ts"
import type { Failure } from "../domain/failure.ts"
import { isMoved } from "../domain/moved.ts"
import type { TaskChange, TaskChanged } from "../domain/task-change.ts"

/**
 * `here` with changes of tasks at other places done by `remote`. The reason of an abort does not travel: there it reads `aborted by hand`.
 */
export const routedTasks = (here: TasksService, remote: SessionsService["changeTask"]): TasksService => {
  const elsewhere = <A>(
    local: Effect.Effect<A, Failure>,
    change: TaskChange,
    result: (changed: TaskChanged) => A,
  ): Effect.Effect<A, Failure> => Effect.catchIf(local, isMoved, () => Effect.map(remote({ change }), result))
  return {
    ...here,
    abort: (id, options = {}) =>
      Effect.flatMap(here.state(id), ({ task: before }) =>
        elsewhere(
          here.abort(id, options),
          { type: "abort", task: id, background: options.background ?? false },
          ({ abort }) => ({ aborted: abort && !before.abortRequested }),
        ),
      ),
    retry: (id) => elsewhere(here.retry(id), { type: "retry", task: id }, () => undefined),
    discard: (id, reason) => elsewhere(here.discard(id, reason), { type: "discard", task: id }, () => undefined),
  }
}
