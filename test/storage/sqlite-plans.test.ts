/**
 * The plans of the hot statements: an index for each, no table is ever scanned.
 */
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { describe } from "vitest"
import { readStatements } from "../../src/storage/sqlite/reads.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { writeStatements } from "../../src/storage/sqlite/writes.ts"
import { temporaryDirectory } from "./support.ts"

/** The index by which each read finds its rows; the primary key where none is named. */
const expected: Record<keyof typeof readStatements, ReadonlyArray<string>> = {
  conversation: ["SEARCH c USING INTEGER PRIMARY KEY"],
  everyones: [
    "SEARCH c USING INDEX conversations_recent (updated_at<?)",
    "USING COVERING INDEX entries_of",
    "USING COVERING INDEX tasks_by_status",
  ],
  everyonesBefore: [
    "SEARCH c USING INDEX conversations_recent (updated_at<?)",
    "SEARCH conversations USING INTEGER PRIMARY KEY",
  ],
  ones: [
    "SEARCH c USING INDEX conversations_of (principal=? AND updated_at<?)",
    "USING COVERING INDEX entries_of",
    "USING COVERING INDEX tasks_by_status",
  ],
  onesBefore: [
    "SEARCH c USING INDEX conversations_of (principal=? AND updated_at<?)",
    "SEARCH conversations USING INTEGER PRIMARY KEY",
  ],
  entries: ["SEARCH e USING INDEX entries_of (conversation=? AND rowid>? AND rowid<?)"],
  lastEntries: ["SEARCH e USING INDEX entries_of (conversation=? AND rowid>? AND rowid<?)"],
  entry: ["SEARCH e USING INTEGER PRIMARY KEY"],
  visibleEntries: [
    "SEARCH conversations USING INTEGER PRIMARY KEY",
    "SEARCH p USING INTEGER PRIMARY KEY",
    "SEARCH e USING INDEX entries_of (conversation=? AND rowid<?)",
  ],
  entryCount: [
    "SEARCH conversations USING INTEGER PRIMARY KEY",
    "SEARCH p USING INTEGER PRIMARY KEY",
    "SEARCH e USING COVERING INDEX entries_of (conversation=? AND rowid<?)",
  ],
  contextEntries: [
    "SEARCH conversations USING INTEGER PRIMARY KEY",
    "SEARCH p USING INTEGER PRIMARY KEY",
    "SEARCH h USING INTEGER PRIMARY KEY",
    "SEARCH e USING INDEX entries_heads (conversation=? AND rowid<?)",
    "SEARCH e USING INDEX entries_of (conversation=? AND rowid>? AND rowid<?)",
  ],
  task: ["SEARCH tasks USING INTEGER PRIMARY KEY"],
  openTasks: ["SEARCH tasks USING INDEX tasks_by_status (status=?)"],
  openTasksOf: ["SEARCH tasks USING INDEX tasks_by_status (status=? AND conversation=?)"],
  submission: ["SEARCH submissions USING INTEGER PRIMARY KEY"],
  submissionByRequest: ["SEARCH submissions USING INDEX submissions_by_request (conversation=? AND request_id=?)"],
  openSubmissions: ["SEARCH submissions USING INDEX submissions_by_status (conversation=? AND status=?)"],
  documents: ["SEARCH documents USING INDEX documents_"],
  globalDocument: ["SEARCH documents USING INDEX documents_global (kind=? AND key=?)"],
  document: ["SEARCH documents USING INTEGER PRIMARY KEY"],
  findInConversation: [
    "SEARCH documents USING INDEX documents_live (conversation=? AND kind=? AND key=? AND <expr>=?)",
  ],
  findOfTask: ["SEARCH documents USING INDEX documents_of_task (task=? AND kind=? AND key=?)"],
  familyInConversation: ["SEARCH documents USING INDEX documents_live (conversation=? AND kind=?)"],
  familyOfTask: ["SEARCH documents USING INDEX documents_of_task (task=? AND kind=?)"],
  globalFamily: ["SEARCH documents USING INDEX documents_global (kind=?)"],
  documentsAt: ["SEARCH documents USING INDEX documents_of (conversation=?)"],
  documentRevisions: [
    "SEARCH document_revisions USING INDEX document_revisions_of (document=? AND seq>? AND seq<?)",
    "SEARCH document_revisions USING INDEX document_revisions_of (document=? AND seq<?)",
  ],
  ownerEpoch: ["SEARCH meta USING"],
  ownedTasks: ["SEARCH tasks USING INDEX tasks_owned (owner=?)"],
  ownedConversations: ["SEARCH c USING INDEX conversations_owned (owner=?)"],
  taskByRequest: ["SEARCH tasks USING INDEX tasks_by_request (request_id=?)"],
  // the partial index holds those in doubt alone
  tasksInDoubt: ["SCAN tasks USING INDEX tasks_in_doubt"],
  tasksInDoubtOf: ["SCAN tasks USING INDEX tasks_in_doubt"],
  job: ["SEARCH jobs USING INTEGER PRIMARY KEY"],
  jobByKey: ["SEARCH jobs USING INDEX jobs_unique (queue=? AND unique_key=?)"],
  jobs: ["SEARCH jobs USING INTEGER PRIMARY KEY (rowid<?)"],
  jobsOfQueue: ["SEARCH jobs USING INDEX jobs_due (queue=? AND state=?)"],
  jobsOfState: ["SEARCH jobs USING INTEGER PRIMARY KEY (rowid<?)"],
  jobsOfQueueAndState: ["SEARCH jobs USING INDEX jobs_due (queue=? AND state=?)"],
  // pruning keeps the table short
  jobCounts: ["SCAN jobs USING COVERING INDEX jobs_due"],
  dueAt: ["SEARCH jobs USING COVERING INDEX jobs_due (queue=? AND state=?)"],
  executingJobs: ["SEARCH jobs USING INDEX jobs_due (queue=? AND state=?)"],
  artifact: ["SEARCH artifacts USING INDEX artifacts_of (conversation=? AND name=?)"],
  artifacts: ["SEARCH artifacts USING INDEX artifacts_of (conversation=?)"],
  name: ["SEARCH n USING INDEX names_of (namespace=? AND principal=? AND name=?)"],
  names: ["SEARCH n USING INDEX names_of (namespace=? AND principal=?)"],
  namesBefore: [
    "SEARCH o USING INDEX names_of (namespace=? AND principal=? AND name=?)",
    "SEARCH n USING INDEX names_of (namespace=? AND principal=?)",
  ],
}

