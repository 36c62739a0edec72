/**
 * What a ledger of tasks is made of.
 */
import type { Effect } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { StoreService } from "../../storage/store.ts"
import type { Catalog } from "./catalog.ts"
import type { TaskFeed } from "./feed.ts"
import type { TaskSharing } from "./sharing.ts"

export interface LedgerParts {
  /** Observed by `feed`. */
  readonly store: StoreService
  readonly feed: TaskFeed
  readonly catalog: Catalog
  /** Name of this node, on the rows that it runs. */
  readonly node: string
  /** Cancels the work of a conversation that an aborted task owns. */
  readonly cancelConversation: (id: ConversationId) => Effect.Effect<void>
  /** Null: the node is alone, and every task is its own. */
  readonly sharing: TaskSharing | null
}
