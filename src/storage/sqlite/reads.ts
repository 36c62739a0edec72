/**
 * The reads of the storage port, written once for whatever runs them: prepared statements on the writer's connection, or the client on one of its
 * own (`Reading`). Each is one statement, and so one snapshot. Parameters are `?` in order: the driver binds numbered ones by name only.
 */
import { decodeConversation, decodeSubmission, type SqlRow } from "../decode.ts"
import type { Reading } from "../reading.ts"
import type { ConversationSummary, StoreReads } from "../store.ts"
import { artifactReadStatements, artifactReads } from "./artifacts.ts"
import { conversationColumns, openStatuses } from "./columns.ts"
import { documentReadStatements, documentReads } from "./documents.ts"
import { entryReads, entryStatements } from "./entries.ts"
import { jobReadStatements, jobReads } from "./jobs.ts"
import { nameReadStatements, nameReads } from "./names.ts"
import { taskReads, taskStatements } from "./tasks.ts"

const submissionColumns =
  "id, conversation, kind, content, when_busy AS whenBusy, status, reason, detail, request_id AS requestId, entry, answer, created_at AS createdAt, seq"

const largest = Number.MAX_SAFE_INTEGER

const summary = (where: string, edge: string): string => `SELECT ${conversationColumns},
  (SELECT count(*) FROM entries WHERE conversation = c.id) AS entries,
  EXISTS (SELECT 1 FROM tasks WHERE status IN ${openStatuses} AND conversation = c.id) AS busy,
  (SELECT parked FROM tasks WHERE status IN ${openStatuses} AND conversation = c.id AND parked IS NOT NULL LIMIT 1) AS parked
  FROM conversations c WHERE ${where} AND (c.updated_at, c.id) < (${edge}, ?) ORDER BY c.updated_at DESC, c.id DESC LIMIT ?`

const everyone = "c.owner IS NULL"
const ofOne = `${everyone} AND c.principal = ?`
/** A conversation that is gone has no place in the order: the listing ends. */
const before = "(SELECT updated_at FROM conversations WHERE id = ?)"

/** The read statements, by name, for the plans that tests read. */
export const readStatements = {
  conversation: `SELECT ${conversationColumns} FROM conversations c WHERE c.id = ?`,
  everyones: summary(everyone, "?"),
  everyonesBefore: summary(everyone, before),
  ones: summary(ofOne, "?"),
  onesBefore: summary(ofOne, before),
  submission: `SELECT ${submissionColumns} FROM submissions WHERE id = ?`,
  submissionByRequest: `SELECT ${submissionColumns} FROM submissions WHERE conversation = ? AND request_id = ?`,
  openSubmissions: `SELECT ${submissionColumns} FROM submissions WHERE conversation = ? AND status IN ('queued', 'placed') ORDER BY id`,
  ownerEpoch: "SELECT value FROM meta WHERE name = 'epoch'",
  ...entryStatements,
  ...documentReadStatements,
  ...taskStatements,
  ...jobReadStatements,
  ...artifactReadStatements,
  ...nameReadStatements,
} as const

const summaryOf = (location: string, row: SqlRow): ConversationSummary => ({
  conversation: decodeConversation(location, row),
  entries: Number(row.entries),
  busy: row.busy === 1,
  parked: typeof row.parked === "string" ? row.parked : null,
})

export const storeReads = (reading: Reading, location: string): StoreReads => {
  const { many, one, read } = reading
  const epoch = <A>(use: (current: number) => A) =>
    read(readStatements.ownerEpoch, [], ([row]) => use(Number(row?.value ?? 0)))
  return {
    conversation: (id) => one(readStatements.conversation, [id], decodeConversation),
    conversations: ({ principal, limit, before: edge }) => {
      const place = edge === undefined ? [largest, largest] : [edge, edge]
      const most = Math.max(0, limit)
      if (principal === null) {
        const statement = edge === undefined ? readStatements.everyones : readStatements.everyonesBefore
        return many(statement, [...place, most], summaryOf)
      }
      const statement = edge === undefined ? readStatements.ones : readStatements.onesBefore
      return many(statement, [principal, ...place, most], summaryOf)
    },
    submission: (id) => one(readStatements.submission, [id], decodeSubmission),
    submissionByRequest: (conversation, requestId) =>
      one(readStatements.submissionByRequest, [conversation, requestId], decodeSubmission),
    openSubmissions: (conversation) => many(readStatements.openSubmissions, [conversation], decodeSubmission),
    ownerEpoch: epoch((current) => current),
    endedEpochs: (epochs) => epoch((current) => epochs.filter((each) => each < current)),
    ...entryReads(reading, location),
    ...documentReads(reading),
    ...taskReads(reading),
    ...jobReads(reading),
    ...artifactReads(reading),
    ...nameReads(reading),
  }
}
