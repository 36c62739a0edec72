/**
 * A line of a listing of conversations, from its stored form to that of the contract. Pure.
 */
import type { ConversationSummary } from "../storage/store.ts"
import type { SessionSummary } from "./contract.ts"

export const sessionSummary = ({ busy, conversation, entries, parked }: ConversationSummary): SessionSummary => ({
  conversation_id: conversation.id,
  title: conversation.title,
  created_at: conversation.createdAt,
  updated_at: conversation.updatedAt,
  entries,
  busy,
  parked,
  forked_from: conversation.parent?.conversation ?? null,
})
