/**
 * The decision core of the task engine: from the board and an event to changed rows and actions. Pure; the shell commits the rows, adopts
 * them, and only then performs the actions. Rules (docs/tasks.md):
 * T1 A task is terminal only after the work that it owns is; what runs in the background does not count.
 * T2 An abort goes down at once and is finished bottom-up: a task's abort handler starts when what it owned has ended.
 * T3 A failed, faulted, aborted or orphaned outcome aborts the owned work first.
 * T4 An unclean end of a run counts; at `restartLimit` the task is parked. A new committed checkpoint starts the count over.
 * T5 A step of a task whose abort was accepted changes nothing.
 * T6 A task whose code is missing, or older than what is stored, stays as it is.
 */
import type { Board } from "./board.ts"
import type { TaskEnv, TaskEvent } from "./events.ts"
import { type Decision, Tree } from "./tree.ts"

export const decide = (board: Board, event: TaskEvent, env: TaskEnv): Decision => {
  const tree = new Tree(board, env)
  switch (event.type) {
    case "recover":
      for (const id of board.rows.keys()) tree.resume(id)
      break
    case "resume":
      for (const id of event.ids) tree.resume(id)
      break
    case "start":
      for (const row of event.rows) tree.launch(tree.draft.put(row))
      break
    case "step":
      tree.step(event)
      break
    case "ended":
      tree.ended(event.id, event.end)
      break
    case "abort":
      tree.abortOrRetry(event.id, event.background, event.reason)
      break
    case "retry":
      tree.retry(event.id)
      break
    case "discard":
      tree.discard(event.id, event.reason)
      break
    case "registered":
      for (const row of board.rows.values()) if (row.kind === event.kind) tree.resume(row.id)
      break
    case "wake":
      for (const id of event.ids) tree.wake(id)
      break
    case "endedElsewhere":
      for (const row of tree.draft.waitersOf(event.id)) tree.checkWait(row.id, event.outcome)
      break
    case "conversationIdle":
      tree.settle(event.owner)
      break
  }
  return tree.done()
}
