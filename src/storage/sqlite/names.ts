/**
 * Names of conversations in SQLite: statements, and what a commit does with them inside the writer's transaction.
 */
import { decodeName, type SqlRow } from "../decode.ts"
import { Conflict } from "../errors.ts"
import type { ListedName, NameChange, NameReads } from "../name-port.ts"
import type { Reading } from "../reading.ts"
import type { Commit } from "../store.ts"
import type { Database } from "./connection.ts"
import { isDuplicate } from "./failures.ts"

const listed =
  "n.namespace, n.principal, n.name, n.conversation, n.created_at AS createdAt, n.used_at AS usedAt, c.title, c.updated_at AS updatedAt FROM names n JOIN conversations c ON c.id = n.conversation"
const order = "ORDER BY c.updated_at DESC, n.name LIMIT ?"

export const nameReadStatements = {
  name: `SELECT ${listed} WHERE n.namespace = ? AND n.principal = ? AND n.name = ?`,
  names: `SELECT ${listed} WHERE n.namespace = ? AND n.principal = ? ${order}`,
  // without that name there is no place in the order, and the listing ends
  namesBefore: `SELECT ${listed} JOIN (
      SELECT oc.updated_at FROM names o JOIN conversations oc ON oc.id = o.conversation
      WHERE o.namespace = ? AND o.principal = ? AND o.name = ?
    ) edge ON c.updated_at < edge.updated_at OR c.updated_at = edge.updated_at AND n.name > ?
    WHERE n.namespace = ? AND n.principal = ? ${order}`,
} as const

const key = "namespace = ? AND principal = ? AND name = ?"

export const nameWriteStatements = {
  nameGive:
    "INSERT INTO names (namespace, principal, name, conversation, created_at, used_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?)",
  nameUse: `UPDATE names SET used_at = ?, seq = ? WHERE ${key}`,
  nameTake: `DELETE FROM names WHERE ${key}`,
  nameExpire: "DELETE FROM names WHERE used_at < ?",
  nameTrim:
    "DELETE FROM names WHERE rowid IN (SELECT rowid FROM names ORDER BY used_at DESC, rowid DESC LIMIT -1 OFFSET ?)",
} as const

/** Null where a commit changes no names; also notes the conversations that must exist. */
export const encodeNames = (commit: Commit, touched: Set<number>): ReadonlyArray<NameChange> | null => {
  if (commit.names === undefined) return null
  for (const change of commit.names) if (change.type === "give") touched.add(change.conversation)
  return commit.names.map((change) => ({ ...change }))
}

export const prepareNameWrites = (db: Database): ((changes: ReadonlyArray<NameChange>, seq: number) => void) => {
  const give = db.prepare<[string, string, string, number, number, number, number]>(nameWriteStatements.nameGive)
  const use = db.prepare<[number, number, string, string, string]>(nameWriteStatements.nameUse)
  const take = db.prepare<[string, string, string]>(nameWriteStatements.nameTake)
  const expire = db.prepare<[number]>(nameWriteStatements.nameExpire)
  const trim = db.prepare<[number]>(nameWriteStatements.nameTrim)
  const apply = (change: NameChange, seq: number): void => {
    if (change.type === "prune") {
      expire.run(change.before)
      trim.run(change.keep)
      return
    }
    const { name, namespace, principal } = change
    if (change.type === "take") take.run(namespace, principal, name)
    else if (change.type === "use") use.run(change.at, seq, namespace, principal, name)
    else {
      if (change.moves) take.run(namespace, principal, name)
      try {
        give.run(namespace, principal, name, change.conversation, change.at, change.at, seq)
      } catch (cause) {
        if (!isDuplicate(cause)) throw cause
        throw new Conflict({ what: `name ${JSON.stringify(name)}`, detail: "it is already taken" })
      }
    }
  }
  return (changes, seq) => {
    for (const change of changes) apply(change, seq)
  }
}

const nameOf = (location: string, { title, updatedAt, ...row }: SqlRow): ListedName => ({
  record: decodeName(location, row),
  // columns of conversations: NULL or TEXT, and INTEGER
  title: title as string | null,
  updatedAt: updatedAt as number,
})

export const nameReads = ({ many, one }: Reading): NameReads => ({
  name: ({ name, namespace, principal }) => one(nameReadStatements.name, [namespace, principal, name], nameOf),
  names: ({ before, limit, namespace, principal }) => {
    const of = [namespace, principal]
    const most = Math.max(0, limit)
    return before === undefined
      ? many(nameReadStatements.names, [...of, most], nameOf)
      : many(nameReadStatements.namesBefore, [...of, before, before, ...of, most], nameOf)
  },
})
