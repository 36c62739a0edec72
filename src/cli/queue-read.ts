/**
 * What the `queue` commands share: the words on the command line, and lines for people.
 */
import { JobId } from "../domain/ids.ts"
import type { Job } from "../domain/job.ts"
import type { QueueView } from "../domain/queue.ts"
import { ago } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { truncate } from "../protocols/terminal/width.ts"
import type { Invocation } from "./arguments.ts"
import { usageFailure } from "./exit.ts"

/** The ID among the words of a command. */
export const jobIdOf = (invocation: Invocation): JobId => {
  const word = invocation.words[0] ?? ""
  const id = /^\d{1,16}$/.test(word) ? Number(word) : 0
  if (id < 1 || !Number.isSafeInteger(id)) {
    throw usageFailure(`ID: expected the number of a job, got "${word}"; see: super-pi queue list`)
  }
  return JobId.make(id)
}

/** When something is: `in 5 min`, or how long ago. */
const when = (at: number, now: number): string => {
  if (at <= now) return ago(at, now)
  const seconds = Math.ceil((at - now) / 1000)
  if (seconds < 120) return `in ${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 120) return `in ${minutes} min`
  const hours = Math.ceil(minutes / 60)
  return hours < 48 ? `in ${hours} h` : `in ${Math.ceil(hours / 24)} days`
}

const cut = (line: string, columns: number | null): string => (columns === null ? line : truncate(line, columns - 1))

/** A line for each queue. Pure. */
export const queueLines = (
  views: ReadonlyArray<QueueView>,
  now: number,
  columns: number | null,
): ReadonlyArray<string> => {
  const width = Math.max(0, ...views.map(({ queue }) => queue.length))
  return views.map(({ concurrency, counts, due_at, paused, queue, workers }) => {
    const { available = 0, executing = 0, completed = 0, discarded = 0, cancelled = 0 } = counts
    const slots = concurrency === null ? "" : `/${concurrency}`
    const notes = [
      ...(due_at === null ? [] : [due_at <= now ? "due now" : `next ${when(due_at, now)}`]),
      ...(completed === 0 ? [] : [`${completed} completed`]),
      ...(discarded === 0 ? [] : [`${discarded} discarded`]),
      ...(cancelled === 0 ? [] : [`${cancelled} cancelled`]),
      ...(paused ? ["paused"] : []),
      ...(workers === null ? [] : workers.length === 0 ? ["no workers on this node"] : []),
    ]
    const depth = `${executing}${slots} executing, ${available} available`
    return cut([queue.padEnd(width), depth, ...notes].join("  "), columns)
  })
}

/** A line for each job. Pure. */
export const jobLines = (jobs: ReadonlyArray<Job>, now: number, columns: number | null): ReadonlyArray<string> => {
  const ids = Math.max(0, ...jobs.map(({ id }) => String(id).length))
  const states = Math.max(0, ...jobs.map(({ state }) => state.length))
  return jobs.map((job) => {
    const at = job.endedAt ?? (job.state === "executing" ? job.startedAt : null) ?? job.runAt
    const parts = [
      String(job.id).padStart(ids),
      job.state.padEnd(states),
      `${oneLine(job.queue)}/${oneLine(job.worker)}`,
      `attempt ${job.attempt}/${job.maxAttempts}`,
      when(at, now),
      ...(job.conversation === null ? [] : [`conversation ${job.conversation}`]),
    ]
    return cut(parts.join("  "), columns)
  })
}

/** Everything about one job. Pure. */
export const jobDetails = (job: Job): ReadonlyArray<string> => {
  const time = (at: number | null): string => (at === null ? "-" : new Date(at).toISOString())
  return [
    `job ${job.id}  ${job.state}`,
    `queue         ${oneLine(job.queue)}`,
    `worker        ${oneLine(job.worker)}`,
    `arguments     ${oneLine(JSON.stringify(job.args))}`,
    `attempts      ${job.attempt} of ${job.maxAttempts}`,
    ...(job.uniqueKey === null ? [] : [`unique        ${oneLine(job.uniqueKey)} (${job.uniqueFor})`]),
    ...(job.conversation === null ? [] : [`conversation  ${job.conversation}`]),
    `inserted      ${time(job.createdAt)}`,
    `due           ${time(job.runAt)}`,
    `started       ${time(job.startedAt)}`,
    `ended         ${time(job.endedAt)}`,
    ...(job.node === null ? [] : [`held by       ${oneLine(job.node)} until ${time(job.leaseUntil)}`]),
    ...job.errors.map(({ at, attempt, error }) => `attempt ${attempt}     ${time(at)}  ${oneLine(error)}`),
  ]
}
