/**
 * A commit as the JSON that `super_pi_commit` takes, made before it is sent: what cannot be encoded fails its caller alone. Beside it what
 * the commit locks. Keys are the columns; null ones are left out. Pure.
 */
import { isLegalTransition } from "../../domain/job-transitions.ts"
import { json } from "../json.ts"
import type { Commit, ConversationToken } from "../store.ts"
import { type Places, placesOf } from "./places.ts"
import { type PlainRows, plainRows } from "./plain-rows.ts"
import { encodeOptional, encodeText } from "./text.ts"

export interface EncodedCommit {
  readonly text: string
  /** Its rows, where it may go as a part of a plain group. */
  readonly plain: PlainRows | null
  readonly under: ConversationToken | null
  /** Conversations that must be there before, or are changed. */
  readonly conversations: ReadonlySet<number>
  /** Documents and tasks that no conversation guards; jobs that move on. */
  readonly documents: ReadonlyArray<number>
  readonly tasks: ReadonlyArray<number>
  readonly jobs: ReadonlyArray<number>
  readonly removes: boolean
}

/** Left out of JSON where it is null. */
const some = <A>(value: A | null): A | undefined => value ?? undefined
const bit = (value: boolean): number => (value ? 1 : 0)
const list = <A, B>(rows: ReadonlyArray<A> | undefined, encode: (row: A) => B): ReadonlyArray<B> | undefined =>
  rows === undefined || rows.length === 0 ? undefined : rows.map(encode)

/** How the JSON bodies of rows go: each in one of both ways, the other one undefined. Throws a `TypeError` where one is not JSON. */
interface Bodies {
  readonly raw: (value: unknown, what: string) => unknown
  readonly text: (value: unknown, what: string) => string | undefined
}

const notJson: ReadonlySet<string> = new Set(["undefined", "function", "symbol"])
const asTheyAre: Bodies = {
  raw: (value, what) => (notJson.has(typeof value) ? json(value, what) : value),
  text: () => undefined,
}
const asStrings: Bodies = { raw: () => undefined, text: json }

const nowhere: Places = {
  ofConversation: ({ id }) => ({ at_self: id }),
  ofTask: ({ conversation, id }) =>
    conversation === null ? { at_self: id } : { at_conversation: conversation, at_self: id },
}

/** Only new conversations and owned tasks without one need a look around. */
const placesIn = ({ conversations = [], tasks = [] }: Commit): Places =>
  conversations.length > 0 || tasks.some((task) => task.conversation === null && task.owner !== null)
    ? placesOf({ conversations, tasks })
    : nowhere

const encodeConversations = (commit: Commit, places: Places) =>
  list(commit.conversations, (c) => ({
    id: c.id,
    parent_conversation: c.parent?.conversation,
    parent_entry: c.parent?.entry,
    owner: some(c.owner),
    principal: encodeText(c.principal),
    title: encodeOptional(c.title),
    created_at: c.createdAt,
    updated_at: c.updatedAt,
    ...places.ofConversation(c),
  }))

const encodeEntries = (commit: Commit, to: Bodies) =>
  list(commit.entries, (e) => ({
    id: e.id,
    conversation: e.conversation,
    kind: encodeText(e.kind),
    model: to.raw(e.model, `entry ${e.id}.model`),
    model_text: to.text(e.model, `entry ${e.id}.model`),
    data: e.data === null ? undefined : to.raw(e.data, `entry ${e.id}.data`),
    data_text: e.data === null ? undefined : to.text(e.data, `entry ${e.id}.data`),
    head: some(e.head),
    edits: e.edits.length === 0 ? undefined : to.raw(e.edits, `entry ${e.id}.edits`),
    edits_text: e.edits.length === 0 ? undefined : to.text(e.edits, `entry ${e.id}.edits`),
    task: some(e.task),
    created_at: e.createdAt,
  }))

