/**
 * Jobs on plain records: what a commit does with them, and their reads. Pure.
 */
import { Either } from "effect"
import type { JobId, Seq } from "../../domain/ids.ts"
import type { Job, JobState } from "../../domain/job.ts"
import { claimed, isLegalTransition } from "../../domain/job-transitions.ts"
import { Conflict, Fenced } from "../errors.ts"
import { type JobCount, type JobUpdate, jobRow } from "../job-port.ts"
import type { Commit } from "../store.ts"

type Jobs = ReadonlyMap<number, Job>

const conflict = (id: number, detail: string): Conflict => new Conflict({ what: `job ${id}`, detail })

/** A deep copy by way of JSON. */
const stored = <A>(value: A): A => JSON.parse(JSON.stringify(value))

/** The jobs after the commit, or why it is refused. */
export const applyJobs = (before: Jobs, commit: Commit, seq: Seq): Either.Either<Jobs, Conflict | Fenced> =>
  Either.gen(function* () {
    const { jobs, jobUpdates, jobClaims, pruneJobs } = commit
    if (jobs === undefined && jobUpdates === undefined && jobClaims === undefined && pruneJobs === undefined)
      return before
    const rows = new Map(before)
    for (const insert of jobs ?? []) {
      if (insert.uniqueKey !== null && jobByKey(rows, insert.queue, insert.uniqueKey) !== null) continue
      if (rows.has(insert.id)) return yield* Either.left(conflict(insert.id, "this id is already used"))
      rows.set(insert.id, stored({ ...jobRow(insert), seq }))
    }
    for (const update of jobUpdates ?? []) rows.set(update.job.id, yield* updated(rows, update, seq))
    for (const claim of jobClaims ?? []) {
      for (const job of dueJobs(rows, claim.queue, claim.now).slice(0, claim.limit)) {
        rows.set(job.id, { ...claimed(job, claim), seq })
      }
    }
    if (pruneJobs !== undefined) {
      const { endedBefore, limit } = pruneJobs
      const old = [...rows.values()]
        .flatMap(({ id, endedAt }) => (endedAt !== null && endedAt < endedBefore ? [{ id, endedAt }] : []))
        .sort((a, b) => a.endedAt - b.endedAt || a.id - b.id)
      for (const { id } of old.slice(0, limit)) rows.delete(id)
    }
    return rows
  })

const updated = (rows: Jobs, update: JobUpdate, seq: Seq): Either.Either<Job, Conflict | Fenced> => {
  const { job, from, fence } = update
  const now = rows.get(job.id)
  if (!isLegalTransition(from, job.state)) {
    return Either.left(conflict(job.id, `${from} → ${job.state} is no legal transition`))
  }
  if (now === undefined) return Either.left(conflict(job.id, "it does not exist"))
  if (now.fence !== fence) return Either.left(new Fenced({ what: `job ${job.id}`, held: fence, current: now.fence }))
  if (now.state !== from) return Either.left(conflict(job.id, `expected it to be ${from}, it is ${now.state}`))
  const { queue, worker, args, conversation, uniqueFor, createdAt } = now
  const uniqueKey = job.uniqueKey === null ? null : now.uniqueKey
  return Either.right(stored({ ...job, queue, worker, args, conversation, uniqueKey, uniqueFor, createdAt, seq }))
}

const dueJobs = (rows: Jobs, queue: string, now: number): ReadonlyArray<Job> =>
  [...rows.values()]
    .filter((job) => job.queue === queue && job.state === "available" && job.runAt <= now)
    .sort((a, b) => a.runAt - b.runAt || a.id - b.id)

export const jobByKey = (rows: Jobs, queue: string, uniqueKey: string): Job | null =>
  [...rows.values()].find((job) => job.queue === queue && job.uniqueKey === uniqueKey) ?? null

export const listJobs = (
  rows: Jobs,
  options: { readonly queue?: string; readonly state?: JobState; readonly limit: number; readonly before?: JobId },
): ReadonlyArray<Job> =>
  [...rows.values()]
    .filter((job) => options.queue === undefined || job.queue === options.queue)
    .filter((job) => options.state === undefined || job.state === options.state)
    .filter((job) => options.before === undefined || job.id < options.before)
    .sort((a, b) => b.id - a.id)
    .slice(0, Math.max(0, options.limit))

export const countJobs = (rows: Jobs): ReadonlyArray<JobCount> => {
  const counts = new Map<string, JobCount>()
  for (const { queue, state } of rows.values()) {
    const key = `${queue}\u0000${state}`
    counts.set(key, { queue, state, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  return [...counts.values()].sort((a, b) => order(a.queue, b.queue) || order(a.state, b.state))
}

export const dueAt = (rows: Jobs, queue: string): number | null => {
  const times = [...rows.values()].filter((job) => job.queue === queue && job.state === "available")
  return times.length === 0 ? null : Math.min(...times.map((job) => job.runAt))
}

export const executingJobs = (rows: Jobs, queue: string): ReadonlyArray<Job> =>
  [...rows.values()].filter((job) => job.queue === queue && job.state === "executing").sort((a, b) => a.id - b.id)
