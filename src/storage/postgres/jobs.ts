/**
 * Reads of jobs, artifacts and names.
 */
import type { ArtifactReads } from "../artifact-port.ts"
import { decodeArtifact, decodeJob, decodeJobCount, decodeName } from "../decode.ts"
import type { JobReads } from "../job-port.ts"
import type { ListedName, NameReads } from "../name-port.ts"
import type { Reading } from "../reading.ts"
import { heldCondition } from "./functions/work.ts"
import type { SqlRow } from "./link.ts"
import type { PostgresReading } from "./run.ts"
import { encodeText } from "./text.ts"

const columns =
  'id, queue, worker, args, state, unique_key AS "uniqueKey", unique_for AS "uniqueFor", attempt, max_attempts AS "maxAttempts", run_at AS "runAt", conversation, node, fence, lease_until AS "leaseUntil", errors, created_at AS "createdAt", started_at AS "startedAt", ended_at AS "endedAt", seq'
const everyState = "('available', 'executing', 'completed', 'discarded', 'cancelled')"
const page = "id < $1 ORDER BY id DESC LIMIT $2"

export const jobStatements = {
  job: `SELECT ${columns} FROM jobs WHERE id = $1`,
  jobByKey: `SELECT ${columns} FROM jobs WHERE queue = $1 AND unique_key = $2`,
  jobs: `SELECT ${columns} FROM jobs WHERE ${page}`,
  jobsOfQueue: `SELECT ${columns} FROM jobs WHERE queue = $3 AND state IN ${everyState} AND ${page}`,
  jobsOfState: `SELECT ${columns} FROM jobs WHERE state = $3 AND ${page}`,
  jobsOfQueueAndState: `SELECT ${columns} FROM jobs WHERE queue = $3 AND state = $4 AND ${page}`,
  jobCounts: "SELECT queue, state, count(*) AS count FROM jobs GROUP BY queue, state ORDER BY queue, state",
  dueAt: `SELECT run_at AS due FROM jobs WHERE queue = $1 AND state = 'available' AND ${heldCondition("$2::int[]")} ORDER BY run_at, id LIMIT 1`,
  executingJobs: `SELECT ${columns} FROM jobs WHERE queue = $1 AND state = 'executing' ORDER BY id`,
} as const

/** `held`: the shards whose jobs are this node's; null: all. */
export const jobReads = ({ many, one, read }: PostgresReading, held: () => ReadonlyArray<number> | null): JobReads => ({
  job: (id) => one(jobStatements.job, [id], decodeJob),
  jobByKey: (queue, uniqueKey) => one(jobStatements.jobByKey, [encodeText(queue), encodeText(uniqueKey)], decodeJob),
  jobs: ({ queue, state, limit, before = Number.MAX_SAFE_INTEGER }) => {
    const edge = [before, Math.max(0, limit)]
    if (queue === undefined) {
      return state === undefined
        ? many(jobStatements.jobs, edge, decodeJob)
        : many(jobStatements.jobsOfState, [...edge, state], decodeJob)
    }
    return state === undefined
      ? many(jobStatements.jobsOfQueue, [...edge, encodeText(queue)], decodeJob)
      : many(jobStatements.jobsOfQueueAndState, [...edge, encodeText(queue), state], decodeJob)
  },
  jobCounts: () => many(jobStatements.jobCounts, [], decodeJobCount),
  dueAt: (queue) =>
    read(jobStatements.dueAt, [encodeText(queue), held()], ([row]) => (row === undefined ? null : Number(row.due))),
  executingJobs: (queue) => many(jobStatements.executingJobs, [encodeText(queue)], decodeJob),
})

const artifactColumns =
  'conversation, name, media_type AS "mediaType", size, created_at AS "createdAt", updated_at AS "updatedAt", seq'

export const artifactStatements = {
  artifact: `SELECT ${artifactColumns}, content FROM artifacts WHERE conversation = $1 AND name = $2`,
  artifacts: `SELECT ${artifactColumns} FROM artifacts WHERE conversation = $1 ORDER BY name`,
} as const

export const artifactReads = ({ many, one }: Reading): ArtifactReads => ({
  artifact: (conversation, name) =>
    one(artifactStatements.artifact, [conversation, encodeText(name)], (location, { content, ...row }) => ({
      artifact: decodeArtifact(location, row),
      content: new Uint8Array(content as Buffer),
    })),
  artifacts: (conversation) => many(artifactStatements.artifacts, [conversation], decodeArtifact),
})

const listed =
  'n.namespace, n.principal, n.name, n.conversation, n.created_at AS "createdAt", n.used_at AS "usedAt", c.title, c.updated_at AS "updatedAt" FROM names n JOIN conversations c ON c.id = n.conversation'
const order = "ORDER BY c.updated_at DESC, n.name LIMIT $3"

export const nameStatements = {
  name: `SELECT ${listed} WHERE n.namespace = $1 AND n.principal = $2 AND n.name = $3`,
  names: `SELECT ${listed} WHERE n.namespace = $1 AND n.principal = $2 ${order}`,
  // without that name there is no place in the order, and the listing ends
  namesBefore: `SELECT ${listed} JOIN (
      SELECT oc.updated_at FROM names o JOIN conversations oc ON oc.id = o.conversation
      WHERE o.namespace = $1 AND o.principal = $2 AND o.name = $4
    ) edge ON c.updated_at < edge.updated_at OR c.updated_at = edge.updated_at AND n.name > $4
    WHERE n.namespace = $1 AND n.principal = $2 ${order}`,
} as const

const nameOf = (location: string, { title, updatedAt, ...row }: SqlRow): ListedName => ({
  record: decodeName(location, row),
  // columns of conversations: NULL or text, and bigint
  title: title as string | null,
  updatedAt: updatedAt as number,
})

export const nameReads = ({ many, one }: Reading): NameReads => ({
  name: ({ name, namespace, principal }) =>
    one(nameStatements.name, [namespace, encodeText(principal), encodeText(name)], nameOf),
  names: ({ before, limit, namespace, principal }) => {
    const of = [namespace, encodeText(principal), Math.max(0, limit)]
    return before === undefined
      ? many(nameStatements.names, of, nameOf)
      : many(nameStatements.namesBefore, [...of, encodeText(before)], nameOf)
  },
})
