/**
 * Which entries a conversation shows (context rule 3).
 */
import { Effect } from "effect"
import type { Entry } from "../../domain/entry.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { ReadError } from "../errors.ts"
import type { DocumentStore } from "./history.ts"

/** Whether `conversation` shows `entry`: as its own, or as an ancestor's up to every fork point on the way there. */
export const isVisible = (
  store: DocumentStore,
  conversation: ConversationId,
  entry: Entry,
): Effect.Effect<boolean, ReadError> => {
  if (entry.conversation === conversation) return Effect.succeed(true)
  return Effect.flatMap(store.conversation(conversation), (row) =>
    row === null || row.parent === null || row.parent.conversation >= conversation || entry.id > row.parent.entry
      ? Effect.succeed(false)
      : isVisible(store, row.parent.conversation, entry),
  )
}