const encodeTasks = (commit: Commit, places: Places, to: Bodies) =>
  list(commit.tasks, (t) => ({
    id: t.id,
    conversation: some(t.conversation),
    kind: encodeText(t.kind),
    version: t.version,
    input: to.raw(t.input, `task ${t.id}.input`),
    input_text: to.text(t.input, `task ${t.id}.input`),
    status: t.status,
    checkpoint: to.raw(t.checkpoint, `task ${t.id}.checkpoint`),
    checkpoint_text: to.text(t.checkpoint, `task ${t.id}.checkpoint`),
    owner: some(t.owner),
    background: bit(t.background),
    abort_requested: bit(t.abortRequested),
    crashes: t.crashes,
    parked: encodeOptional(t.parked),
    node: encodeOptional(t.node),
    fence: t.fence,
    lease_until: some(t.leaseUntil),
    wake_at: some(t.wakeAt),
    waiting_on: t.waitingOn === null ? undefined : to.raw(t.waitingOn, `task ${t.id}.waitingOn`),
    waiting_on_text: t.waitingOn === null ? undefined : to.text(t.waitingOn, `task ${t.id}.waitingOn`),
    outcome: t.outcome === null ? undefined : to.raw(t.outcome, `task ${t.id}.outcome`),
    outcome_text: t.outcome === null ? undefined : to.text(t.outcome, `task ${t.id}.outcome`),
    request_id: encodeOptional(t.requestId),
    in_doubt: bit(t.inDoubt),
    created_at: t.createdAt,
    started_at: some(t.startedAt),
    ended_at: some(t.endedAt),
    ...places.ofTask(t),
  }))

const encodeSubmissions = (commit: Commit, to: Bodies) =>
  list(commit.submissions, (s) => ({
    id: s.id,
    conversation: s.conversation,
    kind: encodeText(s.kind),
    content: to.raw(s.content, `submission ${s.id}.content`),
    content_text: to.text(s.content, `submission ${s.id}.content`),
    when_busy: s.whenBusy,
    status: s.status,
    reason: encodeOptional(s.reason),
    detail: encodeOptional(s.detail),
    request_id: encodeOptional(s.requestId),
    entry: some(s.entry),
    answer: some(s.answer),
    created_at: s.createdAt,
  }))

const encodeDocuments = (commit: Commit, to: Bodies) =>
  list(commit.documents, (d) => ({
    id: d.id,
    kind: encodeText(d.kind),
    scope: d.scope,
    conversation: some(d.conversation),
    task: some(d.task),
    key: encodeText(d.key),
    version: d.version,
    history: d.history,
    fork: d.fork,
    value: to.raw(d.value, `document ${d.id}.value`),
    value_text: to.text(d.value, `document ${d.id}.value`),
    operations: d.revision === undefined ? undefined : to.raw(d.revision.operations, `document ${d.id}.revision`),
    operations_text: d.revision === undefined ? undefined : to.text(d.revision.operations, `document ${d.id}.revision`),
    since: d.since,
    retire: d.retire === true ? true : undefined,
    label: encodeText(d.key === "" ? d.kind : `${d.kind} ${d.key}`),
  }))

const encodeJobs = (commit: Commit, to: Bodies) =>
  list(commit.jobs, (job) => ({
    id: job.id,
    queue: encodeText(job.queue),
    worker: encodeText(job.worker),
    args: to.raw(job.args, `job ${job.id}.args`),
    args_text: to.text(job.args, `job ${job.id}.args`),
    unique_key: encodeOptional(job.uniqueKey),
    unique_for: job.uniqueFor,
    max_attempts: job.maxAttempts,
    run_at: job.runAt,
    conversation: some(job.conversation),
    created_at: job.createdAt,
  }))

const encodeJobUpdates = (commit: Commit, to: Bodies) =>
  list(commit.jobUpdates, ({ fence, from, job }) => ({
    id: job.id,
    state: job.state,
    keeps_key: job.uniqueKey !== null,
    attempt: job.attempt,
    max_attempts: job.maxAttempts,
    run_at: job.runAt,
    node: encodeOptional(job.node),
    fence: job.fence,
    lease_until: some(job.leaseUntil),
    errors: to.raw(job.errors, `job ${job.id}.errors`),
    errors_text: to.text(job.errors, `job ${job.id}.errors`),
    started_at: some(job.startedAt),
    ended_at: some(job.endedAt),
    from_state: from,
    from_fence: fence,
    legal: isLegalTransition(from, job.state),
  }))

