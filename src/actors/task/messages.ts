/**
 * What the ledger of tasks is told and asked. Questions from outside are answered after their commit.
 */

import type { Failure } from "../../domain/failure.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import type { ReplyTo } from "../kernel/index.ts"
import type { TaskRow } from "./board.ts"
import type { StoredTask } from "./define.ts"
import type { RunEnd } from "./events.ts"
import type { Leave } from "./sharing.ts"
import type { Step } from "./step.ts"

/** A task to start, as the definition made it. */
export interface NewTask extends StoredTask {
  readonly kind: string
  readonly conversation: ConversationId | null
  readonly background: boolean
  readonly requestId: string | null
}

export type LedgerMessage =
  /** Sent to itself at the start. */
  | { readonly type: "recover" }
  | { readonly type: "start"; readonly task: NewTask; readonly reply: ReplyTo<TaskId, Failure> }
  | {
      readonly type: "abort"
      readonly id: TaskId
      readonly background: boolean
      readonly reason: string
      readonly reply: ReplyTo<{ readonly aborted: boolean }, Failure>
    }
  | { readonly type: "retry"; readonly id: TaskId; readonly reply: ReplyTo<void, Failure> }
  | { readonly type: "discard"; readonly id: TaskId; readonly reason: string; readonly reply: ReplyTo<void, Failure> }
  | { readonly type: "registered"; readonly kind: string; readonly reply: ReplyTo<void> }
  /** From the actor of a task: its run number tells it from an earlier one of the same task. Null ends the actor. */
  | {
      readonly type: "step"
      readonly run: number
      readonly id: TaskId
      readonly step: Step<Json, Json, Json>
      readonly children: ReadonlyArray<TaskRow>
      readonly reply: ReplyTo<TaskRow | null>
    }
  | { readonly type: "runEnded"; readonly run: number; readonly id: TaskId; readonly end: RunEnd }
  | { readonly type: "wake" }
  /** Shards came to this node: their tasks are taken over and go on. */
  | { readonly type: "gained"; readonly shards: ReadonlyArray<number>; readonly reply: ReplyTo<void> }
  /** Shards leave it. Answered when nothing of theirs runs here any more, and it is released. */
  | {
      readonly type: "leaving"
      readonly shards: ReadonlyArray<number>
      readonly graceMs: number
      readonly reply: ReplyTo<void>
    }
  /** The time of tasks that leave is up; then: they have stopped. */
  | { readonly type: "stopLeaving"; readonly leave: Leave }
  | { readonly type: "stopped"; readonly rows: ReadonlyArray<TaskRow>; readonly leave: Leave }
  /** Time to look at tasks of other nodes for which some of ours wait. */
  | { readonly type: "lookElsewhere" }
  | { readonly type: "endedElsewhere"; readonly id: TaskId; readonly outcome: TaskOutcome }
  | { readonly type: "conversationIdle"; readonly owner: TaskId }
