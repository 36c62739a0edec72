/**
 * Where the new rows of a commit belong (`cluster-port.ts`, rule 1): followed from owner to owner within the commit, as far as it goes; the
 * database looks up the rest. Pure.
 */
import type { Conversation } from "../../domain/conversation.ts"
import type { Task } from "../../domain/task.ts"

/** The place of that conversation, else of that task, else the number itself. */
export interface PlaceSource {
  readonly at_conversation?: number
  readonly at_task?: number
  readonly at_self: number
}

interface Rows {
  readonly conversations: ReadonlyArray<Pick<Conversation, "id" | "owner">>
  readonly tasks: ReadonlyArray<Pick<Task, "id" | "conversation" | "owner">>
}

export interface Places {
  readonly ofConversation: (row: Pick<Conversation, "id" | "owner">) => PlaceSource
  readonly ofTask: (row: Pick<Task, "id" | "conversation" | "owner">) => PlaceSource
}

export const placesOf = ({ conversations, tasks }: Rows): Places => {
  const byConversation = new Map<number, Rows["conversations"][number]>(conversations.map((row) => [row.id, row]))
  const byTask = new Map<number, Rows["tasks"][number]>(tasks.map((row) => [row.id, row]))
  /** `left` ends circles. */
  const conversationFrom = (id: number, left: number): PlaceSource => {
    const row = byConversation.get(id)
    if (row === undefined) return { at_conversation: id, at_self: id }
    return row.owner === null || left === 0 ? { at_self: id } : taskFrom(row.owner, id, left - 1)
  }
  const taskFrom = (id: number, otherwise: number, left: number): PlaceSource => {
    const row = byTask.get(id)
    if (row === undefined || left === 0) return { at_task: id, at_self: otherwise }
    if (row.conversation !== null) return conversationFrom(row.conversation, left - 1)
    return row.owner === null ? { at_self: id } : taskFrom(row.owner, id, left - 1)
  }
  const most = conversations.length + tasks.length
  return {
    ofConversation: ({ id, owner }) => (owner === null ? { at_self: id } : taskFrom(owner, id, most)),
    ofTask: ({ conversation, id, owner }) => {
      if (conversation !== null) return conversationFrom(conversation, most)
      return owner === null ? { at_self: id } : taskFrom(owner, id, most)
    },
  }
}
