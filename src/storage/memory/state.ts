/**
 * The records of a store as plain values, and what a commit does to them: the storage port's rules in their simplest form. Pure; the
 * model that engines are compared with.
 */
import { Either } from "effect"
import type { Conversation } from "../../domain/conversation.ts"
import type { Entry } from "../../domain/entry.ts"
import type { Seq } from "../../domain/ids.ts"
import type { Job } from "../../domain/job.ts"
import type { Submission } from "../../domain/submission.ts"
import type { Task } from "../../domain/task.ts"
import type { StoredArtifact } from "../artifact-port.ts"
import { Conflict, Fenced } from "../errors.ts"
import type { Commit } from "../store.ts"
import { applyArtifacts } from "./artifacts.ts"
import { type DocumentRows, writeDocument } from "./documents.ts"
import { applyJobs } from "./jobs.ts"
import { applyNames, type Names } from "./names.ts"
import { taskByRequest } from "./tasks.ts"

export interface Records extends DocumentRows {
  readonly conversations: ReadonlyMap<number, Conversation>
  readonly entries: ReadonlyMap<number, Entry>
  readonly tasks: ReadonlyMap<number, Task>
  readonly submissions: ReadonlyMap<number, Submission>
  readonly jobs: ReadonlyMap<number, Job>
  /** By conversation and name. */
  readonly artifacts: ReadonlyMap<string, StoredArtifact>
  readonly names: Names
}

export const noRecords: Records = {
  conversations: new Map(),
  entries: new Map(),
  tasks: new Map(),
  submissions: new Map(),
  documents: new Map(),
  revisions: new Map(),
  jobs: new Map(),
  artifacts: new Map(),
  names: new Map(),
}

/** A deep copy by way of JSON: what is stored is what JSON keeps, and shares nothing with the caller. */
const stored = <A>(value: A): A => JSON.parse(JSON.stringify(value))

const conflict = (what: string, detail: string): Conflict => new Conflict({ what, detail })

const missing = (id: number): Conflict => conflict(`conversation ${id}`, "it does not exist")

/** The conversations that the rows of a commit belong to or branch off from. */
const references = (commit: Commit): ReadonlyArray<number> =>
  [
    ...(commit.conversations ?? []).map((row) => row.parent?.conversation),
    ...(commit.entries ?? []).map((row) => row.conversation),
    ...(commit.tasks ?? []).map((row) => row.conversation),
    ...(commit.submissions ?? []).map((row) => row.conversation),
    ...(commit.documents ?? []).map((row) => row.conversation),
    ...(commit.jobs ?? []).map((row) => row.conversation),
    ...(commit.artifacts ?? []).map((row) => row.conversation),
    ...(commit.names ?? []).map((change) => (change.type === "give" ? change.conversation : null)),
  ].filter((id) => id !== null && id !== undefined)

