/**
 * Documents for applications and tools: reads of what is and of what was, drafts, and updates in commits of their own.
 */
import { Context, Effect, Either, Layer } from "effect"
import type { Draft } from "immer"
import type { DocumentRecord, DocumentScope } from "../../domain/document.ts"
import { type DocumentDefinition, decodeDocument } from "../../domain/document-definition.ts"
import { noTail, tailOf } from "../../domain/document-revision.ts"
import type { EntryId, Seq } from "../../domain/ids.ts"
import type { DocumentAddress } from "../document-port.ts"
import type { CommitError, ReadError } from "../errors.ts"
import { type DocumentWrite, Store, type StoreService } from "../store.ts"
import { type DocumentDraft, documentDraft } from "./draft.ts"
import {
  documentName,
  EntryNotVisible,
  HistoryNotKept,
  InvalidDocument,
  type NewerDocument,
  storedFault,
} from "./errors.ts"
import { type StoredValue, storedValueAt } from "./history.ts"
import { addressOf, type DocumentOwner, type DocumentTarget, familyOf } from "./target.ts"
import { isVisible } from "./visibility.ts"

/** Why a document was not read. */
export type DocumentReadError = ReadError | NewerDocument

/** Commits of others that may come in between before an update gives up. */
const conflictsBorne = 16

export interface DocumentsService {
  /** The value, the definition's initial one where nothing was written. */
  readonly get: <A, I, Scope extends DocumentScope>(
    definition: DocumentDefinition<A, I, Scope>,
    target: DocumentTarget<Scope>,
  ) => Effect.Effect<A, DocumentReadError>
  /** The members of a family, in the order in which they were created. */
  readonly family: <A, I, Scope extends DocumentScope>(
    definition: DocumentDefinition<A, I, Scope>,
    owner: DocumentOwner<Scope>,
  ) => Effect.Effect<ReadonlyArray<{ readonly key: string; readonly value: A }>, DocumentReadError>
  /** The value right after the commit `seq`, the initial one where there was none. */
  readonly documentAt: <A, I, Scope extends DocumentScope>(
    definition: DocumentDefinition<A, I, Scope>,
    target: DocumentTarget<Scope>,
    seq: Seq,
  ) => Effect.Effect<A, DocumentReadError | HistoryNotKept>
  /** The value right after the commit that wrote an entry which the conversation shows; of the entry's own conversation. */
  readonly snapshotAsOf: <A, I>(
    definition: DocumentDefinition<A, I, "conversation">,
    target: DocumentTarget<"conversation">,
    entry: EntryId,
  ) => Effect.Effect<A, DocumentReadError | HistoryNotKept | EntryNotVisible>
  /** A draft of the document, for a commit of the caller's. */
  readonly draft: <A, I, Scope extends DocumentScope>(
    definition: DocumentDefinition<A, I, Scope>,
    target: DocumentTarget<Scope>,
  ) => Effect.Effect<DocumentDraft<A>, DocumentReadError | CommitError>
  /** The write of a draft; null where it changes nothing. */
  readonly write: <A, I, Scope extends DocumentScope>(
    definition: DocumentDefinition<A, I, Scope>,
    draft: DocumentDraft<A>,
  ) => Effect.Effect<DocumentWrite | null, InvalidDocument>
  /** Changes a document in a commit of its own, and gives the value that it has then. Made again where another commit came in between. */
  readonly update: <A, I, Scope extends DocumentScope>(
    definition: DocumentDefinition<A, I, Scope>,
    target: DocumentTarget<Scope>,
    change: (value: Draft<A>) => void,
  ) => Effect.Effect<A, DocumentReadError | CommitError | InvalidDocument>
}

/** Documents over the one writer of a database. */
export class Documents extends Context.Tag("super-pi/Documents")<Documents, DocumentsService>() {
  static readonly layer: Layer.Layer<Documents, never, Store> = Layer.effect(
    Documents,
    Effect.map(Store, (store) => makeDocuments(store)),
  )
}

