/**
 * The compactions that are not over, as the machine keeps, shows and closes them.
 */
import type { CompactionCheckpoint, CompactionResult, CompactionStatus } from "../../../domain/compaction-task.ts"
import { DocumentKind } from "../../../domain/document.ts"
import type { EntryId, TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import { liveCompactions } from "./compaction-view.ts"
import type { Compaction } from "./data.ts"
import type { Draft } from "./draft.ts"
import { emptyLive, flushLive } from "./run.ts"

export const checkpointOf = (checkpoint: CompactionCheckpoint): Json => ({ ...checkpoint })

/** Changes one compaction. */
export const setCompaction = (d: Draft, changed: Compaction): Compaction => {
  d.patch({ compactions: d.data.compactions.map((one) => (one.task.id === changed.task.id ? changed : one)) })
  return changed
}

/** Writes what `pi.live` says of compactions. */
export const showCompactions = (d: Draft): void => {
  if (d.data.run !== null) flushLive(d)
  else d.putDocument(DocumentKind.live, { ...emptyLive, ...liveCompactions(d.data) })
}

/** Where a compaction may be placed: no call is in flight, and no response is being written to what the context was. */
export const atBoundary = (d: Draft): boolean => {
  switch (d.data.state) {
    case "idle":
    case "settling_run":
    case "preparing_request":
    case "sleeping_backoff":
    case "compacting":
    case "awaiting_children":
      return true
    default:
      return false
  }
}

/** Whether the run waits for this task. */
export const awaited = (d: Draft, task: TaskId): boolean =>
  d.data.state === "compacting" && d.data.run?.generation.waitingOn?.on.includes(task) === true

export const resultOf = (
  { input, task }: Compaction,
  status: CompactionStatus,
  entry: EntryId | null,
  after: number | null,
): CompactionResult => ({
  status,
  task_id: task.id,
  entry_id: entry,
  tokens_before: input.plan.tokensBefore,
  tokens_after: after,
})

/** Takes a compaction out, tells its watchers; its task must be ended by the caller. */
export const close = (d: Draft, compaction: Compaction, result: CompactionResult, error: string | null): void => {
  d.patch({ compactions: d.data.compactions.filter((one) => one.task.id !== compaction.task.id) })
  const { method } = compaction.input.plan
  const { reason } = compaction.input
  d.publish({ type: "compaction_completed", ...result, task_id: compaction.task.id, reason, method, error })
  showCompactions(d)
}
