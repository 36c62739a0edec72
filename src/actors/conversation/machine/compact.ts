/**
 * Compactions in the machine. Each is a task of its own beside the run: its intent is committed before a model is asked, its outcome is one
 * commit. Legal lives: made → `running` (⇄ `sleeping` before a retry) → ready → placed at a turn boundary, or stale, failed, cancelled.
 * A run waits for one in the state `compacting` only; everything else goes on meanwhile. Rules are in `docs/compaction.md`.
 */
import { carriedData, type Goal, placement, planCompaction } from "../../../domain/compaction.ts"
import {
  type CompactionLimits,
  type CompactionReason,
  type CompactionRules,
  limitsFor,
  rulesFor,
} from "../../../domain/compaction-settings.ts"
import type {
  CompactionCheckpoint,
  CompactionInput,
  CompactionResult,
  CompactionStatus,
} from "../../../domain/compaction-task.ts"
import { DocumentKind } from "../../../domain/document.ts"
import { EntryKind } from "../../../domain/entry.ts"
import { ServiceFailure } from "../../../domain/failure.ts"
import type { EntryId, TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import type { UserPart } from "../../../domain/message.ts"
import { TaskKind } from "../../../domain/task.ts"
import { contextTokens } from "../../../domain/token-estimate.ts"
import { liveCompactions } from "./compaction-view.ts"
import type { Compaction, Decision, MachineEvent, Reply } from "./data.ts"
import type { Draft } from "./draft.ts"
import { abortRun, answerCancels, countUsage, emptyLive, failRun, flushLive } from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** An automatic compaction that would gain less than this part of the context is not worth a request. */
const leastGain = 0.05

/** Compactions that one request waits for at most; then it is sent as it is, and the service decides. */
const waitsAtMost = 2

/** What a conversation is compacted for. */
export interface Target {
  /** `provider/model`, "" where it is not known. */
  readonly model: string
  /** Tokens of its context window, null where nobody knows. */
  readonly window: number | null
}

export const checkpointOf = (checkpoint: CompactionCheckpoint): Json => ({ ...checkpoint })

/** Changes one compaction. */
const setCompaction = (d: Draft, changed: Compaction): Compaction => {
  d.patch({ compactions: d.data.compactions.map((one) => (one.task.id === changed.task.id ? changed : one)) })
  return changed
}

/** Writes what `pi.live` says of compactions. */
export const showCompactions = (d: Draft): void => {
  if (d.data.run !== null) flushLive(d)
  else d.putDocument(DocumentKind.live, { ...emptyLive, ...liveCompactions(d.data) })
}

/** Where a compaction may be placed: no call is in flight, and no response is being written to what the context was. */
const atBoundary = (d: Draft): boolean => {
  switch (d.data.state) {
    case "idle":
    case "settling_run":
    case "preparing_request":
    case "sleeping_backoff":
    case "compacting":
      return true
    default:
      return false
  }
}

/** How much stays, and when stubs alone are enough, by the reason. */
const planFor = (d: Draft, reason: CompactionReason, rules: CompactionRules, limits: CompactionLimits) => {
  const { context } = d.data
  const tokens = contextTokens(context)
  const automatic = reason === "threshold" || reason === "background"
  // What a person asks for, and what a service found too long, becomes short whatever the limits say.
  const part = reason === "overflow" ? 4 : 2
  return planCompaction(context, {
    mode: rules.mode,
    keep: automatic ? limits.keep : Math.min(limits.keep, Math.floor(tokens / part)),
    most: automatic ? limits.most : Math.min(limits.most, Math.floor(tokens / part)),
    target: automatic ? limits.target : null,
    leastGain: automatic ? leastGain : 0,
  })
}

/** Plans a compaction and starts it; null when there is nothing to compact. */
const begin = (
  d: Draft,
  reason: CompactionReason,
  { model, window }: Target,
  instructions: string | null = null,
  replies: Compaction["replies"] = [],
): Compaction | null => {
  const rules = rulesFor(d.env.policy.compaction, model)
  const plan = planFor(d, reason, rules, limitsFor(rules, window))
  if (plan === null) return null
  const writer = rules.model ?? model
  const input: CompactionInput = { reason, instructions, mode: rules.mode, model, writer, plan }
  const row = d.newTask(TaskKind.compaction, { ...input }, checkpointOf({ phase: "summarise", attempt: 1 }), null)
  const task = reason === "background" ? d.putTask({ ...row, background: true }) : row
  const compaction: Compaction = { task, input, attempt: 1, retry: null, ready: null, cancelling: false, replies }
  d.patch({ compactions: [...d.data.compactions, compaction] })
  d.publish({ type: "compaction_started", task_id: task.id, reason, mode: rules.mode })
  showCompactions(d)
  d.act({ type: "compact", compaction })
  return compaction
}

/** A person asks for a compaction. The reply waits for its end; the same request while one is made joins it. */
export const compact = (d: Draft, event: EventOf<"compact">): Decision => {
  const { instructions, reply, target } = event
  const same = d.data.compactions.find(
    (one) => one.input.reason === "manual" && one.input.instructions === instructions && !one.cancelling,
  )
  if (same !== undefined) {
    setCompaction(d, { ...same, replies: [...same.replies, reply] })
    return d.done()
  }
  if (begin(d, "manual", target, instructions, [reply]) === null) {
    const tokens = contextTokens(d.data.context)
    const nothing: CompactionResult = {
      status: "nothing",
      task_id: null,
      entry_id: null,
      tokens_before: tokens,
      tokens_after: null,
    }
    d.succeed(reply, nothing)
  }
  return d.done()
}

/** Whether the next request has to wait for it. */
const blocks = ({ cancelling, input, ready }: Compaction): boolean =>
  (input.reason === "threshold" || input.reason === "overflow") && ready === null && !cancelling

/** The run waits for a compaction; the request that was about to be made is made anew afterwards. */
const wait = (d: Draft, { task }: Compaction): void => {
  const run = d.run
  const generation = d.putTask({
    ...run.generation,
    status: "waiting",
    waitingOn: { on: [task.id], policy: "allSettled" },
    crashes: 0,
  })
  d.patchRun({ generation, token: run.token + 1, waits: run.waits + 1 })
  d.to("compacting")
}

/** Whether the run waits for this task. */
const awaited = (d: Draft, task: TaskId): boolean =>
  d.data.state === "compacting" && d.data.run?.generation.waitingOn?.on.includes(task) === true

/** The run goes on: its request is prepared anew. */
const proceed = (d: Draft): void => {
  const run = d.run
  const generation = d.putTask({ ...run.generation, status: "running", waitingOn: null, node: d.env.node })
  d.patchRun({ generation, token: run.token + 1 })
  d.to("preparing_request")
  d.act({ type: "prepare", token: run.token + 1 })
}

/** Starts one beside the work where the context has come near to its limit. */
export const compactBeside = (d: Draft, target: Target): void => {
  const rules = rulesFor(d.env.policy.compaction, target.model)
  const { backgroundAt } = limitsFor(rules, target.window)
  if (!rules.enabled || backgroundAt === null || d.data.compactions.length > 0) return
  // While they fail, only what cannot wait tries again.
  if (d.data.compactionFailure !== null || contextTokens(d.data.context) <= backgroundAt) return
  begin(d, "background", target)
}

/** Before a request: true when it has to wait for a compaction. */
export const holdRequest = (d: Draft, target: Target): boolean => {
  const underway = d.data.compactions.find(blocks)
  if (underway !== undefined) {
    wait(d, underway)
    return true
  }
  const rules = rulesFor(d.env.policy.compaction, target.model)
  if (!rules.enabled) return false
  if (contextTokens(d.data.context) <= limitsFor(rules, target.window).blockAt) {
    compactBeside(d, target)
    return false
  }
  if (d.run.waits >= waitsAtMost) return false
  const one = d.data.compactions.find((other) => !other.cancelling) ?? begin(d, "threshold", target)
  if (one === null) return false
  wait(d, one)
  return true
}

/** The service said that the context is too long: true when the request waits for a compaction, once per turn. */
export const compactOverflow = (d: Draft, target: Target): boolean => {
  if (d.run.overflowed || !rulesFor(d.env.policy.compaction, target.model).enabled) return false
  const one = d.data.compactions.find((other) => !other.cancelling) ?? begin(d, "overflow", target)
  if (one === null) return false
  d.patchRun({ overflowed: true })
  wait(d, one)
  return true
}

const resultOf = (
  { input, task }: Compaction,
  status: CompactionStatus,
  entry: EntryId | null,
  after: number | null,
): CompactionResult => ({
  status,
  task_id: task.id,
  entry_id: entry,
  tokens_before: input.plan.tokensBefore,
  tokens_after: after,
})

/** Takes a compaction out, tells its watchers; its task must be ended by the caller. */
const close = (d: Draft, compaction: Compaction, result: CompactionResult, error: string | null): void => {
  d.patch({ compactions: d.data.compactions.filter((one) => one.task.id !== compaction.task.id) })
  const { method } = compaction.input.plan
  const { reason } = compaction.input
  d.publish({ type: "compaction_completed", ...result, task_id: compaction.task.id, reason, method, error })
  showCompactions(d)
}

/** Places a summary that is there; a stale one is placed nowhere. */
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
  if (placed === null) {
    d.endTask(task, { status: "completed", result: { status: "stale" } })
    const result = resultOf(compaction, "stale", null, null)
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
 * A cancel ends every compaction but those in the background, which are not part of what was asked. True when there were any; those whose
 * job has to end first are over when it has.
 */
export const cancelCompactions = (d: Draft): boolean => {
  const meant = d.data.compactions.filter((one) => one.input.reason !== "background" && !one.cancelling)
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

export type CompactReply = Reply<CompactionResult>
