/**
 * Entries: the immutable records of a transcript.
 */
import { Schema } from "effect"
import { ConversationId, EntryId, Seq, TaskId } from "./ids.ts"
import { Json } from "./json.ts"
import { Message } from "./message.ts"

/** A non-destructive edit of an earlier entry: hide its messages, or put others in their place (context rule 4). */
export const ContextEdit = Schema.Union(
  Schema.Struct({ type: Schema.Literal("omit"), entry: EntryId }),
  Schema.Struct({ type: Schema.Literal("replace"), entry: EntryId, model: Schema.Array(Message) }),
)
export type ContextEdit = typeof ContextEdit.Type

/** Kinds that the engine writes. Applications use kinds of their own, without the `pi.` prefix. */
export const EntryKind = {
  user: "pi.user",
  assistant: "pi.assistant",
  toolResult: "pi.tool-result",
  system: "pi.system",
  reset: "pi.reset",
  compaction: "pi.compaction",
  effectSettled: "pi.effect-settled",
  edit: "pi.edit",
  /** An input that only changed choices; no model sees it. */
  command: "pi.command",
  /** What a plugin has a run go on with. */
  continue: "pi.continue",
  subagent: "pi.subagent",
  handoff: "pi.handoff",
} as const

export const Entry = Schema.Struct({
  id: EntryId,
  conversation: ConversationId,
  kind: Schema.NonEmptyString,
  /** The provider messages that it adds to the context; none for a note. */
  model: Schema.Array(Message),
  data: Schema.NullOr(Json),
  /** Where the context starts from here on: the first entry that stays verbatim (rules 1, 2). */
  head: Schema.NullOr(EntryId),
  edits: Schema.Array(ContextEdit),
  /** The task that wrote it. */
  task: Schema.NullOr(TaskId),
  createdAt: Schema.Int,
  seq: Seq,
})
export type Entry = typeof Entry.Type
