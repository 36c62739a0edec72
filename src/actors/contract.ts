/**
 * The message contract of conversations: the one way in. Transports turn whatever comes from outside into these messages; whatever
 * goes out is the event stream of {@link Watch}. The same group serves in-process callers and processes attached over a socket.
 * Calls that change something carry a `requestId`, so that a repeated call changes nothing twice. Long because it is the whole contract.
 */
import { Rpc, RpcGroup } from "@effect/rpc"
import { Schema } from "effect"
import { CheckpointView, UndoResult } from "../domain/checkpoint.ts"
import { CompactionResult } from "../domain/compaction-task.ts"
import { AgentDocument } from "../domain/document.ts"
import { EffectAnswer, EffectView } from "../domain/effect.ts"
import { ContextEdit, Entry } from "../domain/entry.ts"
import { Event, SessionState } from "../domain/event.ts"
import { Failure } from "../domain/failure.ts"
import { CallDecisions, HarnessListing } from "../domain/harness-view.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../domain/ids.ts"
import { Json } from "../domain/json.ts"
import { McpServer, McpServerView } from "../domain/mcp.ts"
import { Message, UserPart } from "../domain/message.ts"
import { ListedQuestion, QuestionAnswer } from "../domain/question.ts"
import { QueueChange, QueueChanged, QueueView } from "../domain/queue.ts"
import { NamedSession, NameSpace, SessionName } from "../domain/session-name.ts"
import { SubmissionStatus, UnansweredReason, WhenBusy } from "../domain/submission.ts"
import { TaskChange, TaskChanged } from "../domain/task-change.ts"
import { TaskDetail, TaskList } from "../domain/task-view.ts"
import { TreeNode } from "../domain/tree.ts"
import { Usage } from "../domain/usage.ts"
import { InputEntry, WriteHead } from "../domain/write.ts"

/** Who asks. Local callers are `local`. */
const principal = Schema.optionalWith(Schema.String, { default: () => "local" })

const whenBusy = Schema.optionalWith(WhenBusy, { default: (): WhenBusy => "followUp" })

/** Null where it is left out. */
const orNull = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.NullOr(schema), { default: (): A | null => null })

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

/**
 * The conversation that a client calls by a name of its own, created with `agent` and `title` where there is none (`created`). Where there
 * is one, `agent` and `title` are left alone: see {@link Configure}.
 */
export class OpenNamed extends Rpc.make("OpenNamed", {
  payload: {
    namespace: NameSpace,
    name: SessionName,
    agent: AgentDocument,
    title: Schema.NullOr(Schema.String),
    principal,
  },
  success: Schema.Struct({ session: SessionState, created: Schema.Boolean }),
  error: Failure,
}) {}

/** Gives a conversation a name, or takes a name away from the conversation that had it (`conversationId` null). */
export class SetName extends Rpc.make("SetName", {
  payload: { namespace: NameSpace, name: SessionName, conversationId: Schema.NullOr(ConversationId), principal },
  success: Schema.Struct({ named: Schema.Boolean }),
  error: Failure,
}) {}

/** What a name stands for; `NotFound` where it stands for nothing of the caller's. */
export class FindNamed extends Rpc.make("FindNamed", {
  payload: { namespace: NameSpace, name: SessionName, principal },
  success: NamedSession,
  error: Failure,
}) {}

/** The named conversations of a namespace, the most recently changed first. `before` goes on behind that name. */
export class ListNamed extends Rpc.make("ListNamed", {
  payload: { namespace: NameSpace, before: orNull(SessionName), limit, principal },
  success: Schema.Array(NamedSession),
  error: Failure,
}) {}

/** What became of a submission so far. */
export const Receipt = Schema.Struct({
  submission_id: SubmissionId,
  conversation_id: ConversationId,
  status: SubmissionStatus,
  reason: Schema.NullOr(UnansweredReason),
  detail: Schema.NullOr(Schema.String),
  /** The entry that it was placed as, or null. */
  placed_entry_id: Schema.NullOr(EntryId),
})
export type Receipt = typeof Receipt.Type

/** Admits an input durably, then answers. `entry` shows it in the transcript as a kind of the application's; the model sees `content`. */
export class Submit extends Rpc.make("Submit", {
  payload: {
    conversationId: ConversationId,
    content: Schema.Array(UserPart),
    whenBusy,
    entry: Schema.optional(InputEntry),
    requestId: Schema.NullOr(Schema.String),
    principal,
  },
  success: Receipt,
  error: Failure,
}) {}

/** What a write may carry; each part may be left out. */
const written = {
  kind: orNull(Schema.String),
  data: orNull(Json),
  model: Schema.optionalWith(Schema.Array(Message), { default: (): ReadonlyArray<Message> => [] }),
  head: orNull(WriteHead),
  edits: Schema.optionalWith(Schema.Array(ContextEdit), { default: (): ReadonlyArray<ContextEdit> => [] }),
}