export const makeDocuments = (store: StoreService): DocumentsService => {
  const decoded = <A, I>(
    definition: DocumentDefinition<A, I>,
    record: DocumentRecord,
    stored: StoredValue,
  ): Effect.Effect<A, DocumentReadError> =>
    Either.match(decodeDocument(definition, stored.version, stored.value), {
      onLeft: (fault) => Effect.fail(storedFault(store.location, record, definition.version, fault)),
      onRight: (value) => Effect.succeed(value),
    })

  const get: DocumentsService["get"] = (definition, target) =>
    Effect.flatMap(store.findDocument(addressOf(definition, target)), (record) =>
      record === null ? Effect.sync(definition.initial) : decoded(definition, record, record),
    )

  /** The incarnation at an address that was alive right after `seq`. Retired ones are found by their conversation alone. */
  const aliveAt = (
    address: DocumentAddress,
    seq: Seq,
  ): Effect.Effect<DocumentRecord | null, ReadError | HistoryNotKept> =>
    Effect.gen(function* () {
      if (address.conversation !== null) {
        const records = yield* store.documentsAt(address.conversation, seq)
        return (
          records.find(
            ({ key, kind, scope, task }) =>
              kind === address.kind && key === address.key && scope === address.scope && task === address.task,
          ) ?? null
        )
      }
      const live = yield* store.findDocument(address)
      if (live !== null && live.createdSeq <= seq) return live
      const detail = "outside a conversation only the live incarnation is looked at, and it is newer"
      return yield* new HistoryNotKept({ document: documentName(address), seq, detail })
    })

  const documentAt: DocumentsService["documentAt"] = (definition, target, seq) =>
    Effect.gen(function* () {
      const record = yield* aliveAt(addressOf(definition, target), seq)
      if (record === null) return definition.initial()
      return yield* decoded(definition, record, yield* storedValueAt(store, record, seq))
    })

  const draft: DocumentsService["draft"] = (definition, target) =>
    Effect.gen(function* () {
      const address = addressOf(definition, target)
      const record = yield* store.findDocument(address)
      if (record === null) {
        const [id] = yield* store.mint("document", 1)
        if (id === undefined) return yield* Effect.dieMessage("the store minted fewer ids than asked for")
        return yield* opened(definition, documentDraft(definition, { record, id, address }), null)
      }
      const tail = record.history === "latest" ? noTail : tailOf(yield* store.documentRevisions(record.id, record.seq))
      return yield* opened(definition, documentDraft(definition, { record, tail }), record)
    })

  const opened = <A, I>(
    definition: DocumentDefinition<A, I>,
    result: ReturnType<typeof documentDraft<A, I>>,
    record: DocumentRecord | null,
  ): Effect.Effect<DocumentDraft<A>, DocumentReadError> => {
    if (Either.isRight(result)) return Effect.succeed(result.right)
    return record === null
      ? Effect.dieMessage(`document ${definition.kind}: its initial value is none of its schema`)
      : Effect.fail(storedFault(store.location, record, definition.version, result.left))
  }

  const write: DocumentsService["write"] = ({ kind }, { write: make }) =>
    Either.match(make(), {
      onLeft: (fault) =>
        new InvalidDocument({ document: kind, detail: fault.type === "invalid" ? fault.detail : "newer" }),
      onRight: (made) => Effect.succeed(made),
    })

  const update: DocumentsService["update"] = (definition, target, change) =>
    Effect.gen(function* () {
      const edited = (yield* draft(definition, target)).edit(change)
      const made = yield* write(definition, edited)
      if (made !== null) yield* store.commit({ documents: [made] })
      return edited.value
    }).pipe(Effect.retry({ while: (error) => error._tag === "Conflict", times: conflictsBorne }))

  return {
    get,
    documentAt,
    draft,
    write,
    update,
    family: (definition, owner) =>
      Effect.flatMap(store.documentsOf(familyOf(definition, owner)), (records) =>
        Effect.forEach(records, (record) =>
          Effect.map(decoded(definition, record, record), (value) => ({ key: record.key, value })),
        ),
      ),
    snapshotAsOf: (definition, target, id) =>
      Effect.gen(function* () {
        const { conversation } = target
        const entry = yield* store.entry(id)
        if (entry === null || !(yield* isVisible(store, conversation, entry))) {
          return yield* new EntryNotVisible({ conversation, entry: id })
        }
        return yield* documentAt(definition, { ...target, conversation: entry.conversation }, entry.seq)
      }),
  }
}
