/**
 * What nodes that share a database tell each other, so that nobody has to wait for the next look: hints, which may be lost. Pure.
 */
import { JobId, TaskId } from "./ids.ts"

export type Signal =
  /** Something may be due in a queue. */
  | { readonly type: "jobs"; readonly queue: string }
  /** A job was changed by hand. */
  | { readonly type: "job"; readonly queue: string; readonly job: JobId }
  /** A queue was paused or resumed. */
  | { readonly type: "pause"; readonly queue: string }
  /** An application's task has ended, or was parked. */
  | { readonly type: "task"; readonly task: TaskId }

/** At most this many characters: names of queues have a hundred at most. */
const longest = 200

/** One line: `jobs NAME`, `job ID NAME`, `pause NAME`, `task ID`. */
export const encodeSignal = (signal: Signal): string => {
  switch (signal.type) {
    case "jobs":
    case "pause":
      return `${signal.type} ${signal.queue}`
    case "job":
      return `job ${signal.job} ${signal.queue}`
    case "task":
      return `task ${signal.task}`
  }
}

const line = /^(?:(jobs|pause) (\S+)|job ([1-9]\d{0,14}) (\S+)|task ([1-9]\d{0,14}))$/

/** Null for what is no signal, for example one of a newer version. */
export const decodeSignal = (text: string): Signal | null => {
  if (text.length > longest) return null
  const [, type, queue, job, jobQueue, task] = line.exec(text) ?? []
  if (type !== undefined && queue !== undefined) return { type: type === "jobs" ? "jobs" : "pause", queue }
  if (job !== undefined && jobQueue !== undefined) return { type: "job", job: JobId.make(Number(job)), queue: jobQueue }
  return task === undefined ? null : { type: "task", task: TaskId.make(Number(task)) }
}
