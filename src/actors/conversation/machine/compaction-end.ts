/**
 * How compactions end: placed at a turn boundary in one commit, stale, failed, tried again later, or cancelled. Whoever waits, a run or a
 * caller, is told in the same decision.
 */
import { carriedData, type Goal, placement } from "../../../domain/compaction.ts"
import { EntryKind } from "../../../domain/entry.ts"
import { ServiceFailure } from "../../../domain/failure.ts"
import type { TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import type { UserPart } from "../../../domain/message.ts"
import { atBoundary, awaited, checkpointOf, close, resultOf, setCompaction, showCompactions } from "./compaction-set.ts"
import type { Compaction, Decision, MachineEvent } from "./data.ts"
import type { Draft } from "./draft.ts"
import { abortRun, answerCancels, countUsage, failRun } from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** The run goes on: its request is prepared anew. */
const proceed = (d: Draft): void => {
  const run = d.run
  const generation = d.putTask({ ...run.generation, status: "running", waitingOn: null, node: d.env.node })
  d.patchRun({ generation, token: run.token + 1 })
  d.to("preparing_request")
  d.act({ type: "prepare", token: run.token + 1 })
}

/** Places a summary that is there; a stale one, and one that was asked for and is no shorter, is placed nowhere. */
const place = (d: Draft, compaction: Compaction): void => {
  const { input, task } = compaction
  const summary = compaction.ready
  if (summary === null) return
  const placed = placement(d.data.context, input.plan, {
    summary: summary.text,
    goals: goalsOf(d),
    todo: summary.todo,
  })
  d.patch({ compactionFailure: null })
  // Somebody who asked for a shorter context gets no longer one. Elsewhere it counts what is measured after the next request.
  const useless = placed !== null && input.reason === "manual" && placed.gained <= 0
  if (placed === null || useless) {
    const status = placed === null ? "stale" : "nothing"
    d.endTask(task, { status: "completed", result: { status } })
    const result = resultOf(compaction, status, null, null)
    close(d, compaction, result, null)
    for (const reply of compaction.replies) d.succeed(reply, result)
  } else {
    const tokensAfter = Math.round(placed.tokensAfter)
    const data: Json = {
      reason: input.reason,
      mode: input.mode,
      method: input.plan.method,
      tokensBefore: input.plan.tokensBefore,
      tokensAfter,
      carried: carriedData(placed.carried),
      summary: summary.text,
    }
    const { edits, head, model } = placed
    const entry = d.addEntry(EntryKind.compaction, model, task.id, data, { head, edits })
    d.endTask(task, { status: "completed", result: { status: "completed", entry: entry.id } })
    const result = resultOf(compaction, "completed", entry.id, tokensAfter)
    close(d, compaction, result, null)
    for (const reply of compaction.replies) d.succeed(reply, result)
  }
  if (awaited(d, task.id)) proceed(d)
}

/** The inputs of the run in progress, as they were given. */
const goalsOf = (d: Draft): ReadonlyArray<Goal> =>
  (d.data.run?.submissions ?? []).flatMap(({ content, entry, id }) =>
    entry === null
      ? []
      : [{ submission: id, entry, content: (content as { readonly content: ReadonlyArray<UserPart> }).content }],
  )

/** Places what is ready, where a turn boundary was reached. True when it changed something. */
export const placeReady = (d: Draft): boolean => {
  const ready = atBoundary(d) ? d.data.compactions.filter((one) => one.ready !== null) : []
  for (const compaction of ready) place(d, compaction)
  return ready.length > 0
}

/** A summary is there: kept with its task until a turn boundary, which may be now. */
export const compacted = (d: Draft, event: EventOf<"compacted">): Decision => {
  const compaction = d.data.compactions.find((one) => one.task.id === event.task)
  if (compaction === undefined || compaction.ready !== null) return d.done()
  if (event.usage !== null) countUsage(d, event.usage, event.model)
  if (compaction.cancelling) {
    endCancelled(d, compaction)
    return d.done()
  }
  const { attempt } = compaction
  const { summary } = event
  const checkpoint = checkpointOf({ phase: "place", attempt, summary })
  const task = atBoundary(d) ? compaction.task : d.putTask({ ...compaction.task, checkpoint, crashes: 0 })
  setCompaction(d, { ...compaction, task, ready: summary, retry: null })
  return d.done()
}

/** Ends a compaction with an error; a run that waits for it fails. */
export const failCompaction = (d: Draft, compaction: Compaction, message: string, reference: string | null): void => {
  const { input, task } = compaction
  const waitedFor = awaited(d, task.id)
  d.endTask(task, { status: "failed", error: message })
  d.patch({ compactionFailure: { task: task.id, reason: input.reason, error: message } })
  close(d, compaction, resultOf(compaction, "failed", null, null), message)
  const detail = `Compaction failed: ${message}`
  const failure = new ServiceFailure({ code: "compaction_failed", detail, reference: reference ?? "" })
  for (const reply of compaction.replies) d.act({ type: "fail", reply, failure })
  if (waitedFor) failRun(d, "compaction_failed", detail, null)
}

/** A plugin does not want it: the context stays as it is, and a run that waits for it goes on. */
export const compactionDeclined = (d: Draft, { reason, task }: EventOf<"compactionDeclined">): Decision => {
  const compaction = d.data.compactions.find((one) => one.task.id === task)
  if (compaction === undefined || compaction.ready !== null) return d.done()
  if (compaction.cancelling) {
    endCancelled(d, compaction)
    return d.done()
  }
  d.endTask(compaction.task, { status: "completed", result: { status: "declined", reason } })
  const waitedFor = awaited(d, task)
  const result = resultOf(compaction, "declined", null, null)
  close(d, compaction, result, reason)
  for (const reply of compaction.replies) d.succeed(reply, result)
  if (waitedFor) proceed(d)
  return d.done()
}

/** The model could not write it: again later where that may help. `backoff` gives the wait in ms. */
export const compactionFailed = (
  d: Draft,
  event: EventOf<"compactionFailed">,
  backoff: (attempt: number, retryAfterMs: number | null) => number,
): Decision => {
  const compaction = d.data.compactions.find((one) => one.task.id === event.task)
  if (compaction === undefined) return d.done()
  if (compaction.cancelling) {
    endCancelled(d, compaction)
    return d.done()
  }
  const { error } = event
  if (error._tag !== "ModelTransient" || compaction.attempt > d.env.policy.maxRetries) {
    failCompaction(d, compaction, error.message, null)
    return d.done()
  }
  const at = d.env.now + backoff(compaction.attempt, error.retryAfterMs)
  const attempt = compaction.attempt + 1
  const task = d.putTask({
    ...compaction.task,
    status: "sleeping",
    node: null,
    checkpoint: checkpointOf({ phase: "summarise", attempt }),
    crashes: 0,
    wakeAt: at,
  })
  setCompaction(d, { ...compaction, task, attempt, retry: { attempt, at, reason: error.detail } })
  showCompactions(d)
  wakeNext(d)
  return d.done()
}

/** Sets the timer to the next retry. */
export const wakeNext = (d: Draft): void => {
  const times = d.data.compactions.flatMap(({ retry }) => (retry === null ? [] : [retry.at]))
  if (times.length > 0) {
    d.act({ type: "timer", timer: "compaction", ms: Math.max(0, Math.min(...times) - d.env.now) })
  }
}

/** The timer fired: what is due is tried again. */
export const wakeCompactions = (d: Draft): Decision => {
  for (const compaction of d.data.compactions) {
    if (compaction.retry === null || compaction.retry.at > d.env.now || compaction.cancelling) continue
    const task = d.putTask({
      ...compaction.task,
      status: "running",
      node: d.env.node,
      fence: d.env.fence,
      wakeAt: null,
    })
    d.act({ type: "compact", compaction: setCompaction(d, { ...compaction, task, retry: null }) })
  }
  wakeNext(d)
  return d.done()
}

/** A compaction's job ended without a word: it was stopped, or it crashed. */
export const compactionJobEnded = (d: Draft, id: TaskId, end: EventOf<"jobEnded">["end"]): Decision => {
  const compaction = d.data.compactions.find((one) => one.task.id === id)
  if (compaction === undefined || compaction.ready !== null || compaction.retry !== null) return d.done()
  if (compaction.cancelling) endCancelled(d, compaction)
  else if (end.type === "crashed") {
    failCompaction(d, compaction, `${end.message} (reference ${end.reference}; see the log)`, end.reference)
  } else failCompaction(d, compaction, "it was stopped", null)
  return d.done()
}

/** Ends a cancelled compaction; when it was the last thing that a cancel waited for, the cancel is over. */
const endCancelled = (d: Draft, compaction: Compaction): void => {
  d.endTask(compaction.task, { status: "aborted", reason: "cancelled" })
  const result = resultOf(compaction, "cancelled", null, null)
  close(d, compaction, result, null)
  for (const reply of compaction.replies) d.succeed(reply, result)
  if (d.data.run?.cancelling === true && d.data.state === "compacting" && !stillStopping(d)) abortRun(d)
  answerCancels(d)
}

/** Whether a compaction is still being stopped. */
export const stillStopping = (d: Draft): boolean => d.data.compactions.some((one) => one.cancelling)

/**
 * A cancel ends every compaction but those in the background, which are not part of what was asked; one of a single run only that which the
 * run alone waits for. True when there were any; those whose job has to end first are over when it has.
 */
export const cancelCompactions = (d: Draft, alone: boolean): boolean => {
  const isMeant = ({ cancelling, input, replies, task }: Compaction): boolean => {
    if (cancelling || input.reason === "background") return false
    return !alone || (input.reason !== "manual" && replies.length === 0 && awaited(d, task.id))
  }
  const meant = d.data.compactions.filter(isMeant)
  for (const compaction of meant) {
    if (compaction.ready !== null || compaction.retry !== null) {
      endCancelled(d, compaction)
      continue
    }
    const task = d.putTask({ ...compaction.task, abortRequested: true })
    setCompaction(d, { ...compaction, task, cancelling: true })
    d.act({ type: "stopCompaction", task: task.id })
  }
  return meant.length > 0
}

/** A clean stop: the tasks are left without a node, so that their next start counts no crash. */
export const releaseCompactions = (d: Draft): void => {
  for (const { retry, task } of d.data.compactions) if (retry === null) d.putTask({ ...task, node: null })
}