/** The records after the commit, or why it is refused. `records` stays as it was. */
export const applyCommit = (records: Records, commit: Commit, seq: Seq): Either.Either<Records, Conflict | Fenced> =>
  Either.gen(function* () {
    const conversations = new Map(records.conversations)
    const entries = new Map(records.entries)
    const tasks = new Map(records.tasks)
    const submissions = new Map(records.submissions)
    let documents: DocumentRows = records
    for (const row of commit.conversations ?? []) {
      if (conversations.has(row.id)) {
        return yield* Either.left(conflict(`conversation ${row.id}`, "this id is already used"))
      }
      conversations.set(row.id, stored({ ...row, seq }))
    }
    for (const id of references(commit)) {
      if (!conversations.has(id)) return yield* Either.left(missing(id))
    }
    for (const update of commit.conversationUpdates ?? []) {
      const before = conversations.get(update.id)
      if (before === undefined) return yield* Either.left(missing(update.id))
      const title = update.title === undefined ? before.title : update.title
      conversations.set(update.id, { ...before, title, updatedAt: update.updatedAt, seq })
    }
    for (const row of commit.entries ?? []) {
      if (entries.has(row.id)) return yield* Either.left(conflict(`entry ${row.id}`, "this id is already used"))
      entries.set(row.id, stored({ ...row, seq }))
    }
    for (const row of commit.tasks ?? []) {
      const before = tasks.get(row.id)
      if (before !== undefined && before.conversation !== row.conversation) {
        return yield* Either.left(conflict(`task ${row.id}`, "this id is already used"))
      }
      if (before !== undefined && before.fence > row.fence) {
        return yield* Either.left(new Fenced({ what: `task ${row.id}`, held: row.fence, current: before.fence }))
      }
      const twin = row.requestId === null ? null : taskByRequest(tasks, row.requestId)
      if (twin !== null && twin.id !== row.id) {
        const what = `request id ${JSON.stringify(row.requestId)}`
        return yield* Either.left(conflict(what, `it is already task ${twin.id}`))
      }
      tasks.set(row.id, stored({ ...row, seq }))
    }
    for (const row of commit.submissions ?? []) {
      const before = submissions.get(row.id)
      if (before !== undefined && before.conversation !== row.conversation) {
        return yield* Either.left(conflict(`submission ${row.id}`, "this id is already used"))
      }
      const twin = [...submissions.values()].find(
        (other) =>
          row.requestId !== null &&
          other.id !== row.id &&
          other.conversation === row.conversation &&
          other.requestId === row.requestId,
      )
      if (twin !== undefined) {
        const what = `request id ${JSON.stringify(row.requestId)} in conversation ${row.conversation}`
        return yield* Either.left(conflict(what, `it is already submission ${twin.id}`))
      }
      submissions.set(row.id, stored({ ...row, seq }))
    }
    for (const write of commit.documents ?? []) {
      documents = yield* writeDocument(documents, write, seq)
    }
    const jobs = yield* applyJobs(records.jobs, commit, seq)
    const artifacts = applyArtifacts(records.artifacts, commit, seq)
    const names = yield* applyNames(records.names, commit)
    const { documents: rows, revisions } = documents
    const kept = { conversations, entries, tasks, submissions, jobs, artifacts, names }
    const next: Records = { documents: rows, revisions, ...kept }
    return yield* removeConversations(next, commit.removeConversations ?? [])
  })

const removeConversations = (records: Records, ids: ReadonlyArray<number>): Either.Either<Records, Conflict> => {
  if (ids.length === 0) return Either.right(records)
  const doomed = new Set<number>()
  const visit = (id: number): void => {
    if (doomed.has(id)) return
    doomed.add(id)
    for (const child of records.conversations.values()) {
      if (child.owner !== null && records.tasks.get(child.owner)?.conversation === id) visit(child.id)
    }
  }
  for (const id of ids) {
    if (!records.conversations.has(id)) return Either.left(missing(id))
    visit(id)
  }
  for (const child of records.conversations.values()) {
    if (child.parent !== null && doomed.has(child.parent.conversation) && !doomed.has(child.id)) {
      const detail = `its fork ${child.id} still needs it; remove that one first`
      return Either.left(conflict(`conversation ${child.parent.conversation}`, detail))
    }
  }
  const kept = (row: { readonly conversation: number | null } | undefined): boolean =>
    row !== undefined && (row.conversation === null || !doomed.has(row.conversation))
  const keep = <Row extends { readonly conversation: number | null }>(rows: ReadonlyMap<number, Row>) =>
    new Map([...rows].filter(([, row]) => kept(row)))
  return Either.right({
    conversations: new Map([...records.conversations].filter(([id]) => !doomed.has(id))),
    entries: keep(records.entries),
    tasks: keep(records.tasks),
    submissions: keep(records.submissions),
    documents: keep(records.documents),
    revisions: new Map([...records.revisions].filter(([id]) => kept(records.documents.get(id)))),
    jobs: keep(records.jobs),
    artifacts: new Map([...records.artifacts].filter(([, row]) => !doomed.has(row.artifact.conversation))),
    names: new Map([...records.names].filter(([, row]) => !doomed.has(row.conversation))),
  })
}
