/**
 * The rows that every writer of this bench stores: one commit of two 1 KB entries, one task row and one 2 KB document.
 */
import type { ConversationId, DocumentId, EntryId, TaskId } from "../../src/domain/ids.ts"
import type { Commit } from "../../src/storage/store.ts"

export interface Ids {
  readonly conversation: ConversationId
  readonly entries: readonly [EntryId, EntryId]
  readonly task: TaskId
  readonly document: DocumentId
}

const kilobyte = "The quick brown fox jumps over the lazy dog. ".repeat(21).slice(0, 900)

/** A commit whose two entries are 1 KB each as stored, its document 2 KB. */
export const oneCommit = (ids: Ids, round: number): Commit => ({
  entries: ids.entries.map((id) => ({
    id,
    conversation: ids.conversation,
    kind: "pi.user",
    model: [{ role: "user" as const, content: [{ type: "text" as const, text: kilobyte }] }],
    data: { round },
    head: null,
    edits: [],
    task: ids.task,
    createdAt: 1_750_000_000_000 + round,
  })),
  tasks: [
    {
      id: ids.task,
      conversation: ids.conversation,
      kind: "pi.generation",
      version: 1,
      input: { submission: 1 },
      status: "running",
      checkpoint: { round },
      owner: null,
      background: false,
      abortRequested: false,
      crashes: 0,
      parked: null,
      node: "bench",
      fence: 1,
      leaseUntil: null,
      wakeAt: null,
      waitingOn: null,
      outcome: null,
      requestId: null,
      inDoubt: false,
      createdAt: 1_750_000_000_000,
      startedAt: 1_750_000_000_000,
      endedAt: null,
    },
  ],
  documents: [
    {
      id: ids.document,
      kind: "pi.live",
      scope: "conversation",
      conversation: ids.conversation,
      task: null,
      key: "",
      version: 1,
      history: "latest",
      fork: "initial",
      value: { round, text: kilobyte + kilobyte },
    },
  ],
})