/**
 * Appends an entry and asks no model. A note (only `kind` and `data`) is appended at once; any other write waits for the next boundary
 * while the conversation is busy. `kind` null is `pi.edit`, for a write that only carries edits.
 */
export class Write extends Rpc.make("Write", {
  payload: {
    conversationId: ConversationId,
    ...written,
    requestId: Schema.NullOr(Schema.String),
    principal,
  },
  success: Receipt,
  error: Failure,
}) {}

/** Starts a new context, from nothing or from a handoff note. Queued like a write while the conversation is busy; placed, it ends the run. */
export class Reset extends Rpc.make("Reset", {
  payload: {
    conversationId: ConversationId,
    handoff: Schema.NullOr(Schema.String),
    requestId: Schema.NullOr(Schema.String),
    principal,
  },
  success: Receipt,
  error: Failure,
}) {}

/** Takes a queued submission out of the queue. One that is placed or ended is refused. */
export class Withdraw extends Rpc.make("Withdraw", {
  payload: { conversationId: ConversationId, submissionId: SubmissionId, principal },
  success: Receipt,
  error: Failure,
}) {}

/**
 * Creates a conversation that sees the entries up to `entryId` (null: the newest one), with its documents as of then, and goes its own way.
 * `agent` overrides what it inherits.
 */
export class Fork extends Rpc.make("Fork", {
  payload: {
    conversationId: ConversationId,
    entryId: Schema.NullOr(EntryId),
    agent: AgentDocument,
    title: Schema.NullOr(Schema.String),
    requestId: Schema.NullOr(Schema.String),
    principal,
  },
  success: SessionState,
  error: Failure,
}) {}

/** A submission as it is stored. */
export const SubmissionView = Schema.Struct({
  ...Receipt.fields,
  kind: Schema.Literal("input", "write"),
  when_busy: WhenBusy,
  /** `input`: `{content, entry?}`; `write`: the entry to append. */
  content: Json,
  request_id: Schema.NullOr(Schema.String),
  created_at: Schema.Int,
})
export type SubmissionView = typeof SubmissionView.Type

/** One submission, by its id or by the request that made it. */
export class ReadSubmission extends Rpc.make("ReadSubmission", {
  payload: {
    conversationId: ConversationId,
    submissionId: Schema.NullOr(SubmissionId),
    requestId: Schema.NullOr(Schema.String),
    principal,
  },
  success: SubmissionView,
  error: Failure,
}) {}

