/**
 * What a document was: its stored JSON right after a commit, current or rebuilt from a base and deltas.
 */
import { Effect, Either } from "effect"
import type { DocumentRecord } from "../../domain/document.ts"
import { replay } from "../../domain/document-revision.ts"
import type { Seq } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import { CorruptRow, type ReadError } from "../errors.ts"
import type { StoreReads } from "../store.ts"
import { documentName, HistoryNotKept } from "./errors.ts"

/** A store as far as documents read it. */
export type DocumentStore = StoreReads & { readonly location: string }

export interface StoredValue {
  readonly version: number
  readonly value: Json
}

/** The JSON of an incarnation that was alive right after the commit `seq`, and the version that wrote it. */
export const storedValueAt = (
  store: DocumentStore,
  record: DocumentRecord,
  seq: Seq,
): Effect.Effect<StoredValue, ReadError | HistoryNotKept> => {
  if (record.seq <= seq) return Effect.succeed({ version: record.version, value: record.value })
  if (record.history === "latest") {
    const detail = `its history is "latest", and it changed in commit ${record.seq}`
    return new HistoryNotKept({ document: documentName(record), seq, detail })
  }
  const corrupt = (row: string, detail: string) =>
    new CorruptRow({ location: store.location, table: "document_revisions", row, detail })
  return Effect.flatMap(store.documentRevisions(record.id, seq), (revisions) => {
    if (revisions.length === 0) {
      return corrupt(`${record.id}`, `expected a base at or before commit ${seq}, got none`)
    }
    const replayed = replay(revisions)
    return Either.isRight(replayed)
      ? Effect.succeed(replayed.right)
      : corrupt(`${record.id} at ${replayed.left.seq}`, replayed.left.detail)
  })
}
