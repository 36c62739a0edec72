/**
 * What machines are told of harnesses and of decisions about calls.
 */
import { Schema } from "effect"
import { ExecutionMode } from "./document.ts"
import { ConversationId, EntryId, TaskId } from "./ids.ts"
import { Json } from "./json.ts"
import { TrailStep } from "./trail.ts"

/** What a harness can do, for machines: listings, `workspace.metadata`, `GET /v1/models`, ACP. */
export const HarnessCapabilities = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  description: Schema.String,
  /** Names, in order. */
  plugins: Schema.Array(Schema.String),
  tools: Schema.Array(Schema.String),
  workspace: Schema.Literal("local", "knowledge", "shared", "scratch", "none"),
  modes: Schema.Array(ExecutionMode),
})
export type HarnessCapabilities = typeof HarnessCapabilities.Type

/** The harnesses of a node. */
export const HarnessListing = Schema.Struct({
  harnesses: Schema.Array(HarnessCapabilities),
  /** What a new conversation gets where its caller names none, or null. */
  default: Schema.NullOr(Schema.String),
  /** Older ids and short names that are accepted and not listed, each with the id that it stands for. */
  aliases: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String })),
})
export type HarnessListing = typeof HarnessListing.Type

/** Why a call became what it became. */
export const CallDecisions = Schema.Struct({
  conversation_id: ConversationId,
  call_id: Schema.String,
  tool: Schema.String,
  /** Null for a call that was blocked before it had a task. */
  task_id: Schema.NullOr(TaskId),
  arguments: Json,
  /** `blocked`: it never ran; `open`: it has no result yet. */
  outcome: Schema.Literal("completed", "failed", "blocked", "open"),
  /** The result's entry, or null while there is none. */
  entry_id: Schema.NullOr(EntryId),
  /** What the model was told, where it was refused or failed; null otherwise. */
  reason: Schema.NullOr(Schema.String),
  trail: Schema.Array(TrailStep),
})
export type CallDecisions = typeof CallDecisions.Type
