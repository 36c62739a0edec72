/**
 * `super-pi tasks retry|abort|discard`: these write, so they go through the owner of the database, or own it for a moment.
 */
import { Effect } from "effect"
import type { TaskChange, TaskChanged } from "../domain/task-change.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode, usageFailure } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { taskIdOf } from "./task-show.ts"

const changeOf = (invocation: Invocation): TaskChange => {
  const task = taskIdOf(invocation)
  const command = invocation.path.at(-1)
  switch (command) {
    case "retry":
    case "discard":
      return { type: command, task }
    case "abort":
      return { type: "abort", task, background: invocation.get(option.all) === true }
    default:
      throw usageFailure(`expected retry, abort or discard, got "${command}"`)
  }
}

const said = ({ abort, status, task }: TaskChanged): string =>
  `task ${task} is ${status === "terminal" ? "ended" : status}${abort && status !== "terminal" ? ", being aborted" : ""}`

export const main = async (invocation: Invocation): Promise<number> => {
  const change = changeOf(invocation)
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const changed = yield* sessions.changeTask({ change })
      process.stdout.write(`${invocation.get(option.json) === true ? JSON.stringify(changed) : said(changed)}\n`)
      return ExitCode.ok
    }),
  )
}
