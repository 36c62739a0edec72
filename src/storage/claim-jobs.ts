/**
 * Claiming jobs, for engines whose commit takes claims: the commit marks the rows, its number finds them again.
 */
import { Effect } from "effect"
import type { Seq } from "../domain/ids.ts"
import type { Job } from "../domain/job.ts"
import type { CommitError, ReadError } from "./errors.ts"
import type { JobClaim, JobReads } from "./job-port.ts"
import type { Commit } from "./store.ts"

/** `StoreService.claimJobs` from a commit and the reads. What somebody took away right after the claim is not given out. */
export const claimJobsBy =
  (store: {
    readonly commit: (commit: Commit) => Effect.Effect<Seq, CommitError>
    readonly executingJobs: JobReads["executingJobs"]
    readonly dueAt: JobReads["dueAt"]
  }) =>
  (claim: JobClaim): Effect.Effect<ReadonlyArray<Job>, CommitError | ReadError> =>
    Effect.gen(function* () {
      const due = yield* store.dueAt(claim.queue)
      if (due === null || due > claim.now || claim.limit <= 0) return []
      const seq = yield* store.commit({ jobClaims: [claim] })
      const executing = yield* store.executingJobs(claim.queue)
      return executing
        .filter((job) => job.seq === seq && job.node === claim.node)
        .sort((a, b) => a.runAt - b.runAt || a.id - b.id)
    })
