/**
 * What a conversation's actor accepts: the machine's events, and questions that change nothing.
 */

import type { CompactionResult } from "../../domain/compaction-task.ts"
import type { EffectAnswer } from "../../domain/effect.ts"
import type { SessionState } from "../../domain/event.ts"
import type { SubmissionId, TaskId } from "../../domain/ids.ts"
import type { QuestionAnswer } from "../../domain/question.ts"
import type { Settled } from "../contract.ts"
import type { EventHub } from "./hub.ts"
import type { MachineEvent, Reply } from "./machine/data.ts"

export type ConversationMessage =
  | MachineEvent
  /** Events of one job that came together. */
  | { readonly type: "parts"; readonly events: ReadonlyArray<MachineEvent> }
  | { readonly type: "state"; readonly reply: Reply<SessionState> }
  /** The hub lives as long as this incarnation. */
  | { readonly type: "watch"; readonly reply: Reply<EventHub> }
  | { readonly type: "await"; readonly submission: SubmissionId; readonly reply: Reply<Settled> }
  /** Somebody says what became of a call of this conversation that is in doubt. */
  | { readonly type: "settle"; readonly taskId: TaskId; readonly answer: EffectAnswer; readonly reply: Reply<void> }
  /** A client answers a question, open or not. `by` says who, for people. */
  | {
      readonly type: "answerNow"
      readonly questionId: TaskId
      readonly answer: QuestionAnswer
      readonly by: string
      readonly requestId: string | null
      readonly reply: Reply<void>
    }
  /** A person asks for a compaction; the model that it is for is looked up first. */
  | { readonly type: "compactNow"; readonly instructions: string | null; readonly reply: Reply<CompactionResult> }
  /** The conversation is about to be deleted: leave memory. */
  | { readonly type: "leave" }
  /** The conversation is to go to another node: leaves memory and answers true where it only waits, else goes on and answers false. */
  | { readonly type: "moveOut"; readonly reply: Reply<boolean> }
  /** Sent by the actor to itself: time to look whether it may leave memory. */
  | { readonly type: "hibernate" }
