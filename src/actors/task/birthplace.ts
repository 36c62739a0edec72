/**
 * Where a task begins: at a place of this node, so that whoever starts it need not ask another one.
 */
import { Effect } from "effect"
import { shardCount } from "../../domain/cluster.ts"
import { Busy, type Failure } from "../../domain/failure.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import { moved } from "../../domain/moved.ts"
import type { CommitError } from "../../storage/errors.ts"
import type { StoreService } from "../../storage/store.ts"
import type { SharedTasks } from "./sharing.ts"

/** The id of a new task, and the fence of its row. */
interface Born {
  readonly id: TaskId
  readonly fence: number
}

/** Ids drawn until one is at a place of ours: as many in a row as there are shards have one of each. */
const draws = [4, 32, shardCount, shardCount]

const noShards = new Busy({
  what: "task engine",
  detail: "this node holds no part of the work yet",
  retryAfterMs: 1_000,
})

const one = (store: StoreService): Effect.Effect<TaskId, CommitError> =>
  Effect.map(store.mint("task", 1), ([id]) => {
    if (id === undefined) throw new Error("the store minted no task id")
    return id
  })

/** `shared` null: every place is ours. A task of a conversation begins where that is. */
export const birthplace = (
  store: StoreService,
  shared: SharedTasks | null,
  conversation: ConversationId | null,
): Effect.Effect<Born | Failure, CommitError> =>
  Effect.gen(function* () {
    if (shared === null) return { id: yield* one(store), fence: store.epoch }
    if (shared.isEmpty) return noShards
    if (conversation !== null) {
      // One that is not there is refused by the commit.
      const place = (yield* shared.sharing.placeOfConversation(conversation)) ?? conversation
      const fence = shared.fenceAt(place)
      return fence === null ? moved(`conversation ${conversation}`) : { id: yield* one(store), fence }
    }
    for (const count of draws) {
      for (const id of yield* store.mint("task", count)) {
        const fence = shared.fenceAt(id)
        if (fence !== null) return { id, fence }
      }
    }
    return noShards
  })
