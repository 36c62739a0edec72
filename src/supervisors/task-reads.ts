/**
 * Reads of the tasks of a node, as the contract names them. Who asks with the tag of what it knows waits for a change, so that asking again and
 * again shows the live graph: over whatever carries a call, and over restarts of the node.
 */
import { createHash } from "node:crypto"
import { Effect, Option, Stream } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { SessionsService } from "../actors/sessions.ts"
import type { TasksService } from "../actors/task/service.ts"
import { NotFound } from "../domain/failure.ts"
import { applyGraphEvent, type TaskGraph } from "../domain/task-graph.ts"
import { isWorkflow } from "../domain/task-rules.ts"
import type { TaskList } from "../domain/task-view.ts"
import type { StoreService } from "../storage/store.ts"

/** How long a call waits for a change. */
const patience = "25 seconds"

const listOf = (graph: TaskGraph, all: boolean): TaskList => {
  const tasks = [...graph.values()].filter((task) => all || isWorkflow(task)).sort((a, b) => a.id - b.id)
  return { tag: createHash("sha256").update(JSON.stringify(tasks)).digest("base64url").slice(0, 22), tasks }
}

export const makeTaskReads = ({
  store,
  tasks,
}: {
  readonly store: StoreService
  readonly tasks: TasksService
}): Pick<SessionsService, "tasks" | "task"> => ({
  tasks: ({ all = false, unless }) => {
    const now = Effect.map(tasks.graphNow, (graph) => listOf(graph, all))
    if (unless === null) return now
    const graphs = Stream.mapAccum(tasks.graph, new Map() as TaskGraph, (graph, event) => {
      const next = applyGraphEvent(graph, event)
      return [next, next]
    })
    return graphs.pipe(
      Stream.map((graph) => listOf(graph, all)),
      Stream.filter(({ tag }) => tag !== unless),
      Stream.runHead,
      Effect.timeoutOption(patience),
      Effect.map(Option.flatten),
      Effect.flatMap((changed) => (Option.isSome(changed) ? Effect.succeed(changed.value) : now)),
    )
  },
  task: ({ taskId }) =>
    Effect.gen(function* () {
      const task = yield* orStorageFailure(store.task(taskId))
      if (task === null) return yield* new NotFound({ what: `task ${taskId}` })
      return { task, owned: yield* orStorageFailure(store.ownedTasks(taskId)) }
    }),
})
