/**
 * What the lineage of a fork must look like (context rule 3). The statements that follow a fork to its ancestors end at a conversation whose
 * parent is not older, so that they end at all; whoever reads their rows finds that fault here. Pure.
 */
import { CorruptRow } from "./errors.ts"
import { isId } from "./guards.ts"

/** Throws `CorruptRow` where a conversation names no older one as its parent, or no entry of it. Both are null where it is no fork. */
export const checkLine = (location: string, conversation: unknown, parent: unknown, fork: unknown): void => {
  if (parent === null) return
  const corrupt = (detail: string) =>
    new CorruptRow({ location, table: "conversations", row: String(conversation), detail })
  if (!isId(parent) || Number(parent) >= Number(conversation))
    throw corrupt(`parent: expected an older conversation, got ${parent}`)
  if (!isId(fork)) throw corrupt(`parent: expected an entry of conversation ${parent}, got ${fork}`)
}
