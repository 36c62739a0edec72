/**
 * Documents in SQLite: statements, and what a commit does with them inside the writer's transaction.
 */
import { errorCode } from "../../domain/error-code.ts"
import { decodeDocument, decodeRevision } from "../decode.ts"
import type { DocumentReads } from "../document-port.ts"
import { Conflict } from "../errors.ts"
import { json } from "../json.ts"
import type { Reading } from "../reading.ts"
import type { DocumentWrite, StoreReads } from "../store.ts"
import type { Database } from "./connection.ts"
import type { Param } from "./encode.ts"
import { isDuplicate } from "./failures.ts"

const documentColumns =
  "id, kind, scope, conversation, task, key, version, history, fork, value, created_seq AS createdSeq, retired_seq AS retiredSeq, seq"

export const documentReadStatements = {
  document: `SELECT ${documentColumns} FROM documents WHERE id = ?`,
  documents: `SELECT ${documentColumns} FROM documents WHERE conversation = ? AND retired_seq IS NULL ORDER BY id`,
  globalDocument: `SELECT ${documentColumns} FROM documents WHERE scope = 'global' AND kind = ? AND key = ? AND retired_seq IS NULL`,
  findInConversation: `SELECT ${documentColumns} FROM documents WHERE conversation = ? AND kind = ? AND key = ? AND ifnull(task, 0) = 0 AND retired_seq IS NULL`,
  findOfTask: `SELECT ${documentColumns} FROM documents WHERE scope = 'task' AND task = ? AND kind = ? AND key = ? AND retired_seq IS NULL`,
  familyInConversation: `SELECT ${documentColumns} FROM documents WHERE conversation = ? AND kind = ? AND retired_seq IS NULL AND scope = 'conversation' ORDER BY +id`,
  familyOfTask: `SELECT ${documentColumns} FROM documents WHERE scope = 'task' AND task = ? AND kind = ? AND retired_seq IS NULL ORDER BY id`,
  globalFamily: `SELECT ${documentColumns} FROM documents WHERE scope = 'global' AND kind = ? AND retired_seq IS NULL ORDER BY id`,
  documentsAt: `SELECT ${documentColumns} FROM documents WHERE conversation = ? AND created_seq <= ? AND ifnull(retired_seq, ${Number.MAX_SAFE_INTEGER}) > ? ORDER BY id`,
  documentRevisions:
    "SELECT document, seq, type, version, body FROM document_revisions WHERE document = ? AND seq >= (SELECT seq FROM document_revisions WHERE document = ? AND seq <= ? AND type = 'base' ORDER BY seq DESC LIMIT 1) AND seq <= ? ORDER BY seq",
} as const

export const documentWriteStatements = {
  documentUpdate:
    "UPDATE documents SET version = ?, value = ?, seq = ? WHERE id = ? AND retired_seq IS NULL AND history = ? AND version <= ? AND seq = ifnull(?, seq)",
  documentInsert:
    "INSERT INTO documents (id, kind, scope, conversation, task, key, version, history, fork, value, created_seq, retired_seq, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  documentRetire: "UPDATE documents SET retired_seq = ? WHERE id = ?",
  documentNow: "SELECT history, version, seq, retired_seq AS retiredSeq FROM documents WHERE id = ?",
  newestRevision: "SELECT max(seq) FROM document_revisions WHERE document = ?",
  // a document that is set twice in one commit has one revision of it, the last value
  revision:
    "INSERT INTO document_revisions (document, seq, type, version, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (document, seq) DO UPDATE SET type = excluded.type, version = excluded.version, body = excluded.body",
} as const

/** One write as parameters. */
export interface DocumentRow {
  readonly id: number
  /** id, kind, scope, conversation, task, key, version, history, fork */
  readonly definition: ReadonlyArray<Param>
  readonly version: number
  readonly value: string
  readonly history: DocumentWrite["history"]
  readonly operations: string | null
  readonly since: number | null
  readonly retire: boolean
  readonly name: string
}

export const encodeDocument = (d: DocumentWrite): DocumentRow => ({
  id: d.id,
  definition: [d.id, d.kind, d.scope, d.conversation, d.task, d.key, d.version, d.history, d.fork],
  version: d.version,
  value: json(d.value, `document ${d.id}.value`),
  history: d.history,
  operations: d.revision === undefined ? null : json(d.revision.operations, `document ${d.id}.revision`),
  since: d.since ?? null,
  retire: d.retire === true,
  name: d.key === "" ? d.kind : `${d.kind} ${d.key}`,
})

