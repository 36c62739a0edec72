/**
 * Work that is due and that nobody is at: what a node is judged by. Pure.
 */
import type { ConversationId } from "../domain/ids.ts"
import type { QueueView } from "../domain/queue.ts"
import type { Task } from "../domain/task.ts"

/** One thing that waits. */
export interface Unserved {
  /** Since when it could have been begun, in milliseconds since the epoch. */
  readonly since: number
  /** The conversation that it is of; null for a workflow and for a job. */
  readonly conversation: ConversationId | null
}

/**
 * What waits at `now`: open tasks of conversations that are not in memory, workflows that wait for their run, and the earliest job of each queue
 * that has workers and is neither paused nor at work. What is parked waits for a person, what sleeps or waits for other tasks waits for those.
 */
export const unserved = (
  tasks: ReadonlyArray<Task>,
  inMemory: ReadonlySet<number>,
  queues: ReadonlyArray<QueueView>,
  now: number,
): ReadonlyArray<Unserved> => [
  ...tasks
    .filter((task) => task.parked === null && (task.wakeAt ?? now) <= now && waits(task, inMemory))
    .map(({ conversation, createdAt, wakeAt }) => ({ conversation, since: Math.max(createdAt, wakeAt ?? 0) })),
  ...queues
    .filter(({ counts, paused, workers }) => !paused && workers?.length !== 0 && (counts.executing ?? 0) === 0)
    .flatMap(({ due_at }) => (due_at === null || due_at > now ? [] : [{ conversation: null, since: due_at }])),
]

const waits = ({ conversation, status }: Task, inMemory: ReadonlySet<number>): boolean =>
  conversation === null ? status === "pending" : status !== "waiting" && !inMemory.has(conversation)

/** How long the oldest has waited at `now`, in ms; null where nothing waits. */
export const oldestMs = (waiting: ReadonlyArray<Unserved>, now: number): number | null =>
  waiting.length === 0 ? null : Math.max(0, now - Math.min(...waiting.map(({ since }) => since)))
