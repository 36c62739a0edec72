/**
 * What can go wrong with documents beside storage itself.
 */
import { Schema } from "effect"
import type { DocumentRecord } from "../../domain/document.ts"
import type { DocumentFault } from "../../domain/document-definition.ts"
import { ConversationId, EntryId, Seq } from "../../domain/ids.ts"
import { CorruptRow } from "../errors.ts"

/** A `latest` document was asked for a value that it no longer has. */
export class HistoryNotKept extends Schema.TaggedError<HistoryNotKept>()("HistoryNotKept", {
  document: Schema.String,
  /** The commit after which the value was asked for. */
  seq: Seq,
  detail: Schema.String,
}) {
  override get message() {
    return `document ${this.document} as of commit ${this.seq}: ${this.detail}`
  }
}

/** A newer version of the code wrote the document. It is left untouched. */
export class NewerDocument extends Schema.TaggedError<NewerDocument>()("NewerDocument", {
  location: Schema.String,
  document: Schema.String,
  found: Schema.Int,
  supported: Schema.Int,
}) {
  override get message() {
    return `${this.location}: document ${this.document} has version ${this.found}, this program knows up to ${this.supported}; update it`
  }
}

/** The conversation does not show the entry: not its own, and not before the fork points of its ancestors. */
export class EntryNotVisible extends Schema.TaggedError<EntryNotVisible>()("EntryNotVisible", {
  conversation: ConversationId,
  entry: EntryId,
}) {
  override get message() {
    return `entry: expected one that conversation ${this.conversation} shows, got ${this.entry}`
  }
}

/** A draft was edited to something that its definition refuses. Nothing was written. */
export class InvalidDocument extends Schema.TaggedError<InvalidDocument>()("InvalidDocument", {
  document: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `document ${this.document}: ${this.detail}`
  }
}

/** A document's kind and key, for messages. */
export const documentName = ({ key, kind }: { readonly kind: string; readonly key: string }): string =>
  key === "" ? kind : `${kind} ${key}`

/** A stored value that its definition does not take. */
export const storedFault = (
  location: string,
  record: DocumentRecord,
  supported: number,
  fault: DocumentFault,
): CorruptRow | NewerDocument =>
  fault.type === "newer"
    ? new NewerDocument({ location, document: documentName(record), found: fault.found, supported })
    : new CorruptRow({ location, table: "documents", row: `${record.id} (${record.kind})`, detail: fault.detail })
