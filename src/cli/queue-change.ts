/**
 * `super-pi queue pause|resume|retry|cancel|prune`: these write, so they go through the owner of the database, or own it for a moment.
 */
import { Effect } from "effect"
import type { QueueChange, QueueChanged } from "../domain/queue.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode, usageFailure } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { jobIdOf } from "./queue-read.ts"
import { runCommand } from "./runtime.ts"

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
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const changed = yield* sessions.changeQueue({ change })
      process.stdout.write(`${invocation.get(option.json) === true ? JSON.stringify(changed) : said(changed)}\n`)
      return ExitCode.ok
    }),
  )
}
