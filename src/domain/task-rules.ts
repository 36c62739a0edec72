/**
 * Small rules of tasks that several places share: which are open, which a parent waits for, when two checkpoints are the same. Pure.
 */
import { isJsonObject, type Json } from "./json.ts"
import type { Task, TaskOutcome } from "./task.ts"
import { TaskKind } from "./task.ts"

/** Kinds whose rows the conversation machine owns: nobody else writes them. */
const conversationKinds: ReadonlySet<string> = new Set<string>([
  TaskKind.generation,
  TaskKind.tool,
  TaskKind.compaction,
  TaskKind.question,
  TaskKind.subagent,
  TaskKind.afterRun,
])

/** Whether the task engine runs the task, not the conversation machine. */
export const isWorkflow = (task: Pick<Task, "kind">): boolean => !conversationKinds.has(task.kind)

export const isOpen = (task: Pick<Task, "status">): boolean => task.status !== "terminal"

/** Whether an end makes `failFast` abort the others: everything but success. */
export const isFailure = (outcome: TaskOutcome): boolean => outcome.status !== "completed"

/** Whether two JSON values are the same; the order of the fields of an object does not matter. */
export const sameJson = (a: Json, b: Json): boolean => {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => sameJson(item, b[at]))
  if (!isJsonObject(a) || !isJsonObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameJson(a[name] ?? null, b[name] ?? null))
  )
}

/** One line for people: `completed`, `failed: …`, `aborted: …`. */
export const describeOutcome = (outcome: TaskOutcome): string => {
  switch (outcome.status) {
    case "completed":
      return "completed"
    case "failed":
      return `failed: ${typeof outcome.error === "string" ? outcome.error : JSON.stringify(outcome.error)}`
    case "faulted":
      return `faulted: ${outcome.error}`
    default:
      return `${outcome.status}: ${outcome.reason}`
  }
}
