/**
 * Tasks: durable state machines. Legal transitions (any other is a defect):
 * `pending → running → (waiting ⇄ running | sleeping ⇄ running) → completing → terminal`; a crash or a clean
 * stop takes `running` back to `pending`.
 */
import { Schema } from "effect"
import { ConversationId, Seq, TaskId } from "./ids.ts"
import { Json } from "./json.ts"

export const TaskStatus = Schema.Literal("pending", "running", "waiting", "sleeping", "completing", "terminal")
export type TaskStatus = typeof TaskStatus.Type

/** How a task ended. `faulted`: its code broke; `orphaned`: its code is missing. */
export const TaskOutcome = Schema.Union(
  Schema.Struct({ status: Schema.Literal("completed"), result: Json }),
  Schema.Struct({ status: Schema.Literal("failed"), error: Json }),
  Schema.Struct({ status: Schema.Literal("aborted"), reason: Schema.String }),
  Schema.Struct({ status: Schema.Literal("faulted"), error: Schema.String }),
  Schema.Struct({ status: Schema.Literal("orphaned"), reason: Schema.String }),
)
export type TaskOutcome = typeof TaskOutcome.Type

/** Unclean ends of one task without a new checkpoint in between, after which it is parked. */
export const restartLimit = 5

export const TaskKind = {
  generation: "pi.generation",
  tool: "pi.tool",
  compaction: "pi.compaction",
  question: "pi.question",
  subagent: "pi.subagent",
  afterRun: "pi.after-run",
  scheduleRun: "pi.schedule-run",
} as const

/** When a waiting task wakes: once every task of `on` has ended. `failFast` also aborts the others at the first failure. */
export const WaitPolicy = Schema.Literal("allSettled", "failFast")
export type WaitPolicy = typeof WaitPolicy.Type

export const Task = Schema.Struct({
  id: TaskId,
  /** The conversation that it works for; null for a workflow beside conversations. */
  conversation: Schema.NullOr(ConversationId),
  kind: Schema.NonEmptyString,
  version: Schema.NonNegativeInt,
  input: Json,
  status: TaskStatus,
  checkpoint: Json,
  owner: Schema.NullOr(TaskId),
  background: Schema.Boolean,
  abortRequested: Schema.Boolean,
  /** Unclean ends since the last new checkpoint. */
  crashes: Schema.NonNegativeInt,
  /** Why it is parked, or null. A parked task runs again only after a `retry`. */
  parked: Schema.NullOr(Schema.String),
  /** The node that runs it, or null when nobody does. */
  node: Schema.NullOr(Schema.String),
  /** Fencing token: the epoch of the owner that took it. A commit under an older token is refused. */
  fence: Schema.NonNegativeInt,
  /** Milliseconds since the epoch until which the node holds it; null where ownership of the database is the lease. */
  leaseUntil: Schema.NullOr(Schema.Int),
  /** Milliseconds since the epoch at which a sleeping task wakes. */
  wakeAt: Schema.NullOr(Schema.Int),
  /** What a waiting task waits for; null in every other status. */
  waitingOn: Schema.NullOr(Schema.Struct({ on: Schema.Array(TaskId), policy: WaitPolicy })),
  /** How it ended; while `completing`, how it will end once the work that it owns has. */
  outcome: Schema.NullOr(TaskOutcome),
  /** Unique among all tasks: starting the same request again gives this task. */
  requestId: Schema.NullOr(Schema.String),
  /** An unsafe effect that may or may not have happened, and that nobody has looked into yet. */
  inDoubt: Schema.Boolean,
  createdAt: Schema.Int,
  startedAt: Schema.NullOr(Schema.Int),
  endedAt: Schema.NullOr(Schema.Int),
  seq: Seq,
})
export type Task = typeof Task.Type
