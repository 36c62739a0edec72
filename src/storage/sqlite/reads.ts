/**
 * The reads of the storage port on one connection, for the owner and for readers alike. Each read is one synchronous step, so on the
 * writer's connection it sees committed state only; where it takes several statements they run in one snapshot.
 */
import { Effect } from "effect"
import type { ConversationId, EntryId } from "../../domain/ids.ts"
import {
  decodeConversation,
  decodeDocument,
  decodeEntry,
  decodeSubmission,
  decodeTask,
  type SqlRow,
} from "../decode.ts"
import { CorruptRow, type ReadError } from "../errors.ts"
import type { ConversationSummary, StoreReads } from "../store.ts"
import { artifactReadStatements, prepareArtifactReads } from "./artifacts.ts"
import { conversationColumns, taskColumns } from "./columns.ts"
import type { Database } from "./connection.ts"
import { documentColumns, documentReadStatements, prepareDocumentReads } from "./documents.ts"
import { closed, unavailable } from "./failures.ts"
import { jobReadStatements, prepareJobReads } from "./jobs.ts"
import { lineage, type Segment } from "./lineage.ts"
import { nameReadStatements, prepareNameReads } from "./names.ts"
import { prepareTaskReads, taskReadStatements } from "./tasks.ts"

const entryColumns = "id, conversation, kind, model, data, head, edits, task, created_at AS createdAt, seq"
const submissionColumns =
  "id, conversation, kind, content, when_busy AS whenBusy, status, reason, detail, request_id AS requestId, entry, answer, created_at AS createdAt, seq"

const openStatuses = "('pending', 'running', 'waiting', 'sleeping', 'completing')"
const largest = Number.MAX_SAFE_INTEGER

const summary = (where: string): string => `SELECT ${conversationColumns},
  (SELECT count(*) FROM entries WHERE conversation = c.id) AS entries,
  EXISTS (SELECT 1 FROM tasks WHERE status IN ${openStatuses} AND conversation = c.id) AS busy,
  (SELECT parked FROM tasks WHERE status IN ${openStatuses} AND conversation = c.id AND parked IS NOT NULL LIMIT 1) AS parked
  FROM conversations c WHERE ${where} AND (c.updated_at, c.id) < (?, ?) ORDER BY c.updated_at DESC, c.id DESC LIMIT ?`

/** The read statements, by name, for the plans that tests read. */
export const readStatements = {
  conversation: `SELECT ${conversationColumns} FROM conversations c WHERE c.id = ?`,
  updatedAt: "SELECT updated_at FROM conversations WHERE id = ?",
  everyones: summary("c.owner IS NULL"),
  ones: summary("c.owner IS NULL AND c.principal = ?"),
  entries: `SELECT ${entryColumns} FROM entries WHERE conversation = ? AND id BETWEEN ? AND ? ORDER BY id`,
  lastEntries: `SELECT ${entryColumns} FROM entries WHERE conversation = ? AND id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?`,
  entry: `SELECT ${entryColumns} FROM entries WHERE id = ?`,
  countEntries: "SELECT count(*) AS entries FROM entries WHERE conversation = ? AND id <= ?",
  newestHead:
    "SELECT id, head FROM entries WHERE conversation = ? AND id <= ? AND head IS NOT NULL ORDER BY id DESC LIMIT 1",
  task: `SELECT ${taskColumns} FROM tasks WHERE id = ?`,
  openTasks: `SELECT ${taskColumns} FROM tasks WHERE status IN ${openStatuses} ORDER BY id`,
  openTasksOf: `SELECT ${taskColumns} FROM tasks WHERE status IN ${openStatuses} AND conversation = ? ORDER BY id`,
  submission: `SELECT ${submissionColumns} FROM submissions WHERE id = ?`,
  submissionByRequest: `SELECT ${submissionColumns} FROM submissions WHERE conversation = ? AND request_id = ?`,
  openSubmissions: `SELECT ${submissionColumns} FROM submissions WHERE conversation = ? AND status IN ('queued', 'placed') ORDER BY id`,
  documents: `SELECT ${documentColumns} FROM documents WHERE conversation = ? AND retired_seq IS NULL ORDER BY id`,
  globalDocument: `SELECT ${documentColumns} FROM documents WHERE scope = 'global' AND kind = ? AND key = ? AND retired_seq IS NULL`,
  ownerEpoch: "SELECT value FROM meta WHERE name = 'epoch'",
  ...documentReadStatements,
  ...taskReadStatements,
  ...jobReadStatements,
  ...artifactReadStatements,
  ...nameReadStatements,
} as const

