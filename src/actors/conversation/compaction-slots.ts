/**
 * The port to a limit on summaries: a compaction beside the work takes a slot while it asks a model; one that a run or a person waits for
 * takes none.
 */
import type { Effect } from "effect"
import type { ConversationId, TaskId } from "../../domain/ids.ts"

export interface CompactionSlots {
  /** Runs `work` in a slot; waits for one while all are taken. Interrupting gives the slot, or the place in the queue, back. */
  readonly use: <A, E>(
    of: { readonly conversation: ConversationId; readonly task: TaskId },
    work: Effect.Effect<A, E>,
  ) => Effect.Effect<A, E>
  /** Somebody waits for this compaction now: it goes ahead without a slot. */
  readonly hurry: (task: TaskId) => Effect.Effect<void>
}
