/**
 * One entry as a conversation sees it: its own, or an ancestor's up to the fork point (context rule 3).
 */
import { Effect } from "effect"
import type { Conversation } from "../domain/conversation.ts"
import type { Entry } from "../domain/entry.ts"
import type { ConversationId, EntryId } from "../domain/ids.ts"
import type { ReadError } from "../storage/errors.ts"
import type { StoreReads } from "../storage/store.ts"

/** The entry `id` where the conversation sees it, else null. What is visible once stays visible. */
export const visibleEntry = (
  store: StoreReads,
  conversation: ConversationId,
  id: EntryId,
): Effect.Effect<Entry | null, ReadError> =>
  Effect.gen(function* () {
    const entry = yield* store.entry(id)
    if (entry === null) return null
    let at: ConversationId = conversation
    while (entry.conversation !== at) {
      const row: Conversation | null = yield* store.conversation(at)
      const parent: Conversation["parent"] = row?.parent ?? null
      if (parent === null || id > parent.entry) return null
      at = parent.conversation
    }
    return entry
  })

/** The newest entry that the conversation sees; null while there is none. */
export const newestVisible = (
  store: StoreReads,
  conversation: ConversationId,
): Effect.Effect<Entry | null, ReadError> =>
  Effect.gen(function* () {
    const [own] = yield* store.entries(conversation, { last: 1 })
    if (own !== undefined) return own
    const parent = (yield* store.conversation(conversation))?.parent ?? null
    return parent === null ? null : yield* store.entry(parent.entry)
  })
