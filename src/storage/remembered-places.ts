/**
 * Places of conversations, read once each: a place never changes.
 */
import { Effect } from "effect"
import type { ConversationId } from "../domain/ids.ts"
import type { ClusterStoreService } from "./cluster-port.ts"

/** Places remembered at most. */
const kept = 50_000

/** The same service, which asks the database for a conversation's place only where it does not know it. */
export const rememberPlaces = (store: ClusterStoreService): ClusterStoreService => {
  const places = new Map<ConversationId, number>()
  return {
    ...store,
    placeOfConversation: (id) =>
      Effect.suspend(() => {
        const known = places.get(id)
        if (known !== undefined) return Effect.succeed(known)
        return Effect.tap(store.placeOfConversation(id), (place) => {
          if (place === null) return
          if (places.size >= kept) places.clear()
          places.set(id, place)
        })
      }),
  }
}
