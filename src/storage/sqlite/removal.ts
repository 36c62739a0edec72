/**
 * Removes conversations with all that belongs to them: entries, tasks, submissions, documents with their revisions, jobs, artifacts, names, and the
 * conversations that their tasks own (subagents), theirs included.
 */
import { Conflict } from "../errors.ts"
import type { Database } from "./connection.ts"

/** The function that removes conversations inside the writer's transaction; throws `Conflict`. */
export const prepareRemoval = (db: Database): ((ids: ReadonlyArray<number>) => void) => {
  const tasksOf =
    "SELECT id FROM tasks WHERE status IN ('pending', 'running', 'waiting', 'sleeping', 'completing', 'terminal') AND conversation = ?"
  const exists = db.prepare<[number]>("SELECT 1 FROM conversations WHERE id = ?")
  const owned = db.prepare<[number], number>(`SELECT id FROM conversations WHERE owner IN (${tasksOf})`).pluck()
  const forks = db.prepare<[number], number>("SELECT id FROM conversations WHERE parent_conversation = ?").pluck()
  const deletes = [
    "DELETE FROM document_revisions WHERE document IN (SELECT id FROM documents WHERE conversation = ?)",
    "DELETE FROM documents WHERE conversation = ?",
    "DELETE FROM jobs WHERE conversation = ?",
    "DELETE FROM artifacts WHERE conversation = ?",
    "DELETE FROM names WHERE conversation = ?",
    "DELETE FROM submissions WHERE conversation = ?",
    "DELETE FROM entries WHERE conversation = ?",
    `DELETE FROM tasks WHERE id IN (${tasksOf})`,
    "DELETE FROM conversations WHERE id = ?",
  ].map((sql) => db.prepare<[number]>(sql))

  return (ids) => {
    const doomed = new Set<number>()
    const visit = (id: number): void => {
      if (doomed.has(id)) return
      doomed.add(id)
      for (const child of owned.all(id)) visit(child)
    }
    for (const id of ids) {
      if (exists.get(id) === undefined) throw new Conflict({ what: `conversation ${id}`, detail: "it does not exist" })
      visit(id)
    }
    for (const id of doomed) {
      const fork = forks.all(id).find((child) => !doomed.has(child))
      if (fork !== undefined) {
        throw new Conflict({
          what: `conversation ${id}`,
          detail: `its fork ${fork} still needs it; remove that one first`,
        })
      }
    }
    for (const id of doomed) for (const statement of deletes) statement.run(id)
  }
}
