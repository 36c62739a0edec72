/**
 * Documents in the storage port: addresses, and reads of what is and of what was.
 */
import type { Effect } from "effect"
import type { DocumentRecord, DocumentScope } from "../domain/document.ts"
import type { DocumentRevision } from "../domain/document-revision.ts"
import type { ConversationId, DocumentId, Seq, TaskId } from "../domain/ids.ts"
import type { ReadError } from "./errors.ts"

/** The documents of one kind in one place. `conversation` counts for the scope `conversation`, `task` for the scope `task`. */
export interface DocumentFamily {
  readonly scope: DocumentScope
  readonly conversation: ConversationId | null
  readonly task: TaskId | null
  readonly kind: string
}

/** The place of one document; at most one live incarnation is there at a time. */
export interface DocumentAddress extends DocumentFamily {
  /** "" for a single one. */
  readonly key: string
}

export interface DocumentReads {
  /** An incarnation, live or retired. */
  readonly document: (id: DocumentId) => Effect.Effect<DocumentRecord | null, ReadError>
  /** The live incarnation at an address. */
  readonly findDocument: (address: DocumentAddress) => Effect.Effect<DocumentRecord | null, ReadError>
  /** The live members of a family, in the order in which they were created. */
  readonly documentsOf: (family: DocumentFamily) => Effect.Effect<ReadonlyArray<DocumentRecord>, ReadError>
  /** The conversation's incarnations that were alive right after the commit `seq`, as they are now, in the order of their ids. */
  readonly documentsAt: (
    conversation: ConversationId,
    seq: Seq,
  ) => Effect.Effect<ReadonlyArray<DocumentRecord>, ReadError>
  /**
   * The revisions that make up a document's value right after the commit `seq`: the newest base at or before it, then the deltas up to
   * it. Empty where none is kept.
   */
  readonly documentRevisions: (
    document: DocumentId,
    seq: Seq,
  ) => Effect.Effect<ReadonlyArray<DocumentRevision>, ReadError>
}
