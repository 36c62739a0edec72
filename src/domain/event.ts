/**
 * The one typed event stream of a conversation (version 1). Every interface renders it; field names on the wire are these.
 * `seq_no` numbers the events of one conversation: without gaps within one life of its machine, and higher in each later life. A watcher
 * gets a `snapshot` first and then every later event. Events about records are published after the commit that wrote them.
 */
import { Schema } from "effect"
import { CompactionMethod, CompactionMode, CompactionReason } from "./compaction-settings.ts"
import { CompactionFailure, CompactionStatus, CompactionView } from "./compaction-task.ts"
import { Effort, TodoItem } from "./document.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "./ids.ts"
import { Json, JsonObject } from "./json.ts"
import { AssistantPart, StopReason, UserPart } from "./message.ts"
import { choiceFields, permissionFields, QuestionAnswer, QuestionResult, QuestionView } from "./question.ts"
import { SubagentStatus } from "./subagent.ts"
import { SubagentRole } from "./subagent-role.ts"
import { SubmissionStatus, UnansweredReason } from "./submission.ts"
import { Usage } from "./usage.ts"

/** States of the conversation machine. */
export const MachineState = Schema.Literal(
  "recovering",
  "idle",
  "preparing_request",
  "streaming_llm",
  "executing_tools",
  "awaiting_children",
  "sleeping_backoff",
  "compacting",
  "settling_run",
)
export type MachineState = typeof MachineState.Type

const head = {
  v: Schema.Literal(1),
  conversation_id: ConversationId,
  /** The turn's generation task, or null outside a turn. */
  turn_id: Schema.NullOr(TaskId),
  timestamp_ms: Schema.Int,
  seq_no: Schema.NonNegativeInt,
}

const event = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...head, ...fields })

/** A running tool call as a late watcher sees it. */
export const ToolView = Schema.Struct({
  task_id: TaskId,
  call_id: Schema.String,
  name: Schema.String,
  arguments: JsonObject,
  output: Schema.String,
})
export type ToolView = typeof ToolView.Type

/** What a conversation is called, and what it runs with. */
const choices = {
  model: Schema.String,
  mode: Schema.String,
  /** Absent where it follows the node's default. */
  effort: Schema.optional(Effort),
  /** Its answers are wanted as values that fit a schema; absent where they are words. */
  structured: Schema.optional(Schema.Literal(true)),
  /** Id of its harness, or null where it has none. */
  harness: Schema.optionalWith(Schema.NullOr(Schema.String), { default: () => null }),
  cwd: Schema.NullOr(Schema.String),
  title: Schema.NullOr(Schema.String),
}

/** Everything that a watcher needs to join in the middle. */
export const SessionState = Schema.Struct({
  conversation_id: ConversationId,
  state: MachineState,
  ...choices,
  turn_id: Schema.NullOr(TaskId),
  /** Partial answer of the response being streamed. */
  partial: Schema.NullOr(Schema.Struct({ text: Schema.String, thinking: Schema.String })),
  tools: Schema.Array(ToolView),
  queued: Schema.Array(SubmissionId),
  retry: Schema.NullOr(Schema.Struct({ attempt: Schema.Int, at: Schema.Int, reason: Schema.String })),
  /** A run that crashed its process too often: it waits for a retry or a cancel. `crashes` counts its unclean ends. */
  parked: Schema.NullOr(Schema.Struct({ reason: Schema.String, crashes: Schema.NonNegativeInt })),
  /** Compactions that are not over, and the newest that failed until one succeeds. */
  compactions: Schema.optionalWith(Schema.Array(CompactionView), { default: () => [] }),
  compaction_failure: Schema.optionalWith(Schema.NullOr(CompactionFailure), { default: () => null }),
  /** Open questions, the oldest first. */
  questions: Schema.optionalWith(Schema.Array(QuestionView), { default: () => [] }),
  /** Subagents that have not ended; absent where there are none. */
  subagents: Schema.optional(
    Schema.Array(
      Schema.Struct({ task_id: TaskId, subagent_id: ConversationId, role: SubagentRole, running: Schema.Boolean }),
    ),
  ),
  /** The todo list, in its order; absent while there was none. */
  plan: Schema.optional(Schema.Array(TodoItem)),
  usage: Usage,
  entries: Schema.NonNegativeInt,
  /** The newest event's number. */
  seq_no: Schema.NonNegativeInt,
})
export type SessionState = typeof SessionState.Type

