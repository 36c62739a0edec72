/**
 * Which waits can end: a task may not wait for itself, for what is not there, or for what waits for it. Pure.
 */
import type { TaskId } from "../../domain/ids.ts"
import type { TaskOutcome, WaitPolicy } from "../../domain/task.ts"
import type { Draft, TaskRow } from "./board.ts"

/** Null, or why `row` must not wait. `draft` has the children of the same step. */
export const waitFault = (
  draft: Draft,
  row: TaskRow,
  wait: { readonly on: ReadonlyArray<TaskId>; readonly policy: WaitPolicy },
  elsewhere: (id: TaskId) => "open" | TaskOutcome | null,
): string | null => {
  for (const id of wait.on) {
    const other = draft.get(id)
    if (other === undefined && elsewhere(id) === null) return `wait.on: expected ids of tasks, got ${id}, which is none`
    const own = other === undefined || other.owner === row.id
    if (wait.policy === "failFast" && !own) {
      return `wait.on: expected own children with failFast, got task ${id}, which task ${other?.owner ?? "nobody"} owns`
    }
    if (reaches(draft, id, row.id)) return `wait.on: expected tasks that do not wait for task ${row.id}, got ${id}`
  }
  return null
}

/** Whether the end of `from` needs the end of `target`: through waits, and because an owner ends after what it owns. */
const reaches = (draft: Draft, from: TaskId, target: TaskId): boolean => {
  const seen = new Set<TaskId>()
  const left = [from]
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    if (id === target) return true
    if (seen.has(id)) continue
    seen.add(id)
    const row = draft.get(id)
    if (row === undefined) continue
    if (row.waitingOn !== null) left.push(...row.waitingOn.on)
    for (const child of draft.children(id)) if (!child.background) left.push(child.id)
  }
  return false
}
