/**
 * Jobs in SQLite: rows, statements, and what a commit does with them inside the writer's transaction.
 */
import { isLegalTransition } from "../../domain/job-transitions.ts"
import { decodeJob, decodeJobCount } from "../decode.ts"
import { Conflict, Fenced } from "../errors.ts"
import type { JobClaim, JobInsert, JobPruning, JobReads, JobUpdate } from "../job-port.ts"
import { json } from "../json.ts"
import type { Reading } from "../reading.ts"
import type { Commit } from "../store.ts"
import type { Database } from "./connection.ts"
import type { Param, Row } from "./encode.ts"
import { isDuplicate } from "./failures.ts"

const columns =
  "id, queue, worker, args, state, unique_key AS uniqueKey, unique_for AS uniqueFor, attempt, max_attempts AS maxAttempts, run_at AS runAt, conversation, node, fence, lease_until AS leaseUntil, errors, created_at AS createdAt, started_at AS startedAt, ended_at AS endedAt, seq"
const list = (where: string): string => `SELECT ${columns} FROM jobs WHERE ${where}id < ? ORDER BY id DESC LIMIT ?`
const everyState = "('available', 'executing', 'completed', 'discarded', 'cancelled')"

export const jobReadStatements = {
  job: `SELECT ${columns} FROM jobs WHERE id = ?`,
  jobByKey: `SELECT ${columns} FROM jobs WHERE queue = ? AND unique_key = ?`,
  jobs: list(""),
  jobsOfQueue: list(`queue = ? AND state IN ${everyState} AND `),
  jobsOfState: list("state = ? AND "),
  jobsOfQueueAndState: list("queue = ? AND state = ? AND "),
  jobCounts: "SELECT queue, state, count(*) AS count FROM jobs GROUP BY queue, state ORDER BY queue, state",
  dueAt: "SELECT run_at AS due FROM jobs WHERE queue = ? AND state = 'available' ORDER BY run_at, id LIMIT 1",
  executingJobs: `SELECT ${columns} FROM jobs WHERE queue = ? AND state = 'executing' ORDER BY id`,
} as const

export const jobWriteStatements = {
  jobInsert:
    "INSERT INTO jobs (id, queue, worker, args, state, unique_key, unique_for, attempt, max_attempts, run_at, conversation, node, fence, lease_until, errors, created_at, started_at, ended_at, seq) VALUES (?, ?, ?, ?, 'available', ?, ?, 0, ?, ?, ?, NULL, 0, NULL, '[]', ?, NULL, NULL, ?) ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING",
  jobUpdate:
    "UPDATE jobs SET state = ?, unique_key = iif(? IS NULL, NULL, unique_key), attempt = ?, max_attempts = ?, run_at = ?, node = ?, fence = ?, lease_until = ?, errors = ?, started_at = ?, ended_at = ?, seq = ? WHERE id = ? AND fence = ? AND state = ?",
  jobClaim:
    "UPDATE jobs SET state = 'executing', attempt = attempt + 1, fence = fence + 1, node = ?, lease_until = ?, started_at = ?, seq = ? WHERE id IN (SELECT id FROM jobs WHERE queue = ? AND state = 'available' AND run_at <= ? ORDER BY run_at, id LIMIT ?)",
  jobPrune: "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended_at < ? ORDER BY ended_at, id LIMIT ?)",
} as const

/** The job parts of a commit as parameters; null where it has none. */
export interface EncodedJobs {
  readonly inserts: ReadonlyArray<Row>
  readonly updates: ReadonlyArray<{ readonly update: JobUpdate; readonly row: Row; readonly guard: Row }>
  readonly claims: ReadonlyArray<JobClaim>
  readonly pruning: JobPruning | null
}

const none: ReadonlyArray<never> = []

const encodeInsert = (job: JobInsert): Row => [
  job.id,
  job.queue,
  job.worker,
  json(job.args, `job ${job.id}.args`),
  job.uniqueKey,
  job.uniqueFor,
  job.maxAttempts,
  job.runAt,
  job.conversation,
  job.createdAt,
]

