/**
 * Which event of a job is its last: it needs no `Down` to end. Everything else ends it in its `Down`.
 */
import type { Action, Job, MachineEvent } from "./machine/data.ts"

export const lastWords: ReadonlySet<MachineEvent["type"]> = new Set([
  "prepared",
  "modelFailed",
  "overBudget",
  "responded",
  "callsPrepared",
  "toolEnded",
  "reconciled",
  "compacted",
  "compactionFailed",
])

/** Whether `event`, one of {@link lastWords}, is the last of `job`. */
export const isLastWord = (event: MachineEvent, job: Job): boolean => {
  switch (job.type) {
    case "tool":
      return event.type === "toolEnded" && event.task === job.task
    case "reconcile":
      return event.type === "reconciled" && event.task === job.task
    case "compaction":
      return (event.type === "compacted" || event.type === "compactionFailed") && event.task === job.task
    default:
      return "token" in event && event.token === job.token
  }
}

/** The jobs that an action stops: a cancel leaves compactions to be stopped one by one. */
export const meantBy = <R extends { readonly job: Job }>(
  action: Extract<Action, { readonly type: "stopJobs" | "stopCompaction" }>,
  running: ReadonlyMap<number, R>,
): ReadonlyArray<R> =>
  [...running.values()].filter(({ job }) =>
    action.type === "stopJobs" ? job.type !== "compaction" : job.type === "compaction" && job.task === action.task,
  )

/** The name of a job's actor, unique among those of its conversation. */
export const labelOf = (job: Job): string => `${job.type}-${"task" in job ? job.task : job.token}`
