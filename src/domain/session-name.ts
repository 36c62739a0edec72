/**
 * Names by which the clients of a protocol call conversations: a gateway session, an editor's session, a front end's thread.
 *
 * 1. A name is unique per principal and namespace. It names one conversation; a conversation may have many names.
 * 2. A conversation that is created under a name is committed with it: both or neither.
 * 3. A name that was not used for its time to live is forgotten, and where a namespace has too many, the ones not used the longest.
 *    The conversation stays.
 */
import { Schema } from "effect"
import { ConversationId } from "./ids.ts"

/** Who names: one per protocol. */
export const NameSpace = Schema.Literal("openai", "acp", "agui", "mcp")
export type NameSpace = typeof NameSpace.Type

/** A name as a client chose it: 1 to 256 characters. */
export const SessionName = Schema.String.pipe(Schema.minLength(1), Schema.maxLength(256))

/** A name as it is stored. Times in milliseconds since the epoch. */
export const NameRecord = Schema.Struct({
  namespace: NameSpace,
  principal: Schema.String,
  name: SessionName,
  conversation: ConversationId,
  createdAt: Schema.Int,
  /** When a client last called it by this name; exact to an hour. */
  usedAt: Schema.Int,
})
export type NameRecord = typeof NameRecord.Type

/** A name as listings show it. */
export const NamedSession = Schema.Struct({
  name: SessionName,
  conversation_id: ConversationId,
  title: Schema.NullOr(Schema.String),
  /** Its working directory, where it has one of its own. */
  cwd: Schema.NullOr(Schema.String),
  created_at: Schema.Int,
  /** When the conversation last changed. */
  updated_at: Schema.Int,
})
export type NamedSession = typeof NamedSession.Type
