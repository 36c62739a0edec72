/**
 * `super-pi tasks retry|abort|discard`: these write, so they go through the owner of the database, or own it for a moment.
 */
import type { TaskChange, TaskChanged } from "../domain/task-change.ts"
import type { Invocation } from "./arguments.ts"
import { runChange } from "./change.ts"
import { usageFailure } from "./exit.ts"
import * as option from "./options.ts"
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
  return runChange(invocation, (sessions) => sessions.changeTask({ change }), said)
}
