/**
 * `super-pi tasks list`: the tasks that have not ended, as a tree. Reads the database, also while another process owns it.
 */
import { Effect } from "effect"
import type { Task } from "../domain/task.ts"
import { describeOutcome, isWorkflow } from "../domain/task-rules.ts"
import { ago } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import { truncate } from "../protocols/terminal/width.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

/** What a task is at, in a few words. Pure. */
export const taskWords = (task: Task): string => {
  if (task.status === "terminal") return task.outcome === null ? "ended" : describeOutcome(task.outcome)
  if (task.parked !== null) return `parked: ${task.parked}`
  const abort = task.abortRequested ? ", being aborted" : ""
  if (task.status === "waiting") return `waiting for ${task.waitingOn?.on.join(", ") || "nothing"}${abort}`
  if (task.status === "sleeping") return `sleeping until ${new Date(task.wakeAt ?? 0).toISOString()}${abort}`
  if (task.status === "completing") return `completing as ${task.outcome?.status ?? "?"}${abort}`
  const crashes = task.crashes === 0 ? "" : `, after ${task.crashes} unclean ${task.crashes === 1 ? "end" : "ends"}`
  return `${task.status}${abort}${crashes}`
}

/** One line for each task, below its owner. Pure. */
export const taskLines = (rows: ReadonlyArray<Task>, now: number): ReadonlyArray<string> => {
  const shown = new Set(rows.map(({ id }) => id))
  const line = (task: Task, depth: number): ReadonlyArray<string> => {
    const tags = [
      ...(task.background ? ["background"] : []),
      ...(task.conversation === null ? [] : [`conversation ${task.conversation}`]),
    ]
    const words = [String(task.id), task.kind, taskWords(task), ago(task.createdAt, now), ...tags]
    return [
      `${"  ".repeat(depth)}${words.map(oneLine).join("  ")}`,
      ...rows.filter(({ owner }) => owner === task.id).flatMap((child) => line(child, depth + 1)),
    ]
  }
  return rows.filter(({ owner }) => owner === null || !shown.has(owner)).flatMap((task) => line(task, 0))
}

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const store = yield* openReader(pathsOf(invocation))
      const open = store === null ? [] : yield* store.openTasks()
      const rows = invocation.get(option.all) === true ? open : open.filter(isWorkflow)
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify(rows)}\n`)
        return ExitCode.ok
      }
      if (rows.length === 0) {
        process.stdout.write("no task is open\n")
        return ExitCode.ok
      }
      const traits = traitsOf(process.stdout, process.env)
      const columns = traits.cursor ? (process.stdout.columns ?? 80) : null
      const paint = painter(traits.color)
      for (const line of taskLines(rows, Date.now())) {
        const cut = columns === null ? line : truncate(line, columns - 1)
        process.stdout.write(`${line.includes("  parked: ") ? paint("warning", cut) : cut}\n`)
      }
      return ExitCode.ok
    }),
  )
