/**
 * Documents: typed JSON values stored beside a transcript and changed in commits.
 */
import { Schema } from "effect"
import { Budget } from "./budget.ts"
import { CompactionFailure, CompactionView } from "./compaction-task.ts"
import { ConversationId, DocumentId, Seq, TaskId } from "./ids.ts"
import { Json, JsonObject } from "./json.ts"
import { SubagentRole } from "./subagent-role.ts"
import { Usage } from "./usage.ts"
import { WorkspaceSpec } from "./workspace-spec.ts"

export const DocumentScope = Schema.Literal("global", "conversation", "task")
export type DocumentScope = typeof DocumentScope.Type

/** `latest` keeps the current value only; `rewindable` keeps every revision. */
export const DocumentHistory = Schema.Literal("latest", "rewindable")
export type DocumentHistory = typeof DocumentHistory.Type

/** What a fork starts with: nothing (its definition's initial value), the parent's current value, or its value as of the fork entry. */
export const ForkPolicy = Schema.Literal("initial", "current", "asOf")
export type ForkPolicy = typeof ForkPolicy.Type

/** One incarnation of a document with its current value. */
export const DocumentRecord = Schema.Struct({
  id: DocumentId,
  kind: Schema.NonEmptyString,
  scope: DocumentScope,
  conversation: Schema.NullOr(ConversationId),
  task: Schema.NullOr(TaskId),
  /** Key within a family of documents of one kind; "" for a single one. */
  key: Schema.String,
  /** Version of the definition that wrote `value`. */
  version: Schema.NonNegativeInt,
  history: DocumentHistory,
  fork: ForkPolicy,
  value: Json,
  createdSeq: Seq,
  retiredSeq: Schema.NullOr(Seq),
  seq: Seq,
})
export type DocumentRecord = typeof DocumentRecord.Type

export const ExecutionMode = Schema.Literal("plan", "accept-edits", "auto")
export type ExecutionMode = typeof ExecutionMode.Type

export const Effort = Schema.Literal("none", "minimal", "low", "medium", "high", "max")
export type Effort = typeof Effort.Type

/** How many queued inputs of one kind a boundary takes: the oldest, or every one. */
export const QueueMode = Schema.Literal("one-at-a-time", "all")
export type QueueMode = typeof QueueMode.Type

/** Document `pi.agent`: what a conversation runs with. An absent field follows the node's defaults. */
export const AgentDocument = Schema.Struct({
  model: Schema.optional(Schema.String),
  effort: Schema.optional(Effort),
  mode: Schema.optional(ExecutionMode),
  /** Absolute path of the working directory: the workspace root. */
  cwd: Schema.optional(Schema.String),
  /** Names of the tools offered; absent means all. */
  tools: Schema.optional(Schema.Array(Schema.String)),
  /** Tools that a search has found, where only what was found is offered. */
  foundTools: Schema.optional(Schema.Array(Schema.String)),
  /** Instructions of the caller, rendered last in the prompt. */
  instructions: Schema.optional(Schema.String),
  /** Steers that join a run at once; default `one-at-a-time`. */
  steeringMode: Schema.optional(QueueMode),
  /** Follow-ups that one run answers; default `one-at-a-time`. */
  followUpMode: Schema.optional(QueueMode),
  /** Id of its harness, or an alias of it; absent: none, or what the node's default was when the conversation was opened. */
  harness: Schema.optional(Schema.NonEmptyString),
  /** Plugins beside those of the harness: names, or names with options. */
  plugins: Schema.optional(
    Schema.Array(Schema.Union(Schema.NonEmptyString, Schema.Tuple(Schema.NonEmptyString, JsonObject))),
  ),
  /** Absent: what the harness says, else the working directory. */
  workspace: Schema.optional(WorkspaceSpec),
  /** JSON Schema of the answers: they come as structured output that fits it. Null: as text again. */
  outputSchema: Schema.optional(Schema.NullOr(JsonObject)),
  /** What the conversation is for, until it is reached; in the prompt where a plugin puts it there. Null: nothing any more. */
  goal: Schema.optional(Schema.NullOr(Schema.String)),
  /** Whether the newest input asked for more thought than usual (`/boost`). */
  boost: Schema.optional(Schema.Boolean),
  /** What a question does when no client that can answer is connected: it fails at once (`ask`, default), or it waits for one. */
  questions: Schema.optional(Schema.Literal("ask", "wait")),
  /** Settings of this session alone, over those of the node: what a person allowed or rejected for good is in `permissions`. */
  settingsOverride: Schema.optional(JsonObject),
  /** What it and all its subagents together may take. */
  budget: Schema.optional(Budget),
  /** In a subagent's conversation, written by the engine: its place, and the highest mode that it may ever have. */
  subagent: Schema.optional(
    Schema.Struct({
      role: SubagentRole,
      /** 1 below a person's conversation. */
      depth: Schema.Int.pipe(Schema.positive()),
      /** The conversation at the top, whose budget counts. */
      root: ConversationId,
      maxMode: Schema.optional(ExecutionMode),
    }),
  ),
})
export type AgentDocument = typeof AgentDocument.Type

