/**
 * Where documents are: targets as callers name them, addresses as the store knows them. Pure.
 */
import type { DocumentScope } from "../../domain/document.ts"
import type { DocumentDefinition } from "../../domain/document-definition.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { DocumentAddress, DocumentFamily } from "../document-port.ts"

/** What the documents of a scope belong to. A task's document also names the task's conversation, and goes with it; null where there is none. */
export type DocumentOwner<Scope extends DocumentScope> = {
  readonly global: { readonly conversation?: never; readonly task?: never }
  readonly conversation: { readonly conversation: ConversationId; readonly task?: never }
  readonly task: { readonly conversation: ConversationId | null; readonly task: TaskId }
}[Scope]

/** One document: its owner, and its key where its kind is a family. */
export type DocumentTarget<Scope extends DocumentScope> = DocumentOwner<Scope> & { readonly key?: string }

export const familyOf = <A, I, Scope extends DocumentScope>(
  { kind, scope }: DocumentDefinition<A, I, Scope>,
  owner: DocumentOwner<Scope>,
): DocumentFamily => ({ scope, kind, conversation: owner.conversation ?? null, task: owner.task ?? null })

/** Throws a `TypeError` where the key does not fit: none for a family, one for a single document. */
export const addressOf = <A, I, Scope extends DocumentScope>(
  definition: DocumentDefinition<A, I, Scope>,
  target: DocumentTarget<Scope>,
): DocumentAddress => {
  const key = target.key ?? ""
  if (definition.family === (key === "")) {
    const wanted = definition.family ? "a key, since the kind is a family" : "no key, since the kind is not a family"
    throw new TypeError(
      `document ${JSON.stringify(definition.kind)}.key: expected ${wanted}, got ${JSON.stringify(key)}`,
    )
  }
  return { ...familyOf(definition, target), key }
}