/** Everything that a commit may hold and most do not, under the names that the function gives it. */
const encodeRest = (commit: Commit, held: ReadonlyArray<number> | null, to: Bodies) => ({
  jobs: encodeJobs(commit, to),
  job_updates: encodeJobUpdates(commit, to),
  job_claims: list(commit.jobClaims, (claim) => ({
    queue: encodeText(claim.queue),
    limit: Math.max(0, claim.limit),
    now: claim.now,
    lease_until: claim.leaseUntil,
    node: encodeText(claim.node),
    held: some(held),
  })),
  ended_before: commit.pruneJobs?.endedBefore,
  prune_limit: commit.pruneJobs === undefined ? undefined : Math.max(0, commit.pruneJobs.limit),
  artifacts: list(commit.artifacts, ({ at, content, conversation, mediaType, name }) => ({
    conversation,
    name: encodeText(name),
    media_type: encodeText(mediaType),
    size: content.length,
    content: Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64"),
    at,
  })),
  artifact_removals: list(commit.removeArtifacts, ({ conversation, name }) => ({
    conversation,
    name: encodeText(name),
  })),
  names: list(commit.names, (change) =>
    change.type === "prune"
      ? change
      : { ...change, name: encodeText(change.name), principal: encodeText(change.principal) },
  ),
  removed: list(commit.removeConversations, (id) => id),
})

/** Conversations that the rows of a commit belong to or branch off from, without those that it creates. */
const touchedBy = (commit: Commit): ReadonlySet<number> => {
  const touched = new Set<number>()
  const note = (id: number | null) => id !== null && touched.add(id)
  for (const row of commit.conversations ?? []) note(row.parent?.conversation ?? null)
  for (const row of commit.entries ?? []) note(row.conversation)
  for (const row of commit.tasks ?? []) note(row.conversation)
  for (const row of commit.submissions ?? []) note(row.conversation)
  for (const row of commit.documents ?? []) note(row.conversation)
  for (const row of commit.jobs ?? []) note(row.conversation)
  for (const row of commit.artifacts ?? []) note(row.conversation)
  for (const change of commit.names ?? []) if (change.type === "give") note(change.conversation)
  for (const row of commit.conversations ?? []) touched.delete(row.id)
  return touched
}

/** Tasks and documents that stand alone: nothing else orders what is written to them. */
const alone = (rows: ReadonlyArray<{ readonly id: number; readonly conversation: number | null }> | undefined) =>
  (rows ?? []).flatMap((row) => (row.conversation === null ? [row.id] : []))

/** What the parser of PostgreSQL refuses inside a body: U+0000 and surrogates, of which a pair is never escaped. */
const refused = /\\u(?:0000|d[89a-f])/

const textOf = (
  commit: Commit,
  touched: ReadonlySet<number>,
  held: ReadonlyArray<number> | null,
  to: Bodies,
): string => {
  const places = placesIn(commit)
  return JSON.stringify({
    under: commit.under,
    conversations: encodeConversations(commit, places),
    touched: touched.size === 0 ? undefined : [...touched],
    updates: list(commit.conversationUpdates, ({ id, title, updatedAt }) => ({
      id,
      updated_at: updatedAt,
      renamed: title !== undefined,
      title: encodeOptional(title ?? null),
    })),
    entry_count: commit.entries?.length,
    entries: encodeEntries(commit, to),
    tasks: encodeTasks(commit, places, to),
    submissions: encodeSubmissions(commit, to),
    documents: encodeDocuments(commit, to),
    ...encodeRest(commit, held, to),
  })
}

/** `held`: the shards whose jobs a claim may take; null takes all. Throws a `TypeError` where a body is not JSON. */
export const encode = (commit: Commit, held: ReadonlyArray<number> | null): EncodedCommit => {
  const touched = touchedBy(commit)
  const plain = plainRows(commit)
  const made = (): string => {
    const text = textOf(commit, touched, held, asTheyAre)
    return refused.test(text) ? textOf(commit, touched, held, asStrings) : text
  }
  // a plain one seldom needs it
  let text = plain === null ? made() : null
  const conversations = new Set(touched)
  for (const { id } of commit.conversationUpdates ?? []) conversations.add(id)
  for (const id of commit.removeConversations ?? []) conversations.add(id)
  if (commit.under !== undefined) conversations.add(commit.under.conversation)
  return {
    get text() {
      text ??= made()
      return text
    },
    plain,
    under: commit.under ?? null,
    conversations,
    documents: alone(commit.documents),
    tasks: alone(commit.tasks),
    jobs: (commit.jobUpdates ?? []).map(({ job }) => job.id),
    removes: (commit.removeConversations ?? []).length > 0,
  }
}
