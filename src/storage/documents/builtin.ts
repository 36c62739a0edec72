/**
 * Writes of the built-in conversation documents, with the version and the policies of their definitions.
 */
import { type BuiltinKind, builtinDocuments } from "../../domain/builtin-documents.ts"
import type { ConversationId, DocumentId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import type { DocumentWrite } from "../store.ts"

/** Sets the whole value of a conversation's built-in document. */
export const builtinWrite = (
  kind: BuiltinKind,
  id: DocumentId,
  conversation: ConversationId,
  value: Json,
): DocumentWrite => {
  const { fork, history, scope, version } = builtinDocuments[kind]
  return { id, kind, scope, conversation, task: null, key: "", version, history, fork, value }
}
