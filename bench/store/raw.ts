/**
 * The floor: a hand-written program on `better-sqlite3` that writes the same rows into the same tables, with the same pragmas, prepared
 * statements and one transaction per commit; without any service, queue, check or Effect.
 */
import Database from "better-sqlite3"
import type { Synchronous } from "../../src/storage/sqlite/connection.ts"
import { migrations } from "../../src/storage/sqlite/schema.ts"
import type { Commit } from "../../src/storage/store.ts"

export interface RawWriter {
  readonly write: (commit: Commit) => void
  /** Many commits in one transaction. */
  readonly writeTogether: (commits: ReadonlyArray<Commit>) => void
  readonly close: () => void
}

const places = (count: number): string => Array.from({ length: count }, () => "?").join(", ")

/** Opens a fresh raw database at `path`. */
export const openRaw = (path: string, synchronous: Synchronous): RawWriter => {
  const db = new Database(path)
  db.pragma("journal_mode = WAL")
  db.pragma(`synchronous = ${synchronous}`)
  for (const sql of migrations) db.exec(sql)
  const conversation = db.prepare(`INSERT INTO conversations VALUES (${places(9)})`)
  const touch = db.prepare("UPDATE conversations SET updated_at = ?, seq = ? WHERE id = ?")
  const entry = db.prepare(`INSERT INTO entries VALUES (${places(10)})`)
  const task = db.prepare(`INSERT OR REPLACE INTO tasks VALUES (${places(24)})`)
  const submission = db.prepare(`INSERT OR REPLACE INTO submissions VALUES (${places(13)})`)
  const documentUpdate = db.prepare("UPDATE documents SET version = ?, value = ?, seq = ? WHERE id = ?")
  const documentInsert = db.prepare(`INSERT INTO documents VALUES (${places(13)})`)
  const revision = db.prepare("INSERT INTO document_revisions VALUES (?, ?, 'base', ?, ?)")
  const json = (value: unknown): string => JSON.stringify(value)
  const bit = (value: boolean): number => (value ? 1 : 0)
  let seq = 0

  const rows = (commit: Commit): void => {
    seq++
    for (const c of commit.conversations ?? []) {
      const parent = c.parent
      conversation.run(
        c.id,
        parent === null ? null : parent.conversation,
        parent === null ? null : parent.entry,
        c.owner,
        c.principal,
        c.title,
        c.createdAt,
        c.updatedAt,
        seq,
      )
    }
    for (const { id, updatedAt } of commit.conversationUpdates ?? []) touch.run(updatedAt, seq, id)
    for (const e of commit.entries ?? []) {
      const data = e.data === null ? null : json(e.data)
      entry.run(e.id, e.conversation, e.kind, json(e.model), data, e.head, json(e.edits), e.task, e.createdAt, seq)
    }
    for (const t of commit.tasks ?? []) {
      task.run(
        t.id,
        t.conversation,
        t.kind,
        t.version,
        json(t.input),
        t.status,
        json(t.checkpoint),
        t.owner,
        bit(t.background),
        bit(t.abortRequested),
        t.crashes,
        t.parked,
        t.node,
        t.fence,
        t.leaseUntil,
        t.wakeAt,
        t.waitingOn === null ? null : json(t.waitingOn),
        t.outcome === null ? null : json(t.outcome),
        t.requestId,
        t.inDoubt ? 1 : 0,
        t.createdAt,
        t.startedAt,
        t.endedAt,
        seq,
      )
    }
    for (const s of commit.submissions ?? []) {
      submission.run(
        s.id,
        s.conversation,
        s.kind,
        json(s.content),
        s.whenBusy,
        s.status,
        s.reason,
        s.detail,
        s.requestId,
        s.entry,
        s.answer,
        s.createdAt,
        seq,
      )
    }
    for (const d of commit.documents ?? []) {
      const value = json(d.value)
      if (documentUpdate.run(d.version, value, seq, d.id).changes === 0) {
        const { id, kind, scope, conversation: of, task: owner, key, version, history, fork } = d
        documentInsert.run(id, kind, scope, of, owner, key, version, history, value, seq, null, seq, fork)
      }
      if (d.history === "rewindable") revision.run(d.id, seq, d.version, value)
    }
  }
  const write = db.transaction(rows).immediate
  const writeTogether = db.transaction((commits: ReadonlyArray<Commit>) => {
    for (const commit of commits) rows(commit)
  }).immediate

  return { write, writeTogether, close: () => db.close() }
}