const encodeUpdate = (update: JobUpdate): EncodedJobs["updates"][number] => {
  const { job, from, fence } = update
  const row: Row = [
    job.state,
    job.uniqueKey,
    job.attempt,
    job.maxAttempts,
    job.runAt,
    job.node,
    job.fence,
    job.leaseUntil,
    json(job.errors, `job ${job.id}.errors`),
    job.startedAt,
    job.endedAt,
  ]
  return { update, row, guard: [job.id, fence, from] }
}

/** Also notes the conversations that must exist. */
export const encodeJobs = (commit: Commit, touched: Set<number>): EncodedJobs | null => {
  const { jobs = none, jobUpdates = none, jobClaims = none, pruneJobs } = commit
  if (jobs.length + jobUpdates.length + jobClaims.length === 0 && pruneJobs === undefined) return null
  for (const job of jobs) if (job.conversation !== null) touched.add(job.conversation)
  return {
    inserts: jobs.map(encodeInsert),
    updates: jobUpdates.map(encodeUpdate),
    claims: jobClaims,
    pruning: pruneJobs ?? null,
  }
}

/** Applies the job parts of a commit; throws `Conflict` and `Fenced`. */
export const prepareJobWrites = (db: Database): ((jobs: EncodedJobs, seq: number) => void) => {
  const run = (sql: string) => db.prepare<Array<Param>>(sql)
  const insert = run(jobWriteStatements.jobInsert)
  const update = run(jobWriteStatements.jobUpdate)
  const claim = run(jobWriteStatements.jobClaim)
  const prune = run(jobWriteStatements.jobPrune)
  const now = db.prepare<[number], { state: string; fence: number }>("SELECT state, fence FROM jobs WHERE id = ?")

  const refuse = ({ job, from, fence }: JobUpdate): never => {
    const what = `job ${job.id}`
    const row = now.get(job.id)
    if (row === undefined) throw new Conflict({ what, detail: "it does not exist" })
    if (row.fence !== fence) throw new Fenced({ what, held: fence, current: row.fence })
    throw new Conflict({ what, detail: `expected it to be ${from}, it is ${row.state}` })
  }

  return ({ inserts, updates, claims, pruning }, seq) => {
    for (const row of inserts) {
      try {
        insert.run(...row, seq)
      } catch (cause) {
        if (isDuplicate(cause)) throw new Conflict({ what: `job ${row[0]}`, detail: "this id is already used" })
        throw cause
      }
    }
    for (const { update: wanted, row, guard } of updates) {
      const { job, from } = wanted
      if (!isLegalTransition(from, job.state)) {
        throw new Conflict({ what: `job ${job.id}`, detail: `${from} → ${job.state} is no legal transition` })
      }
      if (update.run(...row, seq, ...guard).changes === 0) refuse(wanted)
    }
    for (const { node, leaseUntil, now: at, queue, limit } of claims) {
      claim.run(node, leaseUntil, at, seq, queue, at, Math.max(0, limit))
    }
    if (pruning !== null) prune.run(pruning.endedBefore, Math.max(0, pruning.limit))
  }
}

export const jobReads = ({ many, one, read }: Reading): JobReads => ({
  job: (id) => one(jobReadStatements.job, [id], decodeJob),
  jobByKey: (queue, uniqueKey) => one(jobReadStatements.jobByKey, [queue, uniqueKey], decodeJob),
  jobs: ({ queue, state, limit, before = Number.MAX_SAFE_INTEGER }) => {
    const edge = [before, Math.max(0, limit)]
    if (queue === undefined) {
      return state === undefined
        ? many(jobReadStatements.jobs, edge, decodeJob)
        : many(jobReadStatements.jobsOfState, [state, ...edge], decodeJob)
    }
    return state === undefined
      ? many(jobReadStatements.jobsOfQueue, [queue, ...edge], decodeJob)
      : many(jobReadStatements.jobsOfQueueAndState, [queue, state, ...edge], decodeJob)
  },
  jobCounts: () => many(jobReadStatements.jobCounts, [], decodeJobCount),
  dueAt: (queue) => read(jobReadStatements.dueAt, [queue], ([row]) => (row === undefined ? null : Number(row.due))),
  executingJobs: (queue) => many(jobReadStatements.executingJobs, [queue], decodeJob),
})
