/**
 * Reads of documents and their revisions.
 */
import { decodeDocument, decodeRevision } from "../decode.ts"
import type { DocumentReads } from "../document-port.ts"
import type { Reading } from "../reading.ts"
import type { StoreReads } from "../store.ts"
import { encodeText } from "./text.ts"

const columns =
  'id, kind, scope, conversation, task, key, version, history, fork, value, created_seq AS "createdSeq", retired_seq AS "retiredSeq", seq'

export const documentStatements = {
  document: `SELECT ${columns} FROM documents WHERE id = $1`,
  documents: `SELECT ${columns} FROM documents WHERE conversation = $1 AND retired_seq IS NULL ORDER BY id`,
  findInConversation: `SELECT ${columns} FROM documents WHERE conversation = $1 AND kind = $2 AND key = $3 AND coalesce(task, 0) = 0 AND retired_seq IS NULL`,
  findOfTask: `SELECT ${columns} FROM documents WHERE scope = 'task' AND task = $1 AND kind = $2 AND key = $3 AND retired_seq IS NULL`,
  globalDocument: `SELECT ${columns} FROM documents WHERE scope = 'global' AND kind = $1 AND key = $2 AND retired_seq IS NULL`,
  familyInConversation: `SELECT ${columns} FROM documents WHERE conversation = $1 AND kind = $2 AND retired_seq IS NULL AND scope = 'conversation' ORDER BY id`,
  familyOfTask: `SELECT ${columns} FROM documents WHERE scope = 'task' AND task = $1 AND kind = $2 AND retired_seq IS NULL ORDER BY id`,
  globalFamily: `SELECT ${columns} FROM documents WHERE scope = 'global' AND kind = $1 AND retired_seq IS NULL ORDER BY id`,
  documentsAt: `SELECT ${columns} FROM documents WHERE conversation = $1 AND created_seq <= $2 AND (retired_seq IS NULL OR retired_seq > $2) ORDER BY id`,
  documentRevisions: `SELECT document, seq, type, version, body FROM document_revisions WHERE document = $1 AND seq <= $2
    AND seq >= (SELECT seq FROM document_revisions WHERE document = $1 AND seq <= $2 AND type = 'base' ORDER BY seq DESC LIMIT 1) ORDER BY seq`,
} as const

export const documentReads = ({
  many,
  one,
}: Reading): DocumentReads & Pick<StoreReads, "documents" | "globalDocument"> => ({
  document: (id) => one(documentStatements.document, [id], decodeDocument),
  documents: (conversation) => many(documentStatements.documents, [conversation], decodeDocument),
  globalDocument: (kind, key) =>
    one(documentStatements.globalDocument, [encodeText(kind), encodeText(key)], decodeDocument),
  findDocument: ({ conversation, key, kind, scope, task }) => {
    const address = [encodeText(kind), encodeText(key)]
    if (scope === "conversation")
      return one(documentStatements.findInConversation, [conversation, ...address], decodeDocument)
    if (scope === "task") return one(documentStatements.findOfTask, [task, ...address], decodeDocument)
    return one(documentStatements.globalDocument, address, decodeDocument)
  },
  documentsOf: ({ conversation, kind, scope, task }) => {
    const of = encodeText(kind)
    if (scope === "conversation")
      return many(documentStatements.familyInConversation, [conversation, of], decodeDocument)
    if (scope === "task") return many(documentStatements.familyOfTask, [task, of], decodeDocument)
    return many(documentStatements.globalFamily, [of], decodeDocument)
  },
  documentsAt: (conversation, seq) => many(documentStatements.documentsAt, [conversation, seq], decodeDocument),
  documentRevisions: (document, seq) => many(documentStatements.documentRevisions, [document, seq], decodeRevision),
})
