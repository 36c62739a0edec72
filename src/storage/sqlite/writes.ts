/**
 * Applies one encoded commit inside the transaction of the writer. Throws a {@link Rejection} for what this commit alone is refused
 * for, anything else is the driver's. Prepared once per connection.
 */
import { Conflict, Fenced } from "../errors.ts"
import { artifactWriteStatements, prepareArtifactWrites } from "./artifacts.ts"
import type { Database } from "./connection.ts"
import { documentWriteStatements, prepareDocumentWrites } from "./documents.ts"
import type { EncodedCommit, Param } from "./encode.ts"
import { isDuplicate } from "./failures.ts"
import { jobWriteStatements, prepareJobWrites } from "./jobs.ts"
import { nameWriteStatements, prepareNameWrites } from "./names.ts"
import { prepareRemoval } from "./removal.ts"

const places = (count: number): string => Array.from({ length: count }, () => "?").join(", ")

const taskColumns =
  "id, conversation, kind, version, input, status, checkpoint, owner, background, abort_requested, crashes, parked, node, fence, lease_until, wake_at, waiting_on, outcome, request_id, in_doubt, created_at, started_at, ended_at, seq"
const submissionColumns =
  "id, conversation, kind, content, when_busy, status, reason, detail, request_id, entry, answer, created_at, seq"

const replaceAll = (columns: string): string =>
  columns
    .split(", ")
    .filter((column) => column !== "id" && column !== "conversation")
    .map((column) => `${column} = excluded.${column}`)
    .join(", ")

/** The hot write statements, for the plans that tests read and for the bench's raw writer. */
export const writeStatements = {
  exists: "SELECT 1 FROM conversations WHERE id = ?",
  conversation: `INSERT INTO conversations (id, parent_conversation, parent_entry, owner, principal, title, created_at, updated_at, seq) VALUES (${places(9)})`,
  touch: "UPDATE conversations SET updated_at = ?, seq = ? WHERE id = ?",
  rename: "UPDATE conversations SET updated_at = ?, title = ?, seq = ? WHERE id = ?",
  entry: `INSERT INTO entries (id, conversation, kind, model, data, head, edits, task, created_at, seq) VALUES (${places(10)})`,
  // fencing: a row under a higher token stays as it is
  task: `INSERT INTO tasks (${taskColumns}) VALUES (${places(24)}) ON CONFLICT (id) DO UPDATE SET ${replaceAll(taskColumns)} WHERE excluded.fence >= fence AND excluded.conversation IS conversation`,
  submission: `INSERT INTO submissions (${submissionColumns}) VALUES (${places(13)}) ON CONFLICT (id) DO UPDATE SET ${replaceAll(submissionColumns)} WHERE excluded.conversation = conversation`,
  ...documentWriteStatements,
  ...jobWriteStatements,
  ...artifactWriteStatements,
  ...nameWriteStatements,
} as const

const used = (what: string): Conflict => new Conflict({ what, detail: "this id is already used" })

export interface Writes {
  /** Applies a commit under `seq`. */
  readonly apply: (commit: EncodedCommit, seq: number) => void
  /** To be called whenever a transaction or savepoint is rolled back. */
  readonly forget: () => void
}

/** Conversations remembered as existing, at most. */
const rememberLimit = 10_000

export const prepareWrites = (db: Database): Writes => {
  const run = (sql: string) => db.prepare<Array<Param>>(sql)
  const statement = {
    exists: run(writeStatements.exists),
    conversation: run(writeStatements.conversation),
    touch: run(writeStatements.touch),
    rename: run(writeStatements.rename),
    entry: run(writeStatements.entry),
    task: run(writeStatements.task),
    submission: run(writeStatements.submission),
    taskNow: db.prepare<[number], { conversation: number | null; fence: number }>(
      "SELECT conversation, fence FROM tasks WHERE id = ?",
    ),
    taskByRequest: db.prepare<[string], { id: number }>("SELECT id FROM tasks WHERE request_id = ?"),
    admitted: db.prepare<[number, string], { id: number }>(
      "SELECT id FROM submissions WHERE conversation = ? AND request_id = ?",
    ),
  }
  const remove = prepareRemoval(db)
  const writeDocument = prepareDocumentWrites(db)
  const writeJobs = prepareJobWrites(db)
  const writeArtifacts = prepareArtifactWrites(db)
  const writeNames = prepareNameWrites(db)

  const insert = (target: (typeof statement)["entry"], row: ReadonlyArray<Param>, seq: number, what: string): void => {
    try {
      target.run(...row, seq)
    } catch (cause) {
      if (isDuplicate(cause)) throw used(`${what} ${row[0]}`)
      throw cause
    }
  }

  const writeTask = (task: EncodedCommit["tasks"][number], seq: number): void => {
    try {
      if (statement.task.run(...task.row, seq).changes === 1) return
    } catch (cause) {
      if (!isDuplicate(cause) || task.requestId === null) throw cause
      const first = statement.taskByRequest.get(task.requestId)
      throw new Conflict({
        what: `request id ${JSON.stringify(task.requestId)}`,
        detail: `it is already task ${first?.id ?? "?"}`,
      })
    }
    const now = statement.taskNow.get(task.id)
    if (now === undefined || now.conversation !== task.conversation) throw used(`task ${task.id}`)
    throw new Fenced({ what: `task ${task.id}`, held: task.fence, current: now.fence })
  }

  const writeSubmission = (submission: EncodedCommit["submissions"][number], seq: number): void => {
    const { conversation, requestId, row } = submission
    try {
      if (statement.submission.run(...row, seq).changes === 1) return
    } catch (cause) {
      if (!isDuplicate(cause) || requestId === null) throw cause
      const first = statement.admitted.get(conversation, requestId)
      throw new Conflict({
        what: `request id ${JSON.stringify(requestId)} in conversation ${conversation}`,
        detail: `it is already submission ${first?.id ?? "?"}`,
      })
    }
    throw used(`submission ${row[0]}`)
  }

  /** Conversations that are there. Only this writer removes any; what it must not believe any more it forgets. */
  const known = new Set<number>()
  const mustExist = (id: number): void => {
    if (known.has(id)) return
    if (statement.exists.get(id) === undefined) throw missing(id)
    if (known.size === rememberLimit) known.clear()
    known.add(id)
  }

  const apply = (commit: EncodedCommit, seq: number): void => {
    for (const row of commit.conversations) insert(statement.conversation, row, seq, "conversation")
    for (const id of commit.touched) mustExist(id)
    for (const { id, title, updatedAt } of commit.conversationUpdates) {
      const done =
        title === undefined ? statement.touch.run(updatedAt, seq, id) : statement.rename.run(updatedAt, title, seq, id)
      if (done.changes === 0) throw missing(id)
    }
    for (const row of commit.entries) insert(statement.entry, row, seq, "entry")
    for (const task of commit.tasks) writeTask(task, seq)
    for (const submission of commit.submissions) writeSubmission(submission, seq)
    for (const document of commit.documents) writeDocument(document, seq)
    if (commit.jobs !== null) writeJobs(commit.jobs, seq)
    if (commit.artifacts !== null) writeArtifacts(commit.artifacts, seq)
    if (commit.names !== null) writeNames(commit.names, seq)
    if (commit.removed.length > 0) {
      known.clear()
      remove(commit.removed)
    }
  }
  return { apply, forget: () => known.clear() }
}

const missing = (id: number): Conflict => new Conflict({ what: `conversation ${id}`, detail: "it does not exist" })
