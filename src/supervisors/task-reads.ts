/**
 * Reads of the tasks of a node, as the contract names them. Who asks with the tag of what it knows waits for a change, so that asking again and
 * again shows the live graph: over whatever carries a call, and over restarts of the node.
 */
import { createHash } from "node:crypto"
import { Effect, Option, Schedule, Stream } from "effect"
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
/** Between two looks at the tasks of all nodes, in ms. */
const lookMs = 1_000

const listOf = (graph: TaskGraph, all: boolean): TaskList => {
  const tasks = [...graph.values()].filter((task) => all || isWorkflow(task)).sort((a, b) => a.id - b.id)
  return { tag: createHash("sha256").update(JSON.stringify(tasks)).digest("base64url").slice(0, 22), tasks }
}

/** `clustered`: other nodes have tasks as well. */
export const makeTaskReads = ({
  clustered,
  store,
  tasks,
}: {
  readonly store: StoreService
  readonly tasks: TasksService
  readonly clustered: boolean
}): Pick<SessionsService, "tasks" | "task"> => ({
  tasks: ({ all = false, unless }) => {
    const now = Effect.map(tasks.graphOfAll, (graph) => listOf(graph, all))
    const isNew = ({ tag }: TaskList): boolean => tag !== unless
    if (unless === null) return now
    // What a node that is alone sees is everything; else what happens on others comes with the next look.
    const here = Stream.mapAccum(tasks.graph, new Map() as TaskGraph, (graph, event) => {
      const next = applyGraphEvent(graph, event)
      return [next, next]
    }).pipe(Stream.map((graph) => listOf(graph, all)))
    const changed = clustered
      ? Stream.repeatEffectWithSchedule(now, Schedule.spaced(lookMs)).pipe(Stream.filter(isNew))
      : Stream.filter(here, isNew)
    return changed.pipe(
      Stream.runHead,
      Effect.timeoutOption(patience),
      Effect.map(Option.flatten),
      Effect.flatMap((found) => (Option.isSome(found) ? Effect.succeed(found.value) : now)),
    )
  },
  task: ({ taskId }) =>
    Effect.gen(function* () {
      const task = yield* orStorageFailure(store.task(taskId))
      if (task === null) return yield* new NotFound({ what: `task ${taskId}` })
      return { task, owned: yield* orStorageFailure(store.ownedTasks(taskId)) }
    }),
})
