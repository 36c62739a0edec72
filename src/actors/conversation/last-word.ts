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

type Stop = Extract<Action, { readonly type: "stopJobs" | "stopCalls" | "stopCompaction" }>

const isMeant = (action: Stop, job: Job): boolean => {
  switch (action.type) {
    case "stopJobs":
      return !beside.has(job.type) && !(job.type === "tool" && action.spare.includes(job.task))
    case "stopCalls":
      return job.type === "tool" && action.tasks.includes(job.task)
    case "stopCompaction":
      return job.type === "compaction" && job.task === action.task
  }
}

/** The jobs that an action stops. */
export const meantBy = <R extends { readonly job: Job }>(
  action: Stop,
  running: ReadonlyMap<number, R>,
): ReadonlyArray<R> => [...running.values()].filter(({ job }) => isMeant(action, job))

/** The name of a job's actor, unique among those of its conversation. */
export const labelOf = (job: Job): string =>
  `${job.type}-${"task" in job ? job.task : "token" in job ? job.token : job.submission}`
