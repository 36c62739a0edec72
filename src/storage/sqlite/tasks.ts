/**
 * Reads of tasks: by id, by what is open, and by what binds them: owner, request, doubt.
 */
import { decodeConversation, decodeTask } from "../decode.ts"
import type { Reading } from "../reading.ts"
import type { StoreReads } from "../store.ts"
import { conversationColumns, openStatuses, taskColumns } from "./columns.ts"

export const taskStatements = {
  task: `SELECT ${taskColumns} FROM tasks WHERE id = ?`,
  openTasks: `SELECT ${taskColumns} FROM tasks WHERE status IN ${openStatuses} ORDER BY id`,
  openTasksOf: `SELECT ${taskColumns} FROM tasks WHERE status IN ${openStatuses} AND conversation = ? ORDER BY id`,
  ownedTasks: `SELECT ${taskColumns} FROM tasks WHERE owner = ? ORDER BY id`,
  ownedConversations: `SELECT ${conversationColumns} FROM conversations c WHERE c.owner = ? ORDER BY c.id`,
  taskByRequest: `SELECT ${taskColumns} FROM tasks WHERE request_id = ?`,
  tasksInDoubt: `SELECT ${taskColumns} FROM tasks INDEXED BY tasks_in_doubt WHERE in_doubt = 1 ORDER BY id DESC LIMIT ?`,
  tasksInDoubtOf: `SELECT ${taskColumns} FROM tasks INDEXED BY tasks_in_doubt WHERE in_doubt = 1 AND conversation = ? ORDER BY id DESC LIMIT ?`,
} as const

type TaskReads = Pick<
  StoreReads,
  "task" | "openTasks" | "ownedTasks" | "ownedConversations" | "taskByRequest" | "tasksInDoubt"
>

export const taskReads = ({ many, one }: Reading): TaskReads => ({
  task: (id) => one(taskStatements.task, [id], decodeTask),
  openTasks: (conversation) =>
    conversation === undefined
      ? many(taskStatements.openTasks, [], decodeTask)
      : many(taskStatements.openTasksOf, [conversation], decodeTask),
  ownedTasks: (owner) => many(taskStatements.ownedTasks, [owner], decodeTask),
  ownedConversations: (owner) => many(taskStatements.ownedConversations, [owner], decodeConversation),
  taskByRequest: (requestId) => one(taskStatements.taskByRequest, [requestId], decodeTask),
  tasksInDoubt: ({ conversation, limit }) => {
    const most = Math.max(0, limit)
    return conversation === undefined
      ? many(taskStatements.tasksInDoubt, [most], decodeTask)
      : many(taskStatements.tasksInDoubtOf, [conversation, most], decodeTask)
  },
})
