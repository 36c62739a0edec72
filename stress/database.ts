/**
 * The database as it lies on disk after a run, read without the storage layer of the program: rows decoded with the domain's schemas. For checks
 * of the stress run and the crash test.
 */
import { readFileSync } from "node:fs"
import Database from "better-sqlite3"
import { Schema } from "effect"
import { Entry } from "../src/domain/entry.ts"
import { Submission } from "../src/domain/submission.ts"
import { Task } from "../src/domain/task.ts"

/** How often an unsafe call began and ended, by token. */
export type Effects = ReadonlyMap<string, { readonly starts: number; readonly ends: number }>

export interface World {
  /** What SQLite's own check found, besides "ok". */
  readonly damage: ReadonlyArray<string>
  readonly conversations: ReadonlyArray<number>
  /** In id order, like the other rows. */
  readonly entries: ReadonlyArray<Entry>
  readonly tasks: ReadonlyArray<Task>
  readonly submissions: ReadonlyArray<Submission>
  /** The highest commit number handed out. */
  readonly seq: number
}

type Row = Record<string, unknown>

const json = (value: unknown): unknown => (value === null ? null : JSON.parse(String(value)))

const entry = (row: Row) => ({
  id: row.id,
  conversation: row.conversation,
  kind: row.kind,
  model: json(row.model),
  data: json(row.data),
  head: row.head,
  edits: json(row.edits),
  task: row.task,
  createdAt: row.created_at,
  seq: row.seq,
})

const task = (row: Row) => ({
  id: row.id,
  conversation: row.conversation,
  kind: row.kind,
  version: row.version,
  input: json(row.input),
  status: row.status,
  checkpoint: json(row.checkpoint),
  owner: row.owner,
  background: row.background === 1,
  abortRequested: row.abort_requested === 1,
  crashes: row.crashes,
  parked: row.parked,
  node: row.node,
  fence: row.fence,
  leaseUntil: row.lease_until,
  wakeAt: row.wake_at,
  waitingOn: json(row.waiting_on),
  outcome: json(row.outcome),
  requestId: row.request_id,
  inDoubt: row.in_doubt === 1,
  createdAt: row.created_at,
  startedAt: row.started_at,
  endedAt: row.ended_at,
  seq: row.seq,
})

const submission = (row: Row) => ({
  id: row.id,
  conversation: row.conversation,
  kind: row.kind,
  content: json(row.content),
  whenBusy: row.when_busy,
  status: row.status,
  reason: row.reason,
  detail: row.detail,
  requestId: row.request_id,
  entry: row.entry,
  answer: row.answer,
  createdAt: row.created_at,
  seq: row.seq,
})

/** Rows of an engine as they are in its tables, in id order. */
export interface StoredRows extends Pick<World, "damage" | "seq"> {
  readonly conversations: ReadonlyArray<Row>
  readonly entries: ReadonlyArray<Row>
  readonly tasks: ReadonlyArray<Row>
  readonly submissions: ReadonlyArray<Row>
}

/** Fails where a row does not decode. */
export const decodeWorld = ({ conversations, damage, entries, seq, submissions, tasks }: StoredRows): World => ({
  damage,
  conversations: conversations.map((row) => Number(row.id)),
  entries: entries.map((row) => Schema.decodeUnknownSync(Entry)(entry(row))),
  tasks: tasks.map((row) => Schema.decodeUnknownSync(Task)(task(row))),
  submissions: submissions.map((row) => Schema.decodeUnknownSync(Submission)(submission(row))),
  seq,
})

/** Reads a whole SQLite database. */
export const readWorld = (path: string): World => {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const rows = (table: string): ReadonlyArray<Row> => db.prepare<[], Row>(`SELECT * FROM ${table} ORDER BY id`).all()
    const damage = db.pragma("integrity_check") as ReadonlyArray<{ readonly integrity_check: string }>
    const seq = db.prepare<[], { value: number }>("SELECT value FROM meta WHERE name = 'seq'").get()
    return decodeWorld({
      damage: damage.map((row) => row.integrity_check).filter((line) => line !== "ok"),
      conversations: rows("conversations"),
      entries: rows("entries"),
      tasks: rows("tasks"),
      submissions: rows("submissions"),
      seq: seq?.value ?? 0,
    })
  } finally {
    db.close()
  }
}

/** How many tasks of a kind are open in a database that a node may be writing. */
export const openTasks = (path: string, kind: string): number => {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const sql = "SELECT count(*) FROM tasks WHERE kind = ? AND status <> 'terminal'"
    return Number(db.prepare<[string], number>(sql).pluck().get(kind))
  } finally {
    db.close()
  }
}

/** Reads the file that unsafe calls append `start` and `end` lines to; no file means no call. */
export const readEffects = (file: string): Effects => {
  let text = ""
  try {
    text = readFileSync(file, "utf8")
  } catch {
    return new Map()
  }
  const effects = new Map<string, { starts: number; ends: number }>()
  for (const line of text.split("\n")) {
    const [what, token] = line.split(" ")
    if (token === undefined || (what !== "start" && what !== "end")) continue
    const found = effects.get(token) ?? { starts: 0, ends: 0 }
    if (what === "start") found.starts++
    else found.ends++
    effects.set(token, found)
  }
  return effects
}
