/**
 * The reads of the storage port on the pool of a node. Each is one statement, and so one snapshot: it sees what any node was answered.
 */
import { decodeConversation, decodeSubmission, decodeTask } from "../decode.ts"
import type { ConversationSummary, StoreReads } from "../store.ts"
import { conversationColumns, openStatuses, taskColumns } from "./columns.ts"
import { documentReads, documentStatements } from "./documents.ts"
import { entryReads, entryStatements } from "./entries.ts"
import { artifactReads, artifactStatements, jobReads, jobStatements, nameReads, nameStatements } from "./jobs.ts"
import type { SqlRow } from "./link.ts"
import type { PostgresReading } from "./run.ts"
import { encodeText } from "./text.ts"

const submissionColumns =
  'id, conversation, kind, content, when_busy AS "whenBusy", status, reason, detail, request_id AS "requestId", entry, answer, created_at AS "createdAt", seq'

const summary = (where: string, edge: string): string => `SELECT ${conversationColumns},
  (SELECT count(*) FROM entries WHERE conversation = c.id) AS entries,
  EXISTS (SELECT 1 FROM tasks WHERE status IN ${openStatuses} AND conversation = c.id) AS busy,
  (SELECT parked FROM tasks WHERE status IN ${openStatuses} AND conversation = c.id AND parked IS NOT NULL LIMIT 1) AS parked
  FROM conversations c WHERE c.owner IS NULL${where}${edge} ORDER BY c.updated_at DESC, c.id DESC LIMIT $1`

/** A conversation that is gone has no place in the order: the listing ends. */
const before = " AND (c.updated_at, c.id) < ((SELECT updated_at FROM conversations WHERE id = $2), $2)"

/** The read statements, by name, for the plans that tests read. */
export const readStatements = {
  conversation: `SELECT ${conversationColumns} FROM conversations c WHERE c.id = $1`,
  everyones: summary("", ""),
  everyonesBefore: summary("", before),
  ones: summary(" AND c.principal = $2", ""),
  onesBefore: summary(" AND c.principal = $3", before),
  task: `SELECT ${taskColumns} FROM tasks WHERE id = $1`,
  openTasks: `SELECT ${taskColumns} FROM tasks WHERE status IN ${openStatuses} ORDER BY id`,
  openTasksOf: `SELECT ${taskColumns} FROM tasks WHERE status IN ${openStatuses} AND conversation = $1 ORDER BY id`,
  ownedTasks: `SELECT ${taskColumns} FROM tasks WHERE owner = $1 ORDER BY id`,
  ownedConversations: `SELECT ${conversationColumns} FROM conversations c WHERE c.owner = $1 ORDER BY c.id`,
  taskByRequest: `SELECT ${taskColumns} FROM tasks WHERE request_id = $1`,
  tasksInDoubt: `SELECT ${taskColumns} FROM tasks WHERE in_doubt = 1 ORDER BY id DESC LIMIT $1`,
  tasksInDoubtOf: `SELECT ${taskColumns} FROM tasks WHERE in_doubt = 1 AND conversation = $2 ORDER BY id DESC LIMIT $1`,
  submission: `SELECT ${submissionColumns} FROM submissions WHERE id = $1`,
  submissionByRequest: `SELECT ${submissionColumns} FROM submissions WHERE conversation = $1 AND request_id = $2`,
  openSubmissions: `SELECT ${submissionColumns} FROM submissions WHERE conversation = $1 AND status IN ('queued', 'placed') ORDER BY id`,
  ownerEpoch: "SELECT coalesce(max(epoch), 0) AS epoch FROM nodes",
  // of a node; of whoever took a conversation that nobody took again; of whoever raised the fence of tasks; of nobody: over
  endedEpochs: `SELECT e.epoch FROM unnest($1::bigint[]) WITH ORDINALITY AS e(epoch, at)
    LEFT JOIN nodes n ON n.epoch = coalesce(
      (SELECT token_epoch FROM conversations WHERE token = e.epoch AND token > 0), (SELECT epoch FROM adoptions WHERE fence = e.epoch), e.epoch)
    WHERE n.epoch IS NULL OR n.ended_at IS NOT NULL OR n.fenced_at IS NOT NULL ORDER BY e.at`,
  ...entryStatements,
  ...documentStatements,
  ...jobStatements,
  ...artifactStatements,
  ...nameStatements,
} as const

const summaryOf = (location: string, row: SqlRow): ConversationSummary => ({
  conversation: decodeConversation(location, row),
  entries: Number(row.entries),
  busy: row.busy === true,
  parked: typeof row.parked === "string" ? row.parked : null,
})

/** `held`: see {@link jobReads}. */
export const storeReads = (
  reading: PostgresReading,
  location: string,
  held: () => ReadonlyArray<number> | null = () => null,
): StoreReads => {
  const { many, one, read } = reading
  return {
    conversation: (id) => one(readStatements.conversation, [id], decodeConversation),
    conversations: ({ principal, limit, before: edge }) => {
      const start = [limit, ...(edge === undefined ? [] : [edge])]
      if (principal === null) {
        const statement = edge === undefined ? readStatements.everyones : readStatements.everyonesBefore
        return many(statement, start, summaryOf)
      }
      const statement = edge === undefined ? readStatements.ones : readStatements.onesBefore
      return many(statement, [...start, encodeText(principal)], summaryOf)
    },
    task: (id) => one(readStatements.task, [id], decodeTask),
    openTasks: (conversation) =>
      conversation === undefined
        ? many(readStatements.openTasks, [], decodeTask)
        : many(readStatements.openTasksOf, [conversation], decodeTask),
    ownedTasks: (owner) => many(readStatements.ownedTasks, [owner], decodeTask),
    ownedConversations: (owner) => many(readStatements.ownedConversations, [owner], decodeConversation),
    taskByRequest: (requestId) => one(readStatements.taskByRequest, [encodeText(requestId)], decodeTask),
    tasksInDoubt: ({ conversation, limit }) => {
      const most = Math.max(0, limit)
      return conversation === undefined
        ? many(readStatements.tasksInDoubt, [most], decodeTask)
        : many(readStatements.tasksInDoubtOf, [most, conversation], decodeTask)
    },
    submission: (id) => one(readStatements.submission, [id], decodeSubmission),
    submissionByRequest: (conversation, requestId) =>
      one(readStatements.submissionByRequest, [conversation, encodeText(requestId)], decodeSubmission),
    openSubmissions: (conversation) => many(readStatements.openSubmissions, [conversation], decodeSubmission),
    ownerEpoch: read(readStatements.ownerEpoch, [], ([row]) => Number(row?.epoch ?? 0)),
    endedEpochs: (epochs) => read(readStatements.endedEpochs, [epochs], (rows) => rows.map((row) => Number(row.epoch))),
    ...entryReads(reading, location),
    ...documentReads(reading),
    ...jobReads(reading, held),
    ...artifactReads(reading),
    ...nameReads(reading),
  }
}