/** What is queued or placed and has not ended, oldest first. */
export class ListSubmissions extends Rpc.make("ListSubmissions", {
  payload: { conversationId: ConversationId, principal },
  success: Schema.Array(SubmissionView),
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

/** False where it is not said. */
const flag = Schema.optionalWith(Schema.Boolean, { default: () => false })

/**
 * A `snapshot` event, then every later event in order. `after` resumes behind that `seq_no` where the machine still has the tail. Who watches
 * as `interactive` can answer questions: they are asked only while such a client is connected.
 */
export class Watch extends Rpc.make("Watch", {
  payload: {
    conversationId: ConversationId,
    after: Schema.NullOr(Schema.NonNegativeInt),
    interactive: flag,
    principal,
  },
  success: Event,
  error: Failure,
  stream: true,
}) {}

/**
 * Withdraws queued inputs, cancels the run bottom-up, and answers once the conversation is idle. With `submissionId` only the run that this
 * submission is part of, or, where it is queued, the submission: what others queued stays and goes on. False where it has ended.
 */
export class Cancel extends Rpc.make("Cancel", {
  payload: { conversationId: ConversationId, submissionId: orNull(SubmissionId), principal },
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

/**
 * Makes the context short: what is older becomes a summary, what is newer stays. Works in every state, beside a run, and answers once it
 * was placed at a turn boundary; `cancel` cancels it. The same call while one is made joins it.
 */
export class Compact extends Rpc.make("Compact", {
  payload: { conversationId: ConversationId, instructions: Schema.NullOr(Schema.String), principal },
  success: CompactionResult,
  error: Failure,
}) {}

/** Runs a parked task of the conversation again. */
export class Retry extends Rpc.make("Retry", {
  payload: { conversationId: ConversationId, principal },
  success: SessionState,
  error: Failure,
}) {}

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

/** What its turns changed in their workspaces and can be undone, newest first. */
export class Checkpoints extends Rpc.make("Checkpoints", {
  payload: { conversationId: ConversationId, principal },
  success: Schema.Array(CheckpointView),
  error: Failure,
}) {}

/**
 * Takes back what turns changed: back to before checkpoint `checkpoint`, or (null) the newest run. Refused while the conversation works,
 * and where somebody else changed a path since, unless `force`. Repeated it finds nothing more of that checkpoint to undo.
 */
export class Undo extends Rpc.make("Undo", {
  payload: { conversationId: ConversationId, checkpoint: Schema.NullOr(Schema.Int), force: flag, principal },
  success: UndoResult,
  error: Failure,
}) {}

/** The harnesses of the node. */
export class ListHarnesses extends Rpc.make("ListHarnesses", { success: HarnessListing, error: Failure }) {}

/** What plugins decided about a call, by its id or the number of its task. */
export class Why extends Rpc.make("Why", {
  payload: { conversationId: ConversationId, call: Schema.NonEmptyString, principal },
  success: CallDecisions,
  error: Failure,
}) {}

/** Open questions, oldest first: of one conversation, or (null) of every one of the caller's. */
export class Questions extends Rpc.make("Questions", {
  payload: { conversationId: Schema.NullOr(ConversationId), principal },
  success: Schema.Array(ListedQuestion),
  error: Failure,
}) {}

/**
 * Answers a question. The first answer counts; a later one is refused (rule `question_settled`) and told who won, but the same `requestId`
 * again is answered alike. `client` is what the caller calls itself, for those who come later.
 */
export class Answer extends Rpc.make("Answer", {
  payload: {
    questionId: TaskId,
    answer: QuestionAnswer,
    requestId: Schema.NullOr(Schema.String),
    client: orNull(Schema.String),
    principal,
  },
  success: Schema.Struct({ question_id: TaskId, conversation_id: ConversationId, answer: QuestionAnswer }),
  error: Failure,
}) {}

/** The queues of the node. */
export class ListQueues extends Rpc.make("ListQueues", { success: Schema.Array(QueueView), error: Failure }) {}

/** Pauses or resumes a queue, retries or cancels a job, deletes ended jobs. */
export class ChangeQueue extends Rpc.make("ChangeQueue", {
  payload: { change: QueueChange },
  success: QueueChanged,
  error: Failure,
}) {}

/** The open tasks of an application, with `all` those of conversations too; with `unless`, once they have another tag, or after 25 s. */
export class ListTasks extends Rpc.make("ListTasks", {
  payload: { all: flag, unless: orNull(Schema.String) },
  success: TaskList,
  error: Failure,
}) {}

export class ReadTask extends Rpc.make("ReadTask", {
  payload: { taskId: TaskId },
  success: TaskDetail,
  error: Failure,
}) {}

/** Retries, aborts or gives up a task of an application. */
export class ChangeTask extends Rpc.make("ChangeTask", {
  payload: { change: TaskChange },
  success: TaskChanged,
  error: Failure,
}) {}

/**
 * Hands over MCP servers to a conversation: their tools are its own, now and after every restart. A server of a name that it has already
 * is replaced; with `replace` all others of the conversation are taken away. The same call again changes nothing. Answers at once, with
 * the servers of the conversation as they are; their tools are waited for by the next request.
 */
export class AddMcpServers extends Rpc.make("AddMcpServers", {
  payload: { conversationId: ConversationId, servers: Schema.Array(McpServer), replace: flag, principal },
  success: Schema.Array(McpServerView),
  error: Failure,
}) {}

/** The MCP servers of a conversation, or (null) those of the node. */
export class ListMcpServers extends Rpc.make("ListMcpServers", {
  payload: { conversationId: Schema.NullOr(ConversationId), principal },
  success: Schema.Array(McpServerView),
  error: Failure,
}) {}

/** Connects to an MCP server anew, for example after a login; answers once that went well or not. `conversationId` null: one of the node. */
export class RestartMcpServer extends Rpc.make("RestartMcpServer", {
  payload: { name: Schema.String, conversationId: Schema.NullOr(ConversationId), principal },
  success: McpServerView,
  error: Failure,
}) {}

/** The live supervision tree of the node. */
export class Tree extends Rpc.make("Tree", { success: TreeNode, error: Failure }) {}

export class SessionRpcs extends RpcGroup.make(
  Open,
  OpenNamed,
  SetName,
  FindNamed,
  ListNamed,
  Submit,
  Write,
  Reset,
  Withdraw,
  Fork,
  ReadSubmission,
  ListSubmissions,
  AwaitSubmission,
  Watch,
  Cancel,
  State,
  Configure,
  List,
  Transcript,
  Remove,
  Compact,
  Retry,
  Effects,
  SettleEffect,
  Questions,
  Answer,
  Checkpoints,
  Undo,
  ListHarnesses,
  Why,
  ListQueues,
  ChangeQueue,
  ListTasks,
  ReadTask,
  ChangeTask,
  AddMcpServers,
  ListMcpServers,
  RestartMcpServer,
  Tree,
) {}
