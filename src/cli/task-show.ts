/**
 * `super-pi tasks show ID`: one task, ended or not, with its checkpoint and what it owns.
 */
import { Effect } from "effect"
import { TaskId } from "../domain/ids.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode, usageFailure } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { taskLines, taskWords } from "./tasks.ts"

/** The ID among the words of a command. */
export const taskIdOf = (invocation: Invocation): TaskId => {
  const word = invocation.words[0] ?? ""
  const id = /^\d{1,16}$/.test(word) ? Number(word) : 0
  if (id < 1 || !Number.isSafeInteger(id)) {
    throw usageFailure(`ID: expected a task number, got "${word}"; see: super-pi tasks list`)
  }
  return TaskId.make(id)
}

export const main = (invocation: Invocation): Promise<number> => {
  const id = taskIdOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const store = yield* openReader(pathsOf(invocation))
      const task = store === null ? null : yield* store.task(id)
      if (store === null || task === null) {
        return yield* Effect.fail(new CommandFailure(`task ${id} was not found; see: super-pi tasks list`))
      }
      const owned = yield* store.ownedTasks(id)
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify({ task, owned })}\n`)
        return ExitCode.ok
      }
      const lines = [
        `task ${task.id}: ${oneLine(task.kind)} version ${task.version}`,
        `  ${oneLine(taskWords(task))}`,
        ...(task.owner === null
          ? []
          : [`  owned by task ${task.owner}${task.background ? ", in the background" : ""}`]),
        ...(task.conversation === null ? [] : [`  conversation ${task.conversation}`]),
        ...(task.requestId === null ? [] : [`  request ${oneLine(task.requestId)}`]),
        `  input ${oneLine(JSON.stringify(task.input))}`,
        `  checkpoint ${oneLine(JSON.stringify(task.checkpoint))}`,
        ...(owned.length === 0 ? [] : ["  owns", ...taskLines(owned, Date.now()).map((line) => `    ${line}`)]),
      ]
      for (const line of lines) process.stdout.write(`${line}\n`)
      return ExitCode.ok
    }),
  )
}
