/**
 * The message contract of conversations: the one way in. Transports turn whatever comes from outside into these messages; whatever
 * goes out is the event stream of {@link Watch}. The same group serves in-process callers and processes attached over a socket.
 * Calls that change something carry a `requestId`, so that a repeated call changes nothing twice.
 */
import { Rpc, RpcGroup } from "@effect/rpc"
import { Schema } from "effect"
import { AgentDocument } from "../domain/document.ts"
import { EffectAnswer, EffectView } from "../domain/effect.ts"
import { Entry } from "../domain/entry.ts"
import { Event, SessionState } from "../domain/event.ts"
import { Failure } from "../domain/failure.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../domain/ids.ts"
import { UserPart } from "../domain/message.ts"
import { SubmissionStatus, UnansweredReason, WhenBusy } from "../domain/submission.ts"
import { TreeNode } from "../domain/tree.ts"
import { Usage } from "../domain/usage.ts"

/** Who asks. Local callers are `local`. */
const principal = Schema.optionalWith(Schema.String, { default: () => "local" })

const whenBusy = Schema.optionalWith(WhenBusy, { default: (): WhenBusy => "followUp" })

/** How many rows at most, 1 to 1,000. */
const limit = Schema.optionalWith(Schema.Number.pipe(Schema.int(), Schema.between(1, 1000)), { default: () => 100 })

/** Creates a conversation, or opens one and applies `agent` to it. */
export class Open extends Rpc.make("Open", {
  payload: {
    conversationId: Schema.NullOr(ConversationId),
    agent: AgentDocument,
    title: Schema.NullOr(Schema.String),
    principal,
    requestId: Schema.NullOr(Schema.String),
  },
  success: SessionState,
  error: Failure,
}) {}

/** What became of a submission so far. */
export const Receipt = Schema.Struct({
  submission_id: SubmissionId,
  conversation_id: ConversationId,
  status: SubmissionStatus,
  reason: Schema.NullOr(UnansweredReason),
  detail: Schema.NullOr(Schema.String),
})
export type Receipt = typeof Receipt.Type

/** Admits an input durably, then answers. */
export class Submit extends Rpc.make("Submit", {
  payload: {
    conversationId: ConversationId,
    content: Schema.Array(UserPart),
    whenBusy,
    requestId: Schema.NullOr(Schema.String),
    principal,
  },
  success: Receipt,
  error: Failure,
}) {}

/** The end of a submission. `text` is the answer's text; `usage` the tokens of the run. */
export const Settled = Schema.Struct({
  ...Receipt.fields,
  entry_id: Schema.NullOr(EntryId),
  text: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  usage: Usage,
  turns: Schema.NonNegativeInt,
})
export type Settled = typeof Settled.Type

/**
 * Waits until a submission is `done` or `unanswered`. One that a parked run holds up is answered at once as it is, with the reason `parked`.
 * Interrupting the wait ends the wait only.
 */
export class AwaitSubmission extends Rpc.make("AwaitSubmission", {
  payload: { conversationId: ConversationId, submissionId: SubmissionId, principal },
  success: Settled,
  error: Failure,
}) {}

/** A `snapshot` event, then every later event in order. `after` resumes behind that `seq_no` where the machine still has the tail. */
export class Watch extends Rpc.make("Watch", {
  payload: { conversationId: ConversationId, after: Schema.NullOr(Schema.NonNegativeInt), principal },
  success: Event,
  error: Failure,
  stream: true,
}) {}

/** Withdraws queued inputs, cancels the run bottom-up, and answers once the conversation is idle. */
export class Cancel extends Rpc.make("Cancel", {
  payload: { conversationId: ConversationId, principal },
  success: Schema.Struct({ cancelled: Schema.Boolean }),
  error: Failure,
}) {}

export class State extends Rpc.make("State", {
  payload: { conversationId: ConversationId, principal },
  success: SessionState,
  error: Failure,
}) {}

/** Changes what the conversation runs with, from the next request on. */
export class Configure extends Rpc.make("Configure", {
  payload: { conversationId: ConversationId, agent: AgentDocument, principal },
  success: SessionState,
  error: Failure,
}) {}

export const SessionSummary = Schema.Struct({
  conversation_id: ConversationId,
  title: Schema.NullOr(Schema.String),
  created_at: Schema.Int,
  updated_at: Schema.Int,
  entries: Schema.NonNegativeInt,
  busy: Schema.Boolean,
  /** Why its run is parked, or null. */
  parked: Schema.NullOr(Schema.String),
  forked_from: Schema.NullOr(ConversationId),
})
export type SessionSummary = typeof SessionSummary.Type

export class List extends Rpc.make("List", {
  payload: { limit, principal },
  success: Schema.Array(SessionSummary),
  error: Failure,
}) {}

/** The visible entries, oldest first. */
export class Transcript extends Rpc.make("Transcript", {
  payload: { conversationId: ConversationId, principal },
  success: Schema.Array(Entry),
  error: Failure,
}) {}

/** Deletes an idle conversation. */
export class Remove extends Rpc.make("Remove", {
  payload: { conversationId: ConversationId, principal },
  success: Schema.Struct({ removed: Schema.Boolean }),
  error: Failure,
}) {}

/** Runs a parked task of the conversation again. */
export class Retry extends Rpc.make("Retry", {
  payload: { conversationId: ConversationId, principal },
  success: SessionState,
  error: Failure,
}) {}

/** False where it is not said. */
const flag = Schema.optionalWith(Schema.Boolean, { default: () => false })

/** Unsafe effects that are in doubt or cut off, newest first; with `running` also those in progress. */
export class Effects extends Rpc.make("Effects", {
  payload: { running: flag, limit, principal },
  success: Schema.Array(EffectView),
  error: Failure,
}) {}

/** Says what became of a call in doubt. The same answer again changes nothing; another one is refused. */
export class SettleEffect extends Rpc.make("SettleEffect", {
  payload: { taskId: TaskId, answer: EffectAnswer, principal },
  success: Schema.Struct({ task_id: TaskId, conversation_id: ConversationId, answer: EffectAnswer }),
  error: Failure,
}) {}

/** The live supervision tree of the node. */
export class Tree extends Rpc.make("Tree", { success: TreeNode, error: Failure }) {}

export class SessionRpcs extends RpcGroup.make(
  Open,
  Submit,
  AwaitSubmission,
  Watch,
  Cancel,
  State,
  Configure,
  List,
  Transcript,
  Remove,
  Retry,
  Effects,
  SettleEffect,
  Tree,
) {}
