/**
 * One write of a document, as a commit carries it.
 */
import type { DocumentHistory, DocumentScope, ForkPolicy } from "./document.ts"
import type { PatchOperation } from "./document-patch.ts"
import type { ConversationId, DocumentId, Seq, TaskId } from "./ids.ts"
import type { Json } from "./json.ts"

/**
 * Sets a document's whole value; creates the document when `id` is new. `retire` ends it. `history` and `fork` are those of the first
 * write for as long as the document lives; a write of an older `version` than the stored one is refused as `Conflict`.
 */
export interface DocumentWrite {
  readonly id: DocumentId
  readonly kind: string
  readonly scope: DocumentScope
  readonly conversation: ConversationId | null
  readonly task: TaskId | null
  readonly key: string
  readonly version: number
  readonly history: DocumentHistory
  readonly fork: ForkPolicy
  readonly value: Json
  /**
   * How a `rewindable` document remembers this write: as operations on the value before it. Absent, or where no revision of an earlier
   * commit is there to continue: as the whole value.
   */
  readonly revision?: { readonly type: "delta"; readonly operations: ReadonlyArray<PatchOperation> }
  /** The commit that wrote the value from which this one was made; refused as `Conflict` where another one came in between. */
  readonly since?: Seq
  readonly retire?: boolean
}