export const Event = Schema.Union(
  event("snapshot", { session: SessionState }),
  event("submission_updated", {
    submission_id: SubmissionId,
    status: SubmissionStatus,
    reason: Schema.NullOr(UnansweredReason),
    detail: Schema.NullOr(Schema.String),
  }),
  event("turn_started", { submission_ids: Schema.Array(SubmissionId), model: Schema.String }),
  event("turn_completed", { stop_reason: StopReason, entry_id: EntryId, text: Schema.String }),
  event("turn_error", { code: Schema.String, message: Schema.String, reference: Schema.NullOr(Schema.String) }),
  event("turn_cancelled", {}),
  event("text_delta", { text: Schema.String }),
  event("thinking_delta", { text: Schema.String }),
  /** `arguments_text` is the raw text so far; `arguments` its best-effort parse, for display. */
  event("toolcall_delta", {
    call_id: Schema.String,
    name: Schema.String,
    delta: Schema.String,
    arguments: Schema.NullOr(Json),
  }),
  event("message_completed", {
    entry_id: EntryId,
    role: Schema.Literal("user", "assistant"),
    content: Schema.Array(Schema.Union(AssistantPart, UserPart)),
    stop_reason: Schema.NullOr(StopReason),
  }),
  /** What was streamed since the last completed message is void; the response starts over. */
  event("stream_reset", { reason: Schema.String }),
  event("retry_scheduled", { attempt: Schema.Int, at_ms: Schema.Int, reason: Schema.String }),
  event("tool_started", { task_id: TaskId, call_id: Schema.String, name: Schema.String, arguments: JsonObject }),
  event("tool_output", { call_id: Schema.String, delta: Schema.String }),
  /** The call does not run: a rule blocks it, or its name or arguments are wrong. */
  event("tool_blocked", { call_id: Schema.String, name: Schema.String, reason: Schema.String }),
  event("tool_completed", {
    task_id: TaskId,
    call_id: Schema.String,
    name: Schema.String,
    is_error: Schema.Boolean,
    output: Schema.Array(UserPart),
    structured_output: Schema.NullOr(Json),
    details: Schema.NullOr(Json),
    entry_id: EntryId,
    duration_ms: Schema.NonNegativeInt,
  }),
  event("state_changed", { from: MachineState, to: MachineState }),
  event("mode_changed", { mode: Schema.String }),
  /** Something of what a snapshot says of these changed; all of them, as they are now. */
  event("session_changed", choices),
  event("usage_updated", { usage: Usage, total: Usage }),
  event("compaction_started", { task_id: TaskId, reason: CompactionReason, mode: CompactionMode }),
  /** Tokens are estimates; `tokens_after` and `entry_id` are null where nothing was placed, `error` says why it failed. */
  event("compaction_completed", {
    task_id: TaskId,
    reason: CompactionReason,
    method: CompactionMethod,
    status: CompactionStatus,
    entry_id: Schema.NullOr(EntryId),
    tokens_before: Schema.NonNegativeInt,
    tokens_after: Schema.NullOr(Schema.NonNegativeInt),
    error: Schema.NullOr(Schema.String),
  }),
  /** A call needs a permission before it runs; its `options` are the four answers. */
  event("permission_request", permissionFields),
  /** A tool wants something to be chosen. */
  event("ui_request", choiceFields),
  /** A question is over. `answer` and `by` are null where nobody answered, `reason` says why it was withdrawn. */
  event("question_settled", {
    question_id: TaskId,
    result: QuestionResult,
    answer: Schema.NullOr(QuestionAnswer),
    by: Schema.NullOr(Schema.String),
    reason: Schema.NullOr(Schema.String),
  }),
  /** The todo list as it is now, whole. */
  event("plan_updated", { items: Schema.Array(TodoItem) }),
  /** A subagent begins its work, in a conversation of its own; it was asked for by the call. */
  event("subagent_started", {
    task_id: TaskId,
    call_id: Schema.String,
    subagent_id: ConversationId,
    role: SubagentRole,
    task: Schema.String,
  }),
  /** `error` says why it did not complete, or null; `duration_ms` counts from its start, 0 where it never began. */
  event("subagent_finished", {
    task_id: TaskId,
    call_id: Schema.String,
    subagent_id: ConversationId,
    role: SubagentRole,
    status: SubagentStatus,
    error: Schema.NullOr(Schema.String),
    duration_ms: Schema.NonNegativeInt,
  }),
  event("notice", { level: Schema.Literal("info", "warning", "error"), message: Schema.String }),
)
export type Event = typeof Event.Type
export type EventType = Event["type"]

type Body<E> = E extends Event ? Omit<E, "v" | "conversation_id" | "turn_id" | "timestamp_ms" | "seq_no"> : never
/** An event before its head is stamped. */
export type EventBody = Body<Event>
