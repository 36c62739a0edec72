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
  "compactionDeclined",
  "toldEnded",
  "yielded",
  "afterRunEnded",
  "inputRead",
])

const compactionWords: ReadonlySet<MachineEvent["type"]> = new Set([
  "compacted",
  "compactionFailed",
  "compactionDeclined",
])

/** Whether `event`, one of {@link lastWords}, is the last of `job`. */
export const isLastWord = (event: MachineEvent, job: Job): boolean => {
  switch (job.type) {
    case "tool":
      return event.type === "toolEnded" && event.task === job.task
    case "reconcile":
      return event.type === "reconciled" && event.task === job.task
    case "compaction":
      return compactionWords.has(event.type) && "task" in event && event.task === job.task
    case "afterRun":
      return event.type === "afterRunEnded" && event.task === job.task
    case "input":
      return event.type === "inputRead" && event.submission === job.submission
    default:
      return "token" in event && event.token === job.token
  }
}

/** Jobs that do not belong to the run in progress: a cancel leaves them, or stops them one by one. */
const beside: ReadonlySet<Job["type"]> = new Set(["compaction", "afterRun", "input"])

/** The jobs that an action stops. */
export const meantBy = <R extends { readonly job: Job }>(
  action: Extract<Action, { readonly type: "stopJobs" | "stopCompaction" }>,
  running: ReadonlyMap<number, R>,
): ReadonlyArray<R> =>
  [...running.values()].filter(({ job }) =>
    action.type === "stopJobs" ? !beside.has(job.type) : job.type === "compaction" && job.task === action.task,
  )

/** The name of a job's actor, unique among those of its conversation. */
export const labelOf = (job: Job): string =>
  `${job.type}-${"task" in job ? job.task : "token" in job ? job.token : job.submission}`
