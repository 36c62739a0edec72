/**
 * What a phase can do beside its own Effects: run something once for good, draw stable keys, start children, read outcomes. Everything here
 * survives a crash: after one, the phase starts over, and what was committed is read instead of done again.
 */
import type { Effect, Schema } from "effect"
import type { AgentDocument } from "../../domain/document.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import type { Outcome, TaskDefinition } from "./define.ts"
import type { SleepTime } from "./step.ts"

export interface SpawnOptions {
  /** A boundary: neither aborted with its owner nor waited for by it. Default false. */
  readonly background?: boolean
}

/** Storage that is out of order is waited for; these Effects fail with nothing of their own. */
export interface TaskRuntime {
  /**
   * Runs `effect` once and commits its result under `key` (unique in the task); later calls, also after a crash, give that result. A failure
   * is not kept. A crash between the effect and the commit runs it again: give an outside service an {@link idempotencyKey}.
   */
  readonly memo: <A, I, E, R>(
    key: string,
    effect: Effect.Effect<A, E, R>,
    schema: Schema.Schema<A, I>,
  ) => Effect.Effect<A, E, R>
  /** The same text for the same task and name, now and after every crash; different for every other. Committed before it is given. */
  readonly idempotencyKey: (name: string) => Effect.Effect<string>
  /** Waits inside the phase, once for good: after a crash only for what is left. `Step.sleep` does the same without a fiber. */
  readonly sleep: (key: string, time: SleepTime) => Effect.Effect<void>
  /**
   * Prepares an own child and gives its id, to be kept in the checkpoint. It is created and started by the commit of this phase's step; a
   * phase that does not get there has started nothing. An input that does not fit its schema is a defect.
   */
  readonly spawn: <Input, A, E>(
    definition: TaskDefinition<Input, A, E, unknown>,
    input: Input,
    options?: SpawnOptions,
  ) => Effect.Effect<TaskId>
  /**
   * A conversation that the task owns, made once under `key`: its work is cancelled when the task is aborted, and the task ends after it. Talk to
   * it through `Sessions`, as `local`, with an {@link idempotencyKey} as `requestId`.
   */
  readonly conversation: (
    key: string,
    options?: { readonly agent?: AgentDocument; readonly title?: string },
  ) => Effect.Effect<ConversationId>
  /** How tasks ended, in the order of `ids`; null for one that has not. */
  readonly outcomes: (ids: ReadonlyArray<TaskId>) => Effect.Effect<ReadonlyArray<TaskOutcome | null>>
  /** {@link outcomes} of tasks of one definition that have all ended; one that has not, or does not fit, is a defect. */
  readonly outcomesOf: <Input, A, E>(
    definition: TaskDefinition<Input, A, E, unknown>,
    ids: ReadonlyArray<TaskId>,
  ) => Effect.Effect<ReadonlyArray<Outcome<A, E>>>
}
