/**
 * Compactions that a process left: a summary that was there is placed, one that was being made is made anew, a retry keeps its time. One
 * that took its process along `restartLimit` times has failed.
 */
import { Schema } from "effect"
import { placeOf } from "../../../domain/compaction.ts"
import { CompactionCheckpoint, CompactionInput } from "../../../domain/compaction-task.ts"
import type { TaskId } from "../../../domain/ids.ts"
import { restartLimit, type Task, TaskKind } from "../../../domain/task.ts"
import { failCompaction, wakeNext } from "./compaction-end.ts"
import { showCompactions } from "./compaction-set.ts"
import type { Compaction, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"

const decodeInput = Schema.decodeUnknownOption(CompactionInput)
const decodeCheckpoint = Schema.decodeUnknownOption(CompactionCheckpoint)

/** Takes up the compactions among `tasks`; gives those that took their process along too often. */
export const recoverCompactions = (
  d: Draft,
  tasks: ReadonlyArray<Task>,
  take: (task: TaskRow) => TaskRow,
): ReadonlySet<TaskId> => {
  const fatal = new Set<TaskId>()
  const open = tasks.filter((task) => task.kind === TaskKind.compaction)
  for (const stored of open) {
    const task = take(stored)
    const input = decodeInput(stored.input)
    const checkpoint = decodeCheckpoint(stored.checkpoint)
    if (input._tag === "None" || checkpoint._tag === "None") {
      d.endTask(task, { status: "faulted", error: "the task cannot be read" })
      continue
    }
    const ready = checkpoint.value.phase === "place" ? checkpoint.value.summary : null
    const { attempt } = checkpoint.value
    const sleeps = stored.status === "sleeping" && stored.wakeAt !== null
    const retry = sleeps ? { attempt, at: stored.wakeAt, reason: "resumed after a restart" } : null
    const compaction: Compaction = { task, input: input.value, attempt, retry, ready, cancelling: false, replies: [] }
    if (stored.abortRequested) d.endTask(task, { status: "aborted", reason: "cancelled" })
    else if (ready === null && placeOf(d.data.context, input.value.plan.cut) === null) {
      d.endTask(task, { status: "completed", result: { status: "stale" } })
    } else if (ready === null && task.crashes >= restartLimit) {
      fatal.add(task.id)
      failCompaction(d, compaction, `the process died ${task.crashes} times while it was made`, null)
    } else {
      const running = sleeps ? stored : d.putTask({ ...task, status: "running" })
      const taken = { ...compaction, task: running }
      d.patch({ compactions: [...d.data.compactions, taken] })
      if (ready === null && !sleeps) d.act({ type: "compact", compaction: taken })
    }
  }
  if (open.length > 0) showCompactions(d)
  wakeNext(d)
  return fatal
}
