/**
 * How many summaries a node makes at once. A compaction takes a slot while it asks a model: those beside the work wait for one, those that
 * a run or a person waits for do not.
 */
import { Effect } from "effect"
import type { CompactionReason } from "../../domain/compaction-settings.ts"

export interface CompactionSlots {
  /** Runs `work` in a slot; waits for one while all are taken. Interrupting gives the slot back. */
  readonly use: <A, E>(reason: CompactionReason, work: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** Slots of one process. */
export const compactionSlots = (count: number): CompactionSlots => {
  const slots = Effect.unsafeMakeSemaphore(count)
  return { use: (reason, work) => (reason === "background" ? slots.withPermits(1)(work) : work) }
}
