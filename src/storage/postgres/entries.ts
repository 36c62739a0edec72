/**
 * Reads of entries: one statement each, which follows a fork to its ancestors (context rules 1 to 3). A fork sees its parent up to the fork
 * entry, and of the parent's ancestors never more than the parent does.
 */
import type { Entry } from "../../domain/entry.ts"
import type { ConversationId, EntryId } from "../../domain/ids.ts"
import { decodeEntry } from "../decode.ts"
import { checkLine } from "../lineage.ts"
import type { Reading, Rows } from "../reading.ts"
import type { StoreReads } from "../store.ts"
import { entryColumns } from "./columns.ts"
import type { SqlRow } from "./link.ts"
import { decodeTexts } from "./text.ts"

const largest = Number.MAX_SAFE_INTEGER

/** From the conversation $1, of which entries up to $2 are visible, to its first ancestor; ends at a parent that is not older. */
const lineage = `WITH RECURSIVE line (id, parent, fork, cap, depth) AS (
  SELECT id, parent_conversation, parent_entry, $2::bigint, 0 FROM conversations WHERE id = $1
  UNION ALL
  SELECT p.id, p.parent_conversation, p.parent_entry, least(line.cap, line.fork), line.depth + 1
  FROM line JOIN conversations p ON p.id = line.parent WHERE line.parent < line.id
)`

const lineColumns = 'line.id AS line, line.parent AS "lineParent", line.fork AS "lineFork"'

export const entryStatements = {
  entries: `SELECT ${entryColumns} FROM entries e WHERE e.conversation = $1 AND e.id BETWEEN $2 AND $3 ORDER BY e.id`,
  lastEntries: `SELECT * FROM (SELECT ${entryColumns} FROM entries e WHERE e.conversation = $1 AND e.id BETWEEN $2 AND $3 ORDER BY e.id DESC LIMIT $4) newest ORDER BY id`,
  entry: `SELECT ${entryColumns} FROM entries e WHERE e.id = $1`,
  visibleEntries: `${lineage}
    SELECT ${lineColumns}, ${entryColumns} FROM line LEFT JOIN entries e ON e.conversation = line.id AND e.id <= line.cap
    ORDER BY line.depth DESC, e.id`,
  entryCount: `${lineage}
    SELECT ${lineColumns}, (SELECT count(*) FROM entries e WHERE e.conversation = line.id AND e.id <= line.cap) AS entries FROM line`,
  contextEntries: `${lineage}, newest AS (
      SELECT h.id, h.head FROM line CROSS JOIN LATERAL (
        SELECT e.id, e.head FROM entries e WHERE e.conversation = line.id AND e.id <= line.cap AND e.head IS NOT NULL
        ORDER BY e.id DESC LIMIT 1) h
      ORDER BY line.depth LIMIT 1
    )
    SELECT ${lineColumns}, newest.id AS "newestId", newest.head AS "newestHead", ${entryColumns}
    FROM line LEFT JOIN newest ON true
    LEFT JOIN entries e ON e.conversation = line.id AND e.id <= line.cap AND e.id >= coalesce(least(newest.head, newest.id), 1)
    ORDER BY line.depth DESC, e.id`,
} as const

type EntryReads = Pick<StoreReads, "entries" | "entry" | "visibleEntries" | "entryCount" | "contextEntries">

export const entryReads = ({ many, one, read }: Reading, location: string): EntryReads => {
  /** The rows of a lineage, whose own faults are found first. */
  const sound = (rows: Rows): Rows => {
    for (const { line, lineFork, lineParent } of rows) checkLine(location, line, lineParent, lineFork)
    return rows
  }
  const entryOf = ({
    line: _,
    lineParent: __,
    lineFork: ___,
    newestId: ____,
    newestHead: _____,
    ...row
  }: SqlRow): Entry => decodeEntry(location, decodeTexts(row))
  const entriesOf = (rows: Rows): ReadonlyArray<Entry> =>
    sound(rows)
      .filter((row) => row.id !== null)
      .map(entryOf)
  const inContext = ({ id, newestHead, newestId }: SqlRow): boolean =>
    newestHead === null || id === newestId || Number(id) >= Number(newestHead)

  return {
    entries: (conversation, range) => {
      const from = range?.from ?? 1
      const to = range?.to ?? largest
      return range?.last === undefined
        ? many(entryStatements.entries, [conversation, from, to], decodeEntry)
        : many(entryStatements.lastEntries, [conversation, from, to, Math.max(0, range.last)], decodeEntry)
    },
    entry: (id: EntryId) => one(entryStatements.entry, [id], decodeEntry),
    visibleEntries: (conversation, cutoff) =>
      read(entryStatements.visibleEntries, [conversation, cutoff ?? largest], entriesOf),
    entryCount: (conversation) =>
      read(entryStatements.entryCount, [conversation, largest], (rows) =>
        sound(rows).reduce((sum, row) => sum + Number(row.entries), 0),
      ),
    contextEntries: (conversation: ConversationId) =>
      read(entryStatements.contextEntries, [conversation, largest], (rows) => entriesOf(rows.filter(inContext))),
  }
}
