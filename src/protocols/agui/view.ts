/**
 * What the renderer knows of one stream: the run that is open, what of the present turn was said, and the conversation as far as it was told.
 */
import type { SessionState } from "../../domain/event.ts"
import type { SubmissionId, TaskId } from "../../domain/ids.ts"
import type { StopReason } from "../../domain/message.ts"
import type { Cut } from "./messages.ts"
import type { AguiEvent } from "./protocol.ts"
import type { AguiState } from "./state.ts"

/** A place where the transport puts the messages: it reads the transcript, sends `MESSAGES_SNAPSHOT`, and tells the view with `seen`. */
export interface MessagesDue {
  readonly type: "MESSAGES_DUE"
  readonly cut: Cut
  /** The turn that goes on, or null. */
  readonly current: TaskId | null
}

export type Item = AguiEvent | MessagesDue

export interface Options {
  readonly threadId: string
  /** The run of a client, which ends with what it asked for; null follows the conversation without end, run after run. */
  readonly runId: string | null
  /** Whether a run that waits for nothing but answers ends with them as interrupts. Default false. */
  readonly interrupts?: boolean
  /** The client has the messages up to now. Default false. */
  readonly hasMessages?: boolean
}

/** A call of the present turn that has no result yet. */
export interface OpenCall {
  readonly name: string
  /** Its arguments as far as they were said. */
  readonly args: string
  /** `TOOL_CALL_END` was said. */
  readonly ended: boolean
  /** The answer that holds it is committed. */
  readonly committed: boolean
}

/** The answer that is being written. */
export interface Turn {
  readonly id: TaskId | null
  readonly text: string
  readonly thinking: string
  readonly committed: boolean
}

/** How a run ends. */
export type Ending =
  | { readonly type: "success"; readonly stopReason: StopReason | null; readonly entry: number | null }
  | { readonly type: "cancelled" }
  | { readonly type: "error"; readonly message: string; readonly code: string }

export interface View {
  readonly options: Options
  readonly run: { readonly id: string; readonly usage: Extract<AguiEvent, { type: "RUN_FINISHED" }>["usage"] } | null
  /** A run of a client that has ended says nothing more. */
  readonly over: boolean
  /** How the newest run of the conversation ended; null while it goes on. */
  readonly outcome: Ending | null
  /** How the client's run ends, once that is known. */
  readonly ending: Ending | null
  readonly session: SessionState | null
  /** The document as it was last said. */
  readonly state: AguiState | null
  readonly turn: Turn
  /** What is open: nothing, the text or the thinking of the turn. */
  readonly open: "text" | "thinking" | null
  readonly calls: ReadonlyMap<string, OpenCall>
  /** Calls of the turn whose result was said. */
  readonly results: ReadonlySet<string>
  readonly subagents: ReadonlySet<string>
  /** Subagents that ended in this run: their ids are not used again. */
  readonly ended: ReadonlySet<string>
  /** Questions that were shown. */
  readonly asked: ReadonlySet<number>
  /** Questions that the request of this run answers. */
  readonly answering: ReadonlySet<number>
  /** The newest entry that was told of. */
  readonly lastEntry: number
  /** The inputs whose end the run waits for, and whether each was seen in the queue or in its place. */
  readonly awaits: ReadonlyMap<SubmissionId, boolean>
  /** The inputs of the client itself: it has their messages. */
  readonly own: ReadonlySet<SubmissionId>
  /** The input that was placed just now: the next message of a user is it. */
  readonly placing: SubmissionId | null
}

export const noTurn: Turn = { id: null, text: "", thinking: "", committed: false }

export const init = (options: Options): View => ({
  options,
  run: null,
  over: false,
  outcome: null,
  ending: null,
  session: null,
  state: null,
  turn: noTurn,
  open: null,
  calls: new Map(),
  results: new Set(),
  subagents: new Set(),
  ended: new Set(),
  asked: new Set(),
  answering: new Set(),
  lastEntry: 0,
  awaits: new Map(),
  own: new Set(),
  placing: null,
})
