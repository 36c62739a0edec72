/**
 * The documents that a fork starts with. Every row says itself how it forks, so kinds whose definition is missing are forked the same.
 */
import { Effect } from "effect"
import type { DocumentRecord } from "../../domain/document.ts"
import type { Entry } from "../../domain/entry.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { CommitError, ReadError } from "../errors.ts"
import type { DocumentWrite, StoreService } from "../store.ts"
import type { HistoryNotKept } from "./errors.ts"
import { type StoredValue, storedValueAt } from "./history.ts"

/**
 * The writes that give `into` its documents, for the commit that creates it as a fork of `conversation` at the visible entry `entry`.
 * By each row's policy: `initial` writes nothing; `current` copies the value that the document of `conversation` has now; `asOf` the value
 * right after the commit that wrote the entry, of the conversation that the entry belongs to (an ancestor, where it is inherited). An
 * `asOf` document that keeps no history and has changed since starts afresh. Values are copied as they are stored, with their version.
 */
export const forkDocuments = (
  store: StoreService,
  from: { readonly conversation: ConversationId; readonly entry: Entry },
  into: ConversationId,
): Effect.Effect<ReadonlyArray<DocumentWrite>, CommitError | ReadError> =>
  Effect.gen(function* () {
    const now = yield* store.documents(from.conversation)
    const current = now.filter((record) => record.scope === "conversation" && record.fork === "current")
    const then = yield* store.documentsAt(from.entry.conversation, from.entry.seq)
    const asOf = then.filter(
      (record) => record.scope === "conversation" && record.fork === "asOf" && !current.some(sameAddress(record)),
    )
    const rebuilt = yield* Effect.forEach(asOf, (record) =>
      storedValueAt(store, record, from.entry.seq).pipe(
        Effect.map((stored) => ({ record, stored })),
        Effect.catchTag("HistoryNotKept", (_: HistoryNotKept) => Effect.succeed(null)),
      ),
    )
    const copies = [
      ...current.map((record): Copy => ({ record, stored: record })),
      ...rebuilt.filter((copy) => copy !== null),
    ]
    const ids = copies.length === 0 ? [] : yield* store.mint("document", copies.length)
    return yield* Effect.forEach(copies, ({ record, stored }, index) => {
      const id = ids[index]
      if (id === undefined) return Effect.dieMessage("the store minted fewer ids than asked for")
      const { fork, history, key, kind, scope } = record
      const { value, version } = stored
      return Effect.succeed<DocumentWrite>({
        id,
        kind,
        scope,
        conversation: into,
        task: null,
        key,
        version,
        history,
        fork,
        value,
      })
    })
  })

/** An incarnation that came later, under another policy, takes the place of the one before it. */
const sameAddress =
  (one: DocumentRecord) =>
  (other: DocumentRecord): boolean =>
    one.kind === other.kind && one.key === other.key

interface Copy {
  readonly record: DocumentRecord
  readonly stored: StoredValue
}
