/**
 * Reads of entries: one statement each, which follows a fork to its ancestors (context rules 1 to 3). A fork sees its parent up to the fork
 * entry, and of the parent's ancestors never more than the parent does.
 */
import type { Entry } from "../../domain/entry.ts"
import { decodeEntry, type SqlRow } from "../decode.ts"
import { checkLine } from "../lineage.ts"
import type { Reading, Rows } from "../reading.ts"
import type { StoreReads } from "../store.ts"

const largest = Number.MAX_SAFE_INTEGER

const bodyColumns = "e.id, e.kind, e.model, e.data, e.head, e.edits, e.task, e.created_at AS createdAt, e.seq"
const entryColumns = `e.conversation, ${bodyColumns}`

/** The entries up to the first parameter that the conversation of the second one sees; ends at a parent that is not older. */
const lineage = `WITH RECURSIVE line (id, parent, fork, cap) AS (
  SELECT id, parent_conversation, parent_entry, ? FROM conversations WHERE id = ?
  UNION ALL
  SELECT p.id, p.parent_conversation, p.parent_entry, min(line.cap, line.fork)
  FROM line JOIN conversations p ON p.id = line.parent WHERE line.parent < line.id
)`

const lineColumns = "line.id AS conversation, line.parent AS lineParent, line.fork AS lineFork"

export const entryStatements = {
  entries: `SELECT ${entryColumns} FROM entries e WHERE e.conversation = ? AND e.id BETWEEN ? AND ? ORDER BY e.id`,
  lastEntries: `SELECT ${entryColumns} FROM entries e WHERE e.conversation = ? AND e.id BETWEEN ? AND ? ORDER BY e.id DESC LIMIT ?`,
  entry: `SELECT ${entryColumns} FROM entries e WHERE e.id = ?`,
  visibleEntries: `${lineage}
    SELECT ${lineColumns}, ${bodyColumns} FROM line LEFT JOIN entries e ON e.conversation = line.id AND e.id <= line.cap`,
  entryCount: `${lineage}
    SELECT ${lineColumns}, (SELECT count(*) FROM entries e WHERE e.conversation = line.id AND e.id <= line.cap) AS entries FROM line`,
  // the newest head is that of the conversation itself, else that of its nearest ancestor, which is the one with the largest id
  contextEntries: `${lineage}, newest (id, head) AS (
      SELECT h.id, h.head FROM line JOIN entries h ON h.id = (
        SELECT e.id FROM entries e WHERE e.conversation = line.id AND e.id <= line.cap AND e.head IS NOT NULL ORDER BY e.id DESC LIMIT 1)
      ORDER BY line.id DESC LIMIT 1
    )
    SELECT ${lineColumns}, ${bodyColumns} FROM line LEFT JOIN newest ON true
    LEFT JOIN entries e ON e.conversation = line.id AND e.id <= line.cap AND e.id >= ifnull(min(newest.head, newest.id), 1)
      AND (newest.id IS NULL OR e.id = newest.id OR e.id >= newest.head)`,
} as const

/** An ancestor is older, so first ancestor first is the order of ids. The rows come nearly so: sorting them here is one pass, in SQL a copy of all. */
const inOrder = (a: SqlRow, b: SqlRow): number =>
  Number(a.conversation) - Number(b.conversation) || Number(a.id) - Number(b.id)

type EntryReads = Pick<StoreReads, "entries" | "entry" | "visibleEntries" | "entryCount" | "contextEntries">

export const entryReads = ({ many, one, read }: Reading, location: string): EntryReads => {
  /** Throws for what is wrong with a lineage, before any of its entries is looked at. */
  const check = (rows: Rows): void => {
    let checked: unknown = null
    for (const { conversation, lineFork, lineParent } of rows) {
      if (conversation === checked) continue
      checkLine(location, conversation, lineParent, lineFork)
      checked = conversation
    }
  }
  const entriesOf = (rows: Rows): ReadonlyArray<Entry> => {
    check(rows)
    // a conversation of the lineage without entries has one row, of nothing
    return rows
      .filter((row) => row.id !== null)
      .sort(inOrder)
      .map((row) => decodeEntry(location, row))
  }

  return {
    entries: (conversation, range) => {
      const within = [conversation, range?.from ?? 1, range?.to ?? largest]
      if (range?.last === undefined) return many(entryStatements.entries, within, decodeEntry)
      return read(entryStatements.lastEntries, [...within, Math.max(0, range.last)], (rows) =>
        rows.map((row) => decodeEntry(location, row)).reverse(),
      )
    },
    entry: (id) => one(entryStatements.entry, [id], decodeEntry),
    visibleEntries: (conversation, cutoff) =>
      read(entryStatements.visibleEntries, [cutoff ?? largest, conversation], entriesOf),
    entryCount: (conversation) =>
      read(entryStatements.entryCount, [largest, conversation], (rows) => {
        check(rows)
        return rows.reduce((sum, row) => sum + Number(row.entries), 0)
      }),
    contextEntries: (conversation) => read(entryStatements.contextEntries, [largest, conversation], entriesOf),
  }
}
