/**
 * `super-pi queue pause|resume|retry|cancel|prune`: these write, so they go through the owner of the database, or own it for a moment.
 */
import type { QueueChange, QueueChanged } from "../domain/queue.ts"
import type { Invocation } from "./arguments.ts"
import { runChange } from "./change.ts"
import { usageFailure } from "./exit.ts"
import { jobIdOf } from "./queue-read.ts"

const changeOf = (invocation: Invocation): QueueChange => {
  const command = invocation.path.at(-1)
  switch (command) {
    case "pause":
    case "resume":
      return { type: command, queue: invocation.words[0] ?? "" }
    case "retry":
      return { type: "retry", job: jobIdOf(invocation) }
    case "cancel":
      return { type: "cancel", job: jobIdOf(invocation), reason: null }
    case "prune":
      return { type: "prune", before: null }
    default:
      throw usageFailure(`expected pause, resume, retry, cancel or prune, got "${command}"`)
  }
}

const said = ({ job, pruned, queue }: QueueChanged): string => {
  if (queue !== null)
    return `${queue.queue} is ${queue.paused ? "paused: running jobs end, no other starts" : "resumed"}`
  if (job !== null) return `job ${job.id} is ${job.state}`
  return `${pruned ?? 0} ended ${pruned === 1 ? "job" : "jobs"} deleted`
}

export const main = async (invocation: Invocation): Promise<number> => {
  const change = changeOf(invocation)
  return runChange(invocation, (sessions) => sessions.changeQueue({ change }), said)
}
