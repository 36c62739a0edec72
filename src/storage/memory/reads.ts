/**
 * The reads of the storage port on plain records. Pure.
 */
import type { Conversation } from "../../domain/conversation.ts"
import type { DocumentRecord } from "../../domain/document.ts"
import type { Entry } from "../../domain/entry.ts"
import type { Submission } from "../../domain/submission.ts"
import type { Task } from "../../domain/task.ts"
import type { ConversationSummary } from "../store.ts"
import type { Records } from "./state.ts"

const byId = <Row extends { readonly id: number }>(rows: Iterable<Row>): Array<Row> =>
  [...rows].sort((a, b) => a.id - b.id)

/** Newest first: by `updatedAt`, then by id. */
const newer = (a: Conversation, b: Conversation): number => b.updatedAt - a.updatedAt || b.id - a.id

export const ownEntries = (
  records: Records,
  conversation: number,
  range?: { readonly from?: number; readonly to?: number; readonly last?: number },
): ReadonlyArray<Entry> => {
  const { from = 1, to = Number.POSITIVE_INFINITY, last = Number.POSITIVE_INFINITY } = range ?? {}
  const rows = byId(records.entries.values()).filter(
    (entry) => entry.conversation === conversation && entry.id >= from && entry.id <= to,
  )
  return rows.slice(Math.max(0, rows.length - Math.max(0, last)))
}

/** What the parent sees up to the fork entry, then its own; all of it up to the cutoff. */
export const visibleEntries = (
  records: Records,
  conversation: number,
  cutoff = Number.POSITIVE_INFINITY,
): ReadonlyArray<Entry> => {
  const here = records.conversations.get(conversation)
  if (here === undefined) return []
  const inherited = here.parent === null ? [] : visibleEntries(records, here.parent.conversation, here.parent.entry)
  return [...inherited, ...ownEntries(records, conversation)].filter((entry) => entry.id <= cutoff)
}

export const contextEntries = (records: Records, conversation: number): ReadonlyArray<Entry> => {
  const visible = visibleEntries(records, conversation)
  const newest = visible.findLast((entry) => entry.head !== null)
  const head = newest?.head
  if (newest === undefined || head === null || head === undefined) return visible
  return visible.filter((entry) => entry.id >= head || entry.id === newest.id)
}

export const openTasks = (records: Records, conversation?: number): ReadonlyArray<Task> =>
  byId(records.tasks.values()).filter(
    (task) => task.status !== "terminal" && (conversation === undefined || task.conversation === conversation),
  )

export const listConversations = (
  records: Records,
  options: { readonly principal: string | null; readonly limit: number; readonly before?: number },
): ReadonlyArray<ConversationSummary> => {
  const { principal, limit, before } = options
  const edge = before === undefined ? null : records.conversations.get(before)
  if (edge === undefined) return []
  return [...records.conversations.values()]
    .filter((row) => row.owner === null && (principal === null || row.principal === principal))
    .filter((row) => edge === null || newer(edge, row) < 0)
    .sort(newer)
    .slice(0, limit)
    .map((conversation) => {
      const open = openTasks(records, conversation.id)
      const entries = ownEntries(records, conversation.id).length
      const parked = open.find((task) => task.parked !== null)?.parked ?? null
      return { conversation, entries, busy: open.length > 0, parked }
    })
}

export const openSubmissions = (records: Records, conversation: number): ReadonlyArray<Submission> =>
  byId(records.submissions.values()).filter(
    (row) => row.conversation === conversation && (row.status === "queued" || row.status === "placed"),
  )

export const submissionByRequest = (records: Records, conversation: number, requestId: string): Submission | null =>
  [...records.submissions.values()].find((row) => row.conversation === conversation && row.requestId === requestId) ??
  null

export const liveDocuments = (records: Records, conversation: number): ReadonlyArray<DocumentRecord> =>
  byId(records.documents.values()).filter((row) => row.conversation === conversation && row.retiredSeq === null)

export const globalDocument = (records: Records, kind: string, key: string): DocumentRecord | null =>
  [...records.documents.values()].find(
    (row) => row.scope === "global" && row.kind === kind && row.key === key && row.retiredSeq === null,
  ) ?? null
