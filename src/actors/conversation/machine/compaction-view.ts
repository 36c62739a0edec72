/**
 * Compactions as `pi.live` and snapshots show them.
 */
import type { LiveDocument } from "../../../domain/document.ts"
import type { Data } from "./data.ts"

/** The part of `pi.live` that is about compactions. */
export const liveCompactions = (data: Data): Pick<LiveDocument, "compactions" | "compactionFailure"> => ({
  compactions: data.compactions.map(({ attempt, input, retry, task }) => ({
    task: task.id,
    reason: input.reason,
    attempt,
    retry,
  })),
  compactionFailure: data.compactionFailure,
})