/** Prepares the reads on `db`. Throws the driver's errors. */
export const prepareReads = (db: Database, location: string): StoreReads => {
  const one = (name: keyof typeof readStatements) => {
    const statement = db.prepare<Array<number | string>, SqlRow>(readStatements[name])
    return (...params: Array<number | string>): SqlRow | undefined => statement.get(...params)
  }
  const many = (name: keyof typeof readStatements) => {
    const statement = db.prepare<Array<number | string>, SqlRow>(readStatements[name])
    return (...params: Array<number | string>): Array<SqlRow> => statement.all(...params)
  }
  const sql = {
    conversation: one("conversation"),
    updatedAt: one("updatedAt"),
    everyones: many("everyones"),
    ones: many("ones"),
    entries: many("entries"),
    lastEntries: many("lastEntries"),
    entry: one("entry"),
    countEntries: one("countEntries"),
    newestHead: one("newestHead"),
    task: one("task"),
    openTasks: many("openTasks"),
    openTasksOf: many("openTasksOf"),
    submission: one("submission"),
    submissionByRequest: one("submissionByRequest"),
    openSubmissions: many("openSubmissions"),
    documents: many("documents"),
    globalDocument: one("globalDocument"),
    ownerEpoch: one("ownerEpoch"),
  }

  const read = <A>(body: () => A): Effect.Effect<A, ReadError> =>
    Effect.suspend((): Effect.Effect<A, ReadError> => {
      if (!db.open) return closed(location)
      try {
        return Effect.succeed(body())
      } catch (cause) {
        return cause instanceof CorruptRow ? cause : unavailable(location, cause)
      }
    })
  /** Several statements that see one state of the database. */
  const begin = db.prepare("BEGIN")
  const end = db.prepare("COMMIT")
  const snapshot = <A>(body: () => A): Effect.Effect<A, ReadError> =>
    read(() => {
      begin.run()
      try {
        return body()
      } finally {
        if (db.inTransaction) end.run()
      }
    })

  const option = <A>(decode: (location: string, row: SqlRow) => A, row: SqlRow | undefined): A | null =>
    row === undefined ? null : decode(location, row)
  const list = <A>(decode: (location: string, row: SqlRow) => A, rows: ReadonlyArray<SqlRow>): ReadonlyArray<A> =>
    rows.map((row) => decode(location, row))
  const segmentsOf = (conversation: number, cutoff: number): ReadonlyArray<Segment> =>
    lineage(location, (id) => option(decodeConversation, sql.conversation(id)), conversation, cutoff)
  const entriesFrom = (segments: ReadonlyArray<Segment>, from: number): Array<SqlRow> =>
    segments.flatMap((segment) => (segment.cap < from ? [] : sql.entries(segment.conversation, from, segment.cap)))

  return {
    conversation: (id) => read(() => option(decodeConversation, sql.conversation(id))),
    conversations: ({ principal, limit, before }) =>
      snapshot(() => {
        const cursor: unknown = before === undefined ? largest : sql.updatedAt(before)?.updated_at
        // a conversation that is gone has no place in the order: the listing ends
        if (typeof cursor !== "number") return []
        const edge = before ?? largest
        const rows = principal === null ? sql.everyones(cursor, edge, limit) : sql.ones(principal, cursor, edge, limit)
        return rows.map(
          (row): ConversationSummary => ({
            conversation: decodeConversation(location, row),
            entries: Number(row.entries),
            busy: row.busy === 1,
            parked: typeof row.parked === "string" ? row.parked : null,
          }),
        )
      }),
    entries: (conversation, range) =>
      read(() => {
        const from = range?.from ?? 1
        const to = range?.to ?? largest
        return range?.last === undefined
          ? list(decodeEntry, sql.entries(conversation, from, to))
          : list(decodeEntry, sql.lastEntries(conversation, from, to, Math.max(0, range.last)).reverse())
      }),
    entry: (id) => read(() => option(decodeEntry, sql.entry(id))),
    visibleEntries: (conversation, cutoff) =>
      snapshot(() => list(decodeEntry, entriesFrom(segmentsOf(conversation, cutoff ?? largest), 1))),
    entryCount: (conversation) =>
      snapshot(() =>
        segmentsOf(conversation, largest).reduce(
          (sum, segment) => sum + Number(sql.countEntries(segment.conversation, segment.cap)?.entries ?? 0),
          0,
        ),
      ),
    contextEntries: (conversation: ConversationId) =>
      snapshot(() => {
        const segments = segmentsOf(conversation, largest)
        const head = newestHead(segments, sql.newestHead)
        if (head === null) return list(decodeEntry, entriesFrom(segments, 1))
        const rows = entriesFrom(segments, Math.min(head.head, head.id))
        const kept =
          head.head <= head.id ? rows : rows.filter((row) => row.id === head.id || Number(row.id) >= head.head)
        return list(decodeEntry, kept)
      }),
    task: (id) => read(() => option(decodeTask, sql.task(id))),
    openTasks: (conversation) =>
      read(() => list(decodeTask, conversation === undefined ? sql.openTasks() : sql.openTasksOf(conversation))),
    submission: (id) => read(() => option(decodeSubmission, sql.submission(id))),
    submissionByRequest: (conversation, requestId) =>
      read(() => option(decodeSubmission, sql.submissionByRequest(conversation, requestId))),
    openSubmissions: (conversation) => read(() => list(decodeSubmission, sql.openSubmissions(conversation))),
    documents: (conversation) => read(() => list(decodeDocument, sql.documents(conversation))),
    globalDocument: (kind, key) => read(() => option(decodeDocument, sql.globalDocument(kind, key))),
    ownerEpoch: read(() => Number(sql.ownerEpoch()?.value ?? 0)),
    endedEpochs: (epochs) =>
      read(() => {
        const current = Number(sql.ownerEpoch()?.value ?? 0)
        return epochs.filter((epoch) => epoch < current)
      }),
    ...prepareDocumentReads(db, location, read),
    ...prepareTaskReads(db, location, read),
    ...prepareJobReads(db, location, read),
    ...prepareArtifactReads(db, location, read),
    ...prepareNameReads(db, location, read),
  }
}

/** Context rule 1: the newest visible entry with a head, looked for from the fork down to its first ancestor. */
const newestHead = (
  segments: ReadonlyArray<Segment>,
  find: (conversation: number, cap: number) => SqlRow | undefined,
): { readonly id: EntryId; readonly head: EntryId } | null => {
  for (const segment of segments.toReversed()) {
    const row = find(segment.conversation, segment.cap)
    if (row !== undefined) return { id: row.id as EntryId, head: row.head as EntryId }
  }
  return null
}
