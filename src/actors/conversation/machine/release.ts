/**
 * A clean stop: open tasks are left without a node, so that their next start counts no crash.
 */
import type { Commit } from "../../../storage/store.ts"
import { releaseAfterRuns } from "./after-run.ts"
import { releaseCompactions } from "./compaction-end.ts"
import type { Draft } from "./draft.ts"
import { flushLive } from "./run.ts"

/** The commit of a clean stop, or null where nothing is open. */
export const release = (d: Draft): Commit | null => {
  const { run } = d.data
  if (run !== null) {
    if (run.flushDue) flushLive(d)
    d.putTask({ ...d.run.generation, node: null })
    for (const { task } of run.children) if (task.status === "running") d.putTask({ ...task, node: null })
    for (const slot of run.calls) if (slot.status !== "done") d.putTask({ ...slot.task, node: null })
  }
  releaseCompactions(d)
  releaseAfterRuns(d)
  const decision = d.done()
  return decision.type === "go" ? decision.commit : null
}
