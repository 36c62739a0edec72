/**
 * Drafts: a document as it was read, edited to what it shall be, and the write that makes it so. Pure.
 */
import { Either } from "effect"
import { type Draft, Immer } from "immer"
import type { DocumentRecord } from "../../domain/document.ts"
import {
  type DocumentDefinition,
  type DocumentFault,
  type DocumentTail,
  decodeDocument,
  encodeDocument,
  everySixtyFour,
} from "../../domain/document-definition.ts"
import { sameJson } from "../../domain/document-patch.ts"
import { changeOf } from "../../domain/document-revision.ts"
import type { DocumentId } from "../../domain/ids.ts"
import type { DocumentAddress } from "../document-port.ts"
import type { DocumentWrite } from "../store.ts"

// frozen values would freeze what the caller put in, and cost a walk over the whole value
const immer = new Immer({ autoFreeze: false })

/** What a draft stands on: the stored record with the deltas since its newest base, or a place for a new document. */
export type DraftBase =
  | { readonly record: DocumentRecord; readonly tail: DocumentTail }
  | { readonly record: null; readonly id: DocumentId; readonly address: DocumentAddress }

/** A document being changed. Every change gives a new draft; nothing is stored before {@link DocumentDraft.write} is committed. */
export interface DocumentDraft<A> {
  readonly value: A
  /** Changes the value in place; what `change` returns does not count. */
  readonly edit: (change: (value: Draft<A>) => void) => DocumentDraft<A>
  /** Sets another value. */
  readonly replace: (value: A) => DocumentDraft<A>
  /** Ends the document with this value; the next write to its address makes a new incarnation. */
  readonly retire: () => DocumentDraft<A>
  /**
   * The write for a commit, null where nothing changed, or why the value is none of the definition. It holds only for the record that the
   * draft was made from: if another commit changes the document first, the write is refused as `Conflict`.
   */
  readonly write: () => Either.Either<DocumentWrite | null, DocumentFault>
}

/** A draft of a stored document, or of a new one with its initial value. */
export const documentDraft = <A, I>(
  definition: DocumentDefinition<A, I>,
  base: DraftBase,
): Either.Either<DocumentDraft<A>, DocumentFault> =>
  base.record === null
    ? Either.right(draftOf(definition, base, definition.initial(), false))
    : Either.map(decodeDocument(definition, base.record.version, base.record.value), (value) =>
        draftOf(definition, base, value, false),
      )

const draftOf = <A, I>(
  definition: DocumentDefinition<A, I>,
  base: DraftBase,
  value: A,
  retired: boolean,
): DocumentDraft<A> => ({
  value,
  edit: (change) =>
    draftOf(
      definition,
      base,
      immer.produce(value, (draft) => {
        change(draft)
      }),
      retired,
    ),
  replace: (next) => draftOf(definition, base, next, retired),
  retire: () => draftOf(definition, base, value, true),
  write: () =>
    Either.map(encodeDocument(definition, value), (json) => {
      const { kind, version } = definition
      const retire = retired ? { retire: true } : {}
      if (base.record === null) {
        const { fork, history } = definition
        const { conversation, key, scope, task } = base.address
        return { id: base.id, kind, scope, conversation, task, key, version, history, fork, value: json, ...retire }
      }
      const { record, tail } = base
      const same = record.version === version
      if (same && !retired && sameJson(record.value, json)) return null
      const { conversation, fork, history, id, key, scope, seq, task } = record
      // a migrated value differs from the stored one in more than the edit: it starts a chain of its own
      const { operations } =
        same && history === "rewindable"
          ? changeOf(record.value, json, tail, (longer, size) =>
              definition.checkpointWhen === null
                ? everySixtyFour(longer, size)
                : definition.checkpointWhen(value, longer),
            )
          : { operations: null }
      return {
        id,
        kind,
        scope,
        conversation,
        task,
        key,
        version,
        history,
        fork,
        value: json,
        since: seq,
        ...retire,
        ...(operations === null ? {} : { revision: { type: "delta", operations } }),
      }
    }),
})
