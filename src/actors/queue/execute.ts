/**
 * One attempt of a job, in an actor of its own: runs the worker, then commits how it ended, with the worker's rows in the same commit.
 */
import { Cause, Clock, Effect, Exit, Option, Random } from "effect"
import { ServiceFailure } from "../../domain/failure.ts"
import type { Job } from "../../domain/job.ts"
import { isMoved } from "../../domain/moved.ts"
import { traced } from "../../domain/traced.ts"
import type { CommitError } from "../../storage/errors.ts"
import type { StoreService } from "../../storage/store.ts"
import { type Behavior, behavior, describeCause } from "../kernel/index.ts"
import { ended, type Outcome } from "./decide.ts"
import { backoffMs } from "./settings.ts"
import { idempotencyKeyOf, type JobCommit, type QueueWorker } from "./worker.ts"

/** First wait before a commit that storage refused is tried again, doubled up to the second figure, in ms. */
const commitRetryMs = [100, 2_000] as const

/** Before a job whose conversation moved to another node is looked at again, in ms: by then that node has it. */
const movedMs = 1_000

/** Whether the worker met a conversation that another node holds. */
const hasMoved = (cause: Cause.Cause<unknown>): boolean => {
  const failure = Option.getOrNull(Cause.failureOption(cause))
  return failure instanceof ServiceFailure && isMoved(failure)
}

/** What the worker makes of the job. Never fails; an interruption passes. */
const outcomeOf = (job: Job, worker: QueueWorker): Effect.Effect<Outcome> => {
  const run = Effect.suspend(() => worker.run({ job, idempotencyKey: idempotencyKeyOf(job) }))
  const { timeoutMs } = worker
  const limited =
    timeoutMs === undefined
      ? run
      : Effect.timeoutFail(run, {
          duration: timeoutMs,
          onTimeout: () => new Error(`expected the attempt to end within ${timeoutMs} ms`),
        })
  return Effect.matchCauseEffect(limited, {
    onFailure: (cause): Effect.Effect<Outcome> =>
      Cause.isInterruptedOnly(cause)
        ? Effect.interrupt
        : Effect.succeed(
            hasMoved(cause) ? { type: "snooze", ms: movedMs } : { type: "failed", error: describeCause(cause) },
          ),
    onSuccess: (result) => Effect.succeed<Outcome>(result),
  })
}

/** Commits the end of an attempt; false when the job was taken away meanwhile, and then nothing is written. */
const commitEnd = (store: StoreService, job: Job, outcome: Outcome, backoff: number): Effect.Effect<boolean> => {
  const rows: JobCommit = outcome.type === "done" ? (outcome.commit ?? {}) : {}
  const write = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    store.commit({ ...rows, jobUpdates: [ended(job, outcome, now, backoff)] }),
  )
  const attempt = (waitMs: number): Effect.Effect<boolean> =>
    Effect.catchAll(Effect.as(write, true), (error: CommitError) => {
      if (error._tag === "StorageUnavailable") {
        return Effect.zipRight(
          Effect.sleep(waitMs),
          Effect.suspend(() => attempt(Math.min(waitMs * 2, commitRetryMs[1]))),
        )
      }
      const own = Object.keys(rows).length > 0
      // Rows that the store refuses are the worker's failure; a job that is not ours any more is nobody's.
      if (!own) return Effect.succeed(false)
      return commitEnd(store, job, { type: "failed", error: `its commit was refused: ${error.message}` }, backoff)
    })
  return attempt(commitRetryMs[0])
}

const attributesOf = ({ attempt, id, queue, worker }: Job) => ({
  "super_pi.queue": queue,
  "super_pi.worker": worker,
  "super_pi.job.id": id,
  "super_pi.job.attempt": attempt,
})

/** Runs the worker and commits the end. Gives false when the job was taken away. */
const execute = (store: StoreService, job: Job, worker: QueueWorker): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const outcome = yield* outcomeOf(job, worker).pipe(
      traced<Outcome>("super_pi.job", attributesOf(job), {
        ended: ({ type }) => (type === "failed" ? "job_failed" : null),
      }),
    )
    const random = yield* Random.next
    const backoff = worker.backoff?.(job.attempt) ?? backoffMs(job.attempt, random)
    return yield* commitEnd(store, job, outcome, Math.max(0, backoff))
  })

/** The actor of one attempt: it runs on its only message, tells `report` how it ended, and stops. */
export const attemptActor = (
  store: StoreService,
  job: Job,
  worker: QueueWorker,
  report: (kept: boolean) => Effect.Effect<void>,
): Behavior<null, "go"> =>
  behavior<null, "go">({
    name: "job",
    init: () => null,
    receive: (state, _go, self) =>
      execute(store, job, worker).pipe(
        Effect.exit,
        Effect.flatMap((exit) =>
          Exit.isSuccess(exit) ? Effect.zipRight(report(exit.value), self.stop()) : Effect.failCause(exit.cause),
        ),
        Effect.as(state),
      ),
    describe: () => `${job.worker}, attempt ${job.attempt}`,
  })
