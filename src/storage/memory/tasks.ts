/**
 * Tasks on plain records: by owner, by request, in doubt. Pure.
 */
import type { Conversation } from "../../domain/conversation.ts"
import type { Task } from "../../domain/task.ts"

type Tasks = ReadonlyMap<number, Task>

const byId = <Row extends { readonly id: number }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  rows.toSorted((a, b) => a.id - b.id)

export const ownedTasks = (tasks: Tasks, owner: number): ReadonlyArray<Task> =>
  byId([...tasks.values()].filter((task) => task.owner === owner))

export const ownedConversations = (
  conversations: ReadonlyMap<number, Conversation>,
  owner: number,
): ReadonlyArray<Conversation> => byId([...conversations.values()].filter((row) => row.owner === owner))

export const taskByRequest = (tasks: Tasks, requestId: string): Task | null =>
  [...tasks.values()].find((task) => task.requestId === requestId) ?? null

export const tasksInDoubt = (
  tasks: Tasks,
  options: { readonly conversation?: number; readonly limit: number },
): ReadonlyArray<Task> =>
  byId(
    [...tasks.values()].filter(
      (task) => task.inDoubt && (options.conversation === undefined || task.conversation === options.conversation),
    ),
  )
    .toReversed()
    .slice(0, Math.max(0, options.limit))
