/**
 * SQL rows as records: the boundary at which what is stored is validated, once. A row that does not decode is a `CorruptRow` that
 * names the table, the row and the path within it. Pure; throws.
 */
import { ParseResult, Schema } from "effect"
import { Artifact } from "../domain/artifact.ts"
import { Conversation } from "../domain/conversation.ts"
import { DocumentHistory, DocumentRecord, DocumentScope, ForkPolicy } from "../domain/document.ts"
import { PatchOperation } from "../domain/document-patch.ts"
import type { DocumentRevision } from "../domain/document-revision.ts"
import { Entry } from "../domain/entry.ts"
import { Seq } from "../domain/ids.ts"
import { Job, JobState } from "../domain/job.ts"
import type { Json } from "../domain/json.ts"
import { NameRecord } from "../domain/session-name.ts"
import { Submission } from "../domain/submission.ts"
import { Task } from "../domain/task.ts"
import { CorruptRow } from "./errors.ts"
import { areEdits, areMessages, isId } from "./guards.ts"
import type { JobCount } from "./job-port.ts"

export type SqlRow = Readonly<Record<string, unknown>>

const corrupt = (location: string, table: string, row: SqlRow, detail: string): CorruptRow =>
  new CorruptRow({ location, table, row: String(row.id), detail })

const parse = (location: string, table: string, row: SqlRow, column: string): unknown => {
  const text = row[column]
  if (text === null) return null
  try {
    return JSON.parse(String(text))
  } catch (cause) {
    throw corrupt(
      location,
      table,
      row,
      `${column}: expected JSON, got ${cause instanceof Error ? cause.message : "something else"}`,
    )
  }
}

/** The first fault as `path: what`. */
const wording = (error: ParseResult.ParseError): string => {
  const issue = ParseResult.ArrayFormatter.formatErrorSync(error)[0]
  if (issue === undefined) return error.message
  return issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`
}

const decoder = <A, I>(table: string, schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (location: string, row: SqlRow, value: unknown): A => {
    const result = decode(value)
    if (result._tag === "Right") return result.right
    throw corrupt(location, table, row, wording(result.left))
  }
}

/** Schemas are compiled when the first row that needs one is read. */
const lazily = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

const conversation = lazily(() => decoder("conversations", Conversation))
const entry = lazily(() => decoder("entries", Entry))
const task = lazily(() => decoder("tasks", Task))
const submission = lazily(() => decoder("submissions", Submission))
const job = lazily(() => decoder("jobs", Job))
const jobCount = lazily(() =>
  decoder("jobs", Schema.Struct({ queue: Schema.String, state: JobState, count: Schema.Int })),
)
const artifact = lazily(() => decoder("artifacts", Artifact))
const name = lazily(() => decoder("names", NameRecord))
const operations = lazily(() => decoder("document_revisions", Schema.Array(PatchOperation)))
const stamp = lazily(() =>
  decoder(
    "document_revisions",
    Schema.Struct({ seq: Seq, type: Schema.Literal("base", "delta"), version: Schema.NonNegativeInt }),
  ),
)
const document = lazily(() => decoder("documents", DocumentRecord))

export const decodeConversation = (location: string, row: SqlRow): Conversation =>
  conversation()(location, row, {
    id: row.id,
    parent: row.parentConversation === null ? null : { conversation: row.parentConversation, entry: row.parentEntry },
    owner: row.owner,
    principal: row.principal,
    title: row.title,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    seq: row.seq,
  })

const isWhole = (value: unknown): boolean => Number.isSafeInteger(value)
const isIdOrNull = (value: unknown): boolean => value === null || isId(value)

export const decodeEntry = (location: string, row: SqlRow): Entry => {
  const model = parse(location, "entries", row, "model")
  const edits = row.edits === "[]" ? [] : parse(location, "entries", row, "edits")
  const value = {
    id: row.id,
    conversation: row.conversation,
    kind: row.kind,
    model,
    data: parse(location, "entries", row, "data"),
    head: row.head,
    edits,
    task: row.task,
    createdAt: row.createdAt,
    seq: row.seq,
  }
  const sound =
    areMessages(model) &&
    areEdits(edits) &&
    isId(value.id) &&
    isId(value.conversation) &&
    typeof value.kind === "string" &&
    value.kind !== "" &&
    isIdOrNull(value.head) &&
    isIdOrNull(value.task) &&
    isWhole(value.createdAt) &&
    isId(value.seq)
  // what the guards passed is what the schema gives
  return sound ? (value as Entry) : entry()(location, row, value)
}

export const decodeTask = (location: string, row: SqlRow): Task =>
  task()(location, row, {
    ...row,
    input: parse(location, "tasks", row, "input"),
    checkpoint: parse(location, "tasks", row, "checkpoint"),
    waitingOn: parse(location, "tasks", row, "waitingOn"),
    outcome: parse(location, "tasks", row, "outcome"),
    background: row.background === 1,
    abortRequested: row.abortRequested === 1,
    inDoubt: row.inDoubt === 1,
  })

export const decodeSubmission = (location: string, row: SqlRow): Submission =>
  submission()(location, row, { ...row, content: parse(location, "submissions", row, "content") })

const scopes: ReadonlySet<unknown> = new Set(DocumentScope.literals)
const histories: ReadonlySet<unknown> = new Set(DocumentHistory.literals)
const policies: ReadonlySet<unknown> = new Set(ForkPolicy.literals)

/** The value passes as it was parsed: whatever JSON an unknown kind holds stays what it is. */
export const decodeDocument = (location: string, row: SqlRow): DocumentRecord => {
  const value = { ...row, value: parse(location, "documents", row, "value") }
  const sound =
    isId(row.id) &&
    typeof row.kind === "string" &&
    row.kind !== "" &&
    scopes.has(row.scope) &&
    isIdOrNull(row.conversation) &&
    isIdOrNull(row.task) &&
    typeof row.key === "string" &&
    isWhole(row.version) &&
    Number(row.version) >= 0 &&
    histories.has(row.history) &&
    policies.has(row.fork) &&
    isId(row.createdSeq) &&
    isIdOrNull(row.retiredSeq) &&
    isId(row.seq)
  // what the guards passed is what the schema gives
  return sound ? (value as unknown as DocumentRecord) : document()(location, row, value)
}

export const decodeRevision = (location: string, row: SqlRow): DocumentRevision => {
  const named = { ...row, id: `${row.document} at ${row.seq}` }
  const body = parse(location, "document_revisions", named, "body")
  const { seq, type, version } = stamp()(location, named, row)
  return type === "base"
    ? { type, seq, version, value: body as Json }
    : { type, seq, version, operations: operations()(location, named, body) }
}

export const decodeJob = (location: string, row: SqlRow): Job =>
  job()(location, row, {
    ...row,
    args: parse(location, "jobs", row, "args"),
    errors: parse(location, "jobs", row, "errors"),
  })

export const decodeJobCount = (location: string, row: SqlRow): JobCount => jobCount()(location, row, row)

export const decodeArtifact = (location: string, row: SqlRow): Artifact =>
  artifact()(location, { ...row, id: `${row.conversation}/${row.name}` }, row)

export const decodeName = (location: string, row: SqlRow): NameRecord =>
  name()(location, { ...row, id: `${row.namespace}/${row.principal}/${row.name}` }, row)
