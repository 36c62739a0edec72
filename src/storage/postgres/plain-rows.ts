/**
 * The rows of a plain commit, in the order of the columns of `plain.ts`, encoded before it is sent: what cannot be fails its caller alone. Pure.
 */
import { json } from "../json.ts"
import type { Commit } from "../store.ts"
import { encodeText } from "./text.ts"

/** In the order in which they are written. */
export const kinds = ["updates", "entries", "tasks", "submissions", "documents"] as const
export type Kind = (typeof kinds)[number]

export type Value = number | string | boolean | null
export type PlainRows = Readonly<Record<Kind, ReadonlyArray<ReadonlyArray<Value>>>>

const bit = (value: boolean): number => (value ? 1 : 0)
const text = (value: string | null | undefined): string | null =>
  value === null || value === undefined ? null : encodeText(value)
const body = (value: unknown, what: string): string | null => (value === null ? null : json(value, what))

const parts: ReadonlySet<string> = new Set([
  ...["under", "conversationUpdates", "entries", "tasks", "submissions", "documents"],
])

/** An empty part is none: the machine of a conversation leaves few of them out. */
const isNone = (part: unknown): boolean => part === undefined || (Array.isArray(part) && part.length === 0)

/** Whether a commit writes rows of conversations that are there, and nothing that needs a look around. */
const isPlain = (commit: Commit): boolean => {
  for (const [part, rows] of Object.entries(commit)) if (!parts.has(part) && !isNone(rows)) return false
  const { documents = [], tasks = [] } = commit
  return (
    tasks.every(({ conversation, requestId }) => conversation !== null && requestId === null) &&
    documents.every(
      ({ conversation, history, retire }) => conversation !== null && history !== "rewindable" && retire !== true,
    )
  )
}

const none: ReadonlyArray<never> = []

/** Null where the commit is of another kind. Throws a `TypeError` where a body is not JSON. */
export const plainRows = (commit: Commit): PlainRows | null => {
  if (!isPlain(commit)) return null
  const { conversationUpdates = none, documents = none, entries = none, submissions = none, tasks = none } = commit
  return {
    updates: conversationUpdates.map(({ id, title, updatedAt }) => [id, updatedAt, title !== undefined, text(title)]),
    entries: entries.map((e) => [
      ...[e.id, e.conversation, encodeText(e.kind), json(e.model, `entry ${e.id}.model`)],
      ...[body(e.data, `entry ${e.id}.data`), e.head],
      ...[e.edits.length === 0 ? "[]" : json(e.edits, `entry ${e.id}.edits`), e.task, e.createdAt],
    ]),
    tasks: tasks.map((t) => [
      ...[t.id, t.conversation, encodeText(t.kind), t.version, json(t.input, `task ${t.id}.input`), t.status],
      ...[json(t.checkpoint, `task ${t.id}.checkpoint`), t.owner, bit(t.background), bit(t.abortRequested), t.crashes],
      ...[text(t.parked), text(t.node), t.fence, t.leaseUntil, t.wakeAt, body(t.waitingOn, `task ${t.id}.waitingOn`)],
      ...[body(t.outcome, `task ${t.id}.outcome`), bit(t.inDoubt), t.createdAt, t.startedAt, t.endedAt],
    ]),
    submissions: submissions.map((s) => [
      ...[s.id, s.conversation, encodeText(s.kind), json(s.content, `submission ${s.id}.content`), s.whenBusy],
      ...[s.status, text(s.reason), text(s.detail), text(s.requestId), s.entry, s.answer, s.createdAt],
    ]),
    documents: documents.map((d) => [
      ...[d.id, encodeText(d.kind), d.scope, d.conversation, d.task, encodeText(d.key), d.version, d.history, d.fork],
      ...[json(d.value, `document ${d.id}.value`), d.since ?? null],
    ]),
  }
}
