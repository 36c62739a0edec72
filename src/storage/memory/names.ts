/**
 * Names of conversations on plain records. Pure.
 */
import { Either } from "effect"
import type { Conversation } from "../../domain/conversation.ts"
import type { NameRecord } from "../../domain/session-name.ts"
import { Conflict } from "../errors.ts"
import type { ListedName, NameKey } from "../name-port.ts"
import type { Commit } from "../store.ts"

/** By namespace, principal and name, in the order in which they were given. */
export type Names = ReadonlyMap<string, NameRecord>

const keyOf = ({ name, namespace, principal }: NameKey): string => JSON.stringify([namespace, principal, name])

/** The names after the commit, or why it is refused. */
export const applyNames = (before: Names, commit: Commit): Either.Either<Names, Conflict> => {
  if (commit.names === undefined) return Either.right(before)
  let rows = new Map(before)
  for (const change of commit.names) {
    if (change.type === "prune") {
      const fresh = [...rows].filter(([, row]) => row.usedAt >= change.before)
      const newest = fresh
        .map((one, at) => ({ one, at }))
        .sort((a, b) => b.one[1].usedAt - a.one[1].usedAt || b.at - a.at)
        .slice(0, change.keep)
      rows = new Map(newest.sort((a, b) => a.at - b.at).map(({ one }) => one))
      continue
    }
    const key = keyOf(change)
    const known = rows.get(key)
    if (change.type === "take") rows.delete(key)
    else if (change.type === "use") {
      if (known !== undefined) rows.set(key, { ...known, usedAt: change.at })
    } else {
      if (known !== undefined && !change.moves) {
        return Either.left(new Conflict({ what: `name ${JSON.stringify(change.name)}`, detail: "it is already taken" }))
      }
      const { at, conversation, name, namespace, principal } = change
      rows.delete(key)
      rows.set(key, { namespace, principal, name, conversation, createdAt: at, usedAt: at })
    }
  }
  return Either.right(rows)
}

type Conversations = ReadonlyMap<number, Conversation>

const listed = (record: NameRecord, conversations: Conversations): ListedName => {
  const conversation = conversations.get(record.conversation)
  return { record, title: conversation?.title ?? null, updatedAt: conversation?.updatedAt ?? 0 }
}

export const nameOf = (rows: Names, conversations: Conversations, key: NameKey): ListedName | null => {
  const record = rows.get(keyOf(key))
  return record === undefined ? null : listed(record, conversations)
}

/** The most recently changed conversation first, then by the UTF-8 bytes of the name. */
export const listNames = (
  rows: Names,
  conversations: Conversations,
  options: Omit<NameKey, "name"> & { readonly limit: number; readonly before?: string },
): ReadonlyArray<ListedName> => {
  const all = [...rows.values()]
    .filter((row) => row.namespace === options.namespace && row.principal === options.principal)
    .map((row) => listed(row, conversations))
    .sort((a, b) => b.updatedAt - a.updatedAt || Buffer.compare(Buffer.from(a.record.name), Buffer.from(b.record.name)))
  if (options.before === undefined) return all.slice(0, options.limit)
  const at = all.findIndex((one) => one.record.name === options.before)
  return at < 0 ? [] : all.slice(at + 1, at + 1 + options.limit)
}