/** Entries come out of the index in order; only the few open tasks, submissions and ancestors with a head are sorted. */
const sorted = new Set<string>([
  "contextEntries",
  "openTasks",
  "openTasksOf",
  "openSubmissions",
  "documents",
  "familyInConversation",
  "familyOfTask",
  "globalFamily",
  "jobsOfQueue",
  "jobsOfQueueAndState",
  "executingJobs",
  "names",
  "namesBefore",
])

/** Statements that go through a whole index, which is short or read by people only. */
const whole = new Set<string>(["tasksInDoubt", "tasksInDoubtOf", "jobCounts"])

const plan = (path: string, sql: string): string => {
  const db = new Database(path, { readonly: true })
  try {
    const places = (sql.match(/\?/g) ?? []).length
    const rows = db
      .prepare<Array<number>, { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...new Array(places).fill(1))
    return rows.map((row) => row.detail).join("\n")
  } finally {
    db.close()
  }
}

const database = Effect.gen(function* () {
  const path = join(yield* temporaryDirectory, "store.db")
  yield* Effect.scoped(makeSqliteStore({ path }))
  return path
})

describe("the plan of the read", () => {
  it.scoped.each(Object.keys(expected) as Array<keyof typeof readStatements>)("%s uses its index", (name) =>
    Effect.gen(function* () {
      const found = plan(yield* database, readStatements[name])
      for (const part of expected[name]) expect(found).toContain(part)
      // `line` is a fork and its ancestors, `newest` one row of them: steps of the statement, no tables
      if (!whole.has(name)) expect(found.replace(/\bSCAN (line|newest)\b/g, "")).not.toMatch(/\bSCAN\b/)
      if (!sorted.has(name)) expect(found).not.toContain("TEMP B-TREE")
    }),
  )
})

describe("the plan of the write", () => {
  it.scoped.each(Object.keys(writeStatements) as Array<keyof typeof writeStatements>)("%s scans no table", (name) =>
    Effect.gen(function* () {
      // Forgetting names walks the index of their uses, at most once an hour.
      const scans = plan(yield* database, writeStatements[name]).match(/\bSCAN\b.*/g) ?? []
      expect(scans).toEqual(name === "nameTrim" ? ["SCAN names USING COVERING INDEX names_used"] : [])
    }),
  )
})

it.scoped("tables keep their rows by rowid, with typed columns", () =>
  Effect.gen(function* () {
    const db = new Database(yield* database, { readonly: true })
    const tables = db.prepare<[], { name: string; wr: number; strict: number }>("PRAGMA table_list").all()
    db.close()
    const ours = tables.filter((table) => !table.name.startsWith("sqlite_"))
    expect(ours.map((table) => table.name).sort()).toEqual([
      "artifacts",
      "conversations",
      "document_revisions",
      "documents",
      "entries",
      "jobs",
      "meta",
      "names",
      "submissions",
      "tasks",
    ])
    expect(ours.filter((table) => table.wr !== 0 || table.strict !== 1)).toEqual([])
  }),
)
