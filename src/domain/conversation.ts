/**
 * A conversation: a scope of one transcript.
 */
import { Schema } from "effect"
import { ConversationId, EntryId, Seq, TaskId } from "./ids.ts"

export const Conversation = Schema.Struct({
  id: ConversationId,
  /** Where a fork branched off: it sees the parent's entries up to and including `entry`. */
  parent: Schema.NullOr(Schema.Struct({ conversation: ConversationId, entry: EntryId })),
  /** The task that owns it (a subagent's conversation), or null. */
  owner: Schema.NullOr(TaskId),
  /** Who created it; nobody else finds it. */
  principal: Schema.String,
  title: Schema.NullOr(Schema.String),
  /** Milliseconds since the epoch. */
  createdAt: Schema.Int,
  updatedAt: Schema.Int,
  seq: Seq,
})
export type Conversation = typeof Conversation.Type