/** Document `pi.usage`: tokens per `provider/model`, the responses that took them, and per tool those that its results report. */
export const UsageDocument = Schema.Struct({
  models: Schema.Record({ key: Schema.String, value: Usage }),
  tools: Schema.optional(Schema.Record({ key: Schema.String, value: Usage })),
  /** Model responses. */
  turns: Schema.optional(Schema.NonNegativeInt),
  /** The same of all subagents that have ended, and of theirs. */
  subagents: Schema.optional(
    Schema.Struct({ models: Schema.Record({ key: Schema.String, value: Usage }), turns: Schema.NonNegativeInt }),
  ),
})
export type UsageDocument = typeof UsageDocument.Type

/** Document `pi.provider`: the provider-facing session id (UUIDv7), for prompt-cache affinity. */
export const ProviderDocument = Schema.Struct({ sessionId: Schema.String })
export type ProviderDocument = typeof ProviderDocument.Type

/** Document `pi.live`: the run in progress as far as it was flushed. */
export const LiveDocument = Schema.Struct({
  generation: Schema.NullOr(
    Schema.Struct({
      task: TaskId,
      model: Schema.String,
      text: Schema.String,
      thinking: Schema.String,
    }),
  ),
  /** Output so far of running tool calls, by task id (bounded tails). */
  tools: Schema.Record({ key: Schema.String, value: Schema.Struct({ callId: Schema.String, output: Schema.String }) }),
  retry: Schema.NullOr(Schema.Struct({ attempt: Schema.Int, at: Schema.Int, reason: Schema.String })),
  /** Compactions that are not over. */
  compactions: Schema.optionalWith(Schema.Array(CompactionView), { default: () => [] }),
  /** The newest one that failed, until one succeeds. */
  compactionFailure: Schema.optionalWith(Schema.NullOr(CompactionFailure), { default: () => null }),
})
export type LiveDocument = typeof LiveDocument.Type

/** Document `pi.inbox`: what waits for its turn, oldest first; `whenBusy` is `write` for a write. */
export const InboxDocument = Schema.Struct({
  queued: Schema.Array(Schema.Struct({ submission: Schema.Int, whenBusy: Schema.String, preview: Schema.String })),
  notes: Schema.Array(Schema.String),
})
export type InboxDocument = typeof InboxDocument.Type

/** One thing to do. */
export const TodoItem = Schema.Struct({
  /** Unique within the list. */
  id: Schema.NonEmptyString,
  text: Schema.String,
  status: Schema.Literal("pending", "in_progress", "done"),
})
export type TodoItem = typeof TodoItem.Type

/** Document `pi.todo`: what the model set itself to do, in order. */
export const TodoDocument = Schema.Struct({
  items: Schema.Array(TodoItem),
  /** The number of the next new item, so that no id is given twice; absent: one more than the highest there is. */
  next: Schema.optional(Schema.Int),
})
export type TodoDocument = typeof TodoDocument.Type

/** Kinds of the built-in conversation documents. */
export const DocumentKind = {
  agent: "pi.agent",
  provider: "pi.provider",
  live: "pi.live",
  todo: "pi.todo",
  inbox: "pi.inbox",
  usage: "pi.usage",
} as const
