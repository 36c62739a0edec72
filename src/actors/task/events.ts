/**
 * What happens to tasks, and what a decision asks for beside its commit.
 */
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import type { RunMode, TaskRow } from "./board.ts"
import type { PhaseEnd } from "./define.ts"
import type { Step } from "./step.ts"

/** How the actor of a task ended without a step: in its own words, or in its `Down`. */
export type RunEnd =
  | Exclude<PhaseEnd, { readonly type: "step" }>
  /** The abort handler is done. */
  | { readonly type: "undone" }
  /** Stopped from outside: by an abort, or by a clean stop of the node. */
  | { readonly type: "stopped" }
  /** It died for a reason that is not the task's code. */
  | { readonly type: "crashed"; readonly message: string }

export type TaskEvent =
  /** The board holds what was open when the engine started. */
  | { readonly type: "recover" }
  /** Tasks that another node left, and that are this one's now. */
  | { readonly type: "resume"; readonly ids: ReadonlyArray<TaskId> }
  /** New tasks, as pending rows. */
  | { readonly type: "start"; readonly rows: ReadonlyArray<TaskRow> }
  /** A phase is done. `children` are pending rows. */
  | {
      readonly type: "step"
      readonly id: TaskId
      readonly step: Step<Json, Json, Json>
      readonly children: ReadonlyArray<TaskRow>
    }
  | { readonly type: "ended"; readonly id: TaskId; readonly end: RunEnd }
  | { readonly type: "abort"; readonly id: TaskId; readonly background: boolean; readonly reason: string }
  | { readonly type: "retry"; readonly id: TaskId }
  | { readonly type: "discard"; readonly id: TaskId; readonly reason: string }
  /** The code of a kind was loaded. */
  | { readonly type: "registered"; readonly kind: string }
  /** Sleeping tasks whose time has come. */
  | { readonly type: "wake"; readonly ids: ReadonlyArray<TaskId> }
  /** A task that is not on the board has ended. */
  | { readonly type: "endedElsewhere"; readonly id: TaskId; readonly outcome: TaskOutcome }
  /** A conversation that the task owns came to rest. */
  | { readonly type: "conversationIdle"; readonly owner: TaskId }

export type TaskAction =
  /** Starts an actor for the task. */
  | { readonly type: "run"; readonly id: TaskId; readonly mode: RunMode }
  /** Interrupts the actor of the task; its `Down` follows. */
  | { readonly type: "interrupt"; readonly id: TaskId }
  | { readonly type: "parked"; readonly id: TaskId; readonly reason: string }
  | { readonly type: "cancelConversation"; readonly conversation: ConversationId }

/** What the loaded code says about a task. */
export type Prepared =
  /** `row` is migrated to the code's version; `undo` tells whether there is an abort handler. */
  | { readonly type: "run"; readonly row: TaskRow; readonly undo: boolean }
  /** It stays as it is until the code is there. */
  | { readonly type: "blocked"; readonly reason: string }
  /** Its code cannot take it over. */
  | { readonly type: "park"; readonly reason: string }

export interface TaskEnv {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly node: string
  /** What is run carries at least this fence: its own is never lowered. */
  readonly fence: number
  readonly prepare: (row: TaskRow) => Prepared
  /** A task that is not on the board: still open somewhere, ended, or unknown (null). */
  readonly elsewhere: (id: TaskId) => "open" | TaskOutcome | null
  /** Conversations that the task owns and that have work. */
  readonly busyConversations: (owner: TaskId) => ReadonlyArray<ConversationId>
}
