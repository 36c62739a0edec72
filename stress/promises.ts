/**
 * What clients were told, held against the database: the second half of the check. Pure; numbered on from `invariants.ts`.
 */
import type { Entry } from "../src/domain/entry.ts"
import type { World } from "./database.ts"
import { answersOf } from "./invariants.ts"
import type { Observations } from "./observations.ts"
import type { Plan } from "./plan.ts"

/** P1: every acknowledged submission is there under its id and its request, admitted once, and ended as its waiter was told. */
const kept = (world: World, seen: Observations): ReadonlyArray<string> => {
  const byId = new Map<number, World["submissions"][number]>(world.submissions.map((row) => [row.id, row]))
  const faults: Array<string> = []
  for (const [key, { submission, conversation }] of seen.acknowledged) {
    const row = byId.get(submission)
    if (row === undefined) faults.push(`P1 ${key}: acknowledged submission ${submission} is not there`)
    else if (row.requestId !== key || row.conversation !== conversation) {
      faults.push(
        `P1 ${key}: submission ${submission} holds request ${row.requestId} of conversation ${row.conversation}`,
      )
    }
    const told = seen.settled.get(key)
    if (told === undefined) faults.push(`P1 ${key}: nobody was told how submission ${submission} ended`)
    else if (row !== undefined && (told.status !== row.status || told.entry_id !== row.answer)) {
      faults.push(`P1 ${key}: told ${told.status} (entry ${told.entry_id}), stored ${row.status} (entry ${row.answer})`)
    }
  }
  return faults
}

/** P2: each request id is in the database at most once, all of them were sent, and what was refused as busy wrote nothing. */
const admittedOnce = (world: World, seen: Observations, plan: Plan): ReadonlyArray<string> => {
  const sent = new Set(plan.jobs.flat().map(({ key }) => key))
  const found = new Set<string>()
  const faults: Array<string> = []
  for (const { id, requestId } of world.submissions) {
    if (requestId === null || !sent.has(requestId))
      faults.push(`P2 submission ${id}: request ${requestId} was never sent`)
    else if (found.has(requestId)) faults.push(`P2 request ${requestId} was admitted twice`)
    else found.add(requestId)
  }
  for (const key of seen.refused) {
    if (found.has(key) && !seen.acknowledged.has(key)) faults.push(`P2 ${key}: refused as busy, but admitted`)
  }
  return faults
}

/** Kills after which a run may be parked, by the limit of unclean ends. */
const parkingKills = 5

/** Attempts after which a model that keeps failing ends the run: the first and six more. */
const attempts = 7

/** P3: the answer of a done submission is the planned one, of its own prompt or of one that steered the same run; the rest was cancelled, parked, or failed by its model. */
const answered = (world: World, seen: Observations, plan: Plan): ReadonlyArray<string> => {
  const jobs = new Map(plan.jobs.flat().map((job) => [job.prompt, job]))
  const faults = new Map(plan.jobs.flat().map((job) => [job.key, job.faults]))
  const answers = answersOf(world.entries)
  return world.submissions.flatMap(({ id, requestId, status, reason, detail, answer, conversation }) => {
    if (status === "unanswered") {
      const cancelled = (reason === "aborted" || reason === "withdrawn") && seen.cancelled.has(conversation)
      const parked = reason === "parked" && seen.kills >= parkingKills
      // Each life sees the planned faults anew, so many kills can use up the attempts of one request.
      const failures = (faults.get(requestId ?? "") ?? 0) * (seen.kills + 1)
      const failed = reason === "model_error" && failures >= attempts
      return cancelled || parked || failed
        ? []
        : [`P3 ${requestId} (submission ${id}): unanswered, ${reason}: ${detail}`]
    }
    const found = answer === null ? undefined : answers.get(answer)
    const job = found === undefined ? undefined : jobs.get(found.asked)
    if (found === undefined || job === undefined)
      return [`P3 ${requestId} (submission ${id}): entry ${answer} is no final answer`]
    return found.text === job.answer
      ? []
      : [`P3 ${requestId}: answered ${JSON.stringify(found.text)}, planned ${JSON.stringify(job.answer)}`]
  })
}

/** P4: an entry that an event showed is there with the same content. */
const shown = (world: World, seen: Observations): ReadonlyArray<string> => {
  const byId = new Map<number, Entry>(world.entries.map((entry) => [entry.id, entry]))
  return [...seen.entries].flatMap(([id, { conversation, content }]) => {
    const entry = byId.get(id)
    if (entry?.conversation !== conversation)
      return [`P4 entry ${id}: shown to a watcher of ${conversation}, but not there`]
    const message = entry.model[0]
    const stored = message?.role === "user" || message?.role === "assistant" ? message.content : null
    return JSON.stringify(stored) === JSON.stringify(content) ? [] : [`P4 entry ${id}: shown and stored content differ`]
  })
}

/** Every promise that was not kept, those that clients noticed on the way included. */
export const brokenPromises = (world: World, seen: Observations, plan: Plan): ReadonlyArray<string> => [
  ...seen.faults,
  ...kept(world, seen),
  ...admittedOnce(world, seen, plan),
  ...answered(world, seen, plan),
  ...shown(world, seen),
]