interface Now {
  readonly history: DocumentWrite["history"]
  readonly version: number
  readonly seq: number
  readonly retiredSeq: number | null
}

/** The function that writes one document; throws `Conflict`. */
export const prepareDocumentWrites = (db: Database): ((document: DocumentRow, seq: number) => void) => {
  const update = db.prepare<Array<Param>>(documentWriteStatements.documentUpdate)
  const insert = db.prepare<Array<Param>>(documentWriteStatements.documentInsert)
  const retire = db.prepare<[number, number]>(documentWriteStatements.documentRetire)
  const now = db.prepare<[number], Now>(documentWriteStatements.documentNow)
  const newest = db.prepare<[number], number | null>(documentWriteStatements.newestRevision).pluck()
  const revise = db.prepare<Array<Param>>(documentWriteStatements.revision)

  const create = (document: DocumentRow, seq: number): void => {
    try {
      insert.run(...document.definition, document.value, seq, null, seq)
    } catch (cause) {
      if (!isDuplicate(cause) || errorCode(cause) !== "SQLITE_CONSTRAINT_UNIQUE") throw cause
      const detail = "a live one exists already; retire it first"
      throw new Conflict({ what: `document ${document.name}`, detail })
    }
  }

  /** Sets the value, or creates the document; gives the history of the incarnation, which its first write decides. */
  const set = (document: DocumentRow, seq: number): DocumentWrite["history"] => {
    const { history, id, name, since, value, version } = document
    if (update.run(version, value, seq, id, history, version, since).changes === 1) return history
    const before = now.get(id)
    if (before === undefined) {
      if (since !== null) throw new Conflict({ what: `document ${name}`, detail: "it does not exist" })
      create(document, seq)
      return history
    }
    if (before.retiredSeq !== null) throw new Conflict({ what: `document ${id}`, detail: "it is retired" })
    if (since !== null && before.seq !== since) {
      const detail = `expected it as of commit ${since}, it changed in commit ${before.seq}`
      throw new Conflict({ what: `document ${name}`, detail })
    }
    if (before.version > version) {
      const detail = `expected version ${before.version} or newer, got ${version}: newer code wrote it`
      throw new Conflict({ what: `document ${name}`, detail })
    }
    update.run(version, value, seq, id, before.history, version, null)
    return before.history
  }

  /** A delta continues the revision before it, of an earlier commit; where there is none the whole value is stored. */
  const continues = (id: number, seq: number): boolean => {
    const last = newest.get(id)
    return typeof last === "number" && last < seq
  }

  return (document, seq) => {
    const { id, operations, value, version } = document
    if (set(document, seq) === "rewindable") {
      if (operations !== null && continues(id, seq)) revise.run(id, seq, "delta", version, operations)
      else revise.run(id, seq, "base", version, value)
    }
    if (document.retire) retire.run(seq, id)
  }
}

export const documentReads = ({
  many,
  one,
}: Reading): DocumentReads & Pick<StoreReads, "documents" | "globalDocument"> => ({
  document: (id) => one(documentReadStatements.document, [id], decodeDocument),
  documents: (conversation) => many(documentReadStatements.documents, [conversation], decodeDocument),
  globalDocument: (kind, key) => one(documentReadStatements.globalDocument, [kind, key], decodeDocument),
  findDocument: ({ conversation, key, kind, scope, task }) => {
    if (scope === "conversation")
      return one(documentReadStatements.findInConversation, [conversation, kind, key], decodeDocument)
    if (scope === "task") return one(documentReadStatements.findOfTask, [task, kind, key], decodeDocument)
    return one(documentReadStatements.globalDocument, [kind, key], decodeDocument)
  },
  documentsOf: ({ conversation, kind, scope, task }) => {
    if (scope === "conversation")
      return many(documentReadStatements.familyInConversation, [conversation, kind], decodeDocument)
    if (scope === "task") return many(documentReadStatements.familyOfTask, [task, kind], decodeDocument)
    return many(documentReadStatements.globalFamily, [kind], decodeDocument)
  },
  documentsAt: (conversation, seq) =>
    many(documentReadStatements.documentsAt, [conversation, seq, seq], decodeDocument),
  documentRevisions: (document, seq) =>
    many(documentReadStatements.documentRevisions, [document, document, seq, seq], decodeRevision),
})
