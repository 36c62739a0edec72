/**
 * Reads of tasks by what binds them: owner, request, doubt.
 */
import type { Effect } from "effect"
import type { Conversation } from "../../domain/conversation.ts"
import type { Task } from "../../domain/task.ts"
import { decodeConversation, decodeTask, type SqlRow } from "../decode.ts"
import type { ReadError } from "../errors.ts"
import type { StoreReads } from "../store.ts"
import { conversationColumns, taskColumns } from "./columns.ts"
import type { Database } from "./connection.ts"

export const taskReadStatements = {
  ownedTasks: `SELECT ${taskColumns} FROM tasks WHERE owner = ? ORDER BY id`,
  ownedConversations: `SELECT ${conversationColumns} FROM conversations c WHERE c.owner = ? ORDER BY c.id`,
  taskByRequest: `SELECT ${taskColumns} FROM tasks WHERE request_id = ?`,
  tasksInDoubt: `SELECT ${taskColumns} FROM tasks INDEXED BY tasks_in_doubt WHERE in_doubt = 1 ORDER BY id DESC LIMIT ?`,
  tasksInDoubtOf: `SELECT ${taskColumns} FROM tasks INDEXED BY tasks_in_doubt WHERE in_doubt = 1 AND conversation = ? ORDER BY id DESC LIMIT ?`,
} as const

type TaskReads = Pick<StoreReads, "ownedTasks" | "ownedConversations" | "taskByRequest" | "tasksInDoubt">

export const prepareTaskReads = (
  db: Database,
  location: string,
  read: <A>(body: () => A) => Effect.Effect<A, ReadError>,
): TaskReads => {
  const statement = (name: keyof typeof taskReadStatements) =>
    db.prepare<Array<number | string>, SqlRow>(taskReadStatements[name])
  const ownedTasks = statement("ownedTasks")
  const ownedConversations = statement("ownedConversations")
  const byRequest = statement("taskByRequest")
  const inDoubt = statement("tasksInDoubt")
  const inDoubtOf = statement("tasksInDoubtOf")
  const tasks = (rows: ReadonlyArray<SqlRow>): ReadonlyArray<Task> => rows.map((row) => decodeTask(location, row))
  return {
    ownedTasks: (owner) => read(() => tasks(ownedTasks.all(owner))),
    ownedConversations: (owner) =>
      read(
        (): ReadonlyArray<Conversation> =>
          ownedConversations.all(owner).map((row) => decodeConversation(location, row)),
      ),
    taskByRequest: (requestId) =>
      read(() => {
        const row = byRequest.get(requestId)
        return row === undefined ? null : decodeTask(location, row)
      }),
    tasksInDoubt: ({ conversation, limit }) =>
      read(() => {
        const most = Math.max(0, limit)
        return tasks(conversation === undefined ? inDoubt.all(most) : inDoubtOf.all(conversation, most))
      }),
  }
}
