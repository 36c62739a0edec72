/**
 * Documents on plain records: what a write does to them and their revisions, and the reads. Pure.
 */
import { Either } from "effect"
import type { DocumentRecord } from "../../domain/document.ts"
import type { DocumentRevision } from "../../domain/document-revision.ts"
import type { Seq } from "../../domain/ids.ts"
import type { DocumentAddress, DocumentFamily } from "../document-port.ts"
import { Conflict } from "../errors.ts"
import type { DocumentWrite } from "../store.ts"

export interface DocumentRows {
  readonly documents: ReadonlyMap<number, DocumentRecord>
  /** By document, oldest first. */
  readonly revisions: ReadonlyMap<number, ReadonlyArray<DocumentRevision>>
}

/** A deep copy by way of JSON, as in the engines that write text. */
const stored = <A>(value: A): A => JSON.parse(JSON.stringify(value))

const conflict = (what: string, detail: string) => Either.left(new Conflict({ what, detail }))

const byId = (rows: ReadonlyArray<DocumentRecord>): ReadonlyArray<DocumentRecord> =>
  rows.toSorted((a, b) => a.id - b.id)

const within = (row: DocumentRecord, family: DocumentFamily): boolean =>
  row.scope === family.scope &&
  row.kind === family.kind &&
  (family.scope !== "conversation" || row.conversation === family.conversation) &&
  (family.scope !== "task" || row.task === family.task)

export const liveFamily = (rows: DocumentRows, family: DocumentFamily): ReadonlyArray<DocumentRecord> =>
  byId([...rows.documents.values()].filter((row) => row.retiredSeq === null && within(row, family)))

export const liveDocument = (rows: DocumentRows, address: DocumentAddress): DocumentRecord | null =>
  liveFamily(rows, address).find((row) => row.key === address.key) ?? null

export const documentsAt = (rows: DocumentRows, conversation: number, seq: number): ReadonlyArray<DocumentRecord> =>
  byId(
    [...rows.documents.values()].filter(
      (row) =>
        row.conversation === conversation && row.createdSeq <= seq && (row.retiredSeq === null || row.retiredSeq > seq),
    ),
  )

export const revisionsAt = (rows: DocumentRows, document: number, seq: number): ReadonlyArray<DocumentRevision> => {
  const until = (rows.revisions.get(document) ?? []).filter((revision) => revision.seq <= seq)
  const base = until.findLastIndex((revision) => revision.type === "base")
  return base < 0 ? [] : until.slice(base)
}

/** The rows after one write, or why it is refused. */
export const writeDocument = (
  rows: DocumentRows,
  write: DocumentWrite,
  seq: Seq,
): Either.Either<DocumentRows, Conflict> => {
  const { retire, revision: _, since, ...definition } = write
  const before = rows.documents.get(write.id)
  const name = write.key === "" ? write.kind : `${write.kind} ${write.key}`
  if (before === undefined && since !== undefined) return conflict(`document ${name}`, "it does not exist")
  if (before === undefined && liveDocument(rows, write) !== null) {
    return conflict(`document ${name}`, "a live one exists already; retire it first")
  }
  if (before !== undefined && before.retiredSeq !== null) return conflict(`document ${write.id}`, "it is retired")
  if (before !== undefined && since !== undefined && before.seq !== since) {
    return conflict(`document ${name}`, `expected it as of commit ${since}, it changed in commit ${before.seq}`)
  }
  if (before !== undefined && before.version > write.version) {
    const detail = `expected version ${before.version} or newer, got ${write.version}: newer code wrote it`
    return conflict(`document ${name}`, detail)
  }
  const retiredSeq = retire === true ? seq : null
  const record = stored<DocumentRecord>(
    before === undefined
      ? { ...definition, createdSeq: seq, retiredSeq, seq }
      : { ...before, version: write.version, value: write.value, retiredSeq, seq },
  )
  const documents = new Map(rows.documents).set(record.id, record)
  if (record.history === "latest") return Either.right({ documents, revisions: rows.revisions })
  const kept = (rows.revisions.get(record.id) ?? []).filter((revision) => revision.seq !== seq)
  const continues = kept.length > 0 && kept.length === (rows.revisions.get(record.id) ?? []).length
  const { version } = write
  const next: DocumentRevision =
    write.revision !== undefined && continues
      ? { type: "delta", seq, version, operations: stored(write.revision.operations) }
      : { type: "base", seq, version, value: record.value }
  return Either.right({ documents, revisions: new Map(rows.revisions).set(record.id, [...kept, next]) })
}
