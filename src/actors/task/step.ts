/**
 * What a phase answers: how the task goes on. A step is one commit: the new checkpoint or the end, the children that were spawned in the phase,
 * and whatever else it carries. A step that is not committed has not happened.
 */
import type { TaskId } from "../../domain/ids.ts"
import type { WaitPolicy } from "../../domain/task.ts"
import type { Commit } from "../../storage/store.ts"

/**
 * Rows that are written in the step's own commit. Entries and submissions are for conversations that nobody has in memory; to talk to one
 * that runs use `Sessions` with an idempotency key.
 */
export type StepWrites = Pick<Commit, "conversations" | "conversationUpdates" | "entries" | "submissions" | "documents">

interface Carries {
  readonly writes: StepWrites
}

/** `C` is the checkpoint, `A` the result, `E` the error. */
export type Step<C, A = never, E = never> = Carries &
  (
    | { readonly type: "next"; readonly checkpoint: C }
    | { readonly type: "complete"; readonly result: A }
    | { readonly type: "fail"; readonly error: E }
    | { readonly type: "sleep"; readonly time: SleepTime; readonly checkpoint: C }
    | { readonly type: "wait"; readonly on: ReadonlyArray<TaskId>; readonly policy: WaitPolicy; readonly checkpoint: C }
  )

/** `until` in milliseconds since the epoch, or `ms` from now on. */
export type SleepTime = { readonly until: number } | { readonly ms: number }

interface Phased {
  readonly phase: string
}

const nothing: StepWrites = {}

export const Step = {
  /** Goes on with another phase, at once. */
  next: <const C extends Phased>(checkpoint: C, writes: StepWrites = nothing): Step<C> => ({
    type: "next",
    checkpoint,
    writes,
  }),
  /** Ends well. With open children the task is `completing` until they have ended. */
  complete: <const A>(result: A, writes: StepWrites = nothing): Step<never, A> => ({
    type: "complete",
    result,
    writes,
  }),
  /** Ends with a typed error; the children that are still open are aborted first. Children spawned in this phase are not started. */
  fail: <const E>(error: E, writes: StepWrites = nothing): Step<never, never, E> => ({ type: "fail", error, writes }),
  /** Holds no fiber and no actor until then, however long; then runs the phase of `checkpoint`. */
  sleep: <const C extends Phased>(time: SleepTime, checkpoint: C, writes: StepWrites = nothing): Step<C> => ({
    type: "sleep",
    time,
    checkpoint,
    writes,
  }),
  /**
   * Holds no fiber and no actor until every task of `on` has ended; then runs the phase of `checkpoint`, which reads their outcomes.
   * `failFast` is for own children: the first that does not complete aborts the others.
   */
  wait: <const C extends Phased>(
    wait: { readonly on: ReadonlyArray<TaskId>; readonly policy?: WaitPolicy },
    checkpoint: C,
    writes: StepWrites = nothing,
  ): Step<C> => ({ type: "wait", on: wait.on, policy: wait.policy ?? "allSettled", checkpoint, writes }),
} as const
