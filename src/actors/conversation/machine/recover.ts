/**
 * Recovery: what the machine does with the open work that it finds when it starts. Rules (durable.md, *Tasks*):
 * 1. A task that ran when its process died counts one crash; at `restartLimit` its run is parked.
 * 2. A sleeping task keeps its wake time; a task that stopped cleanly counts nothing.
 * 3. A running call runs again only where it was declared replay-safe, when it started and now. Of any other its tool finds out what
 *    became of it (doubt.ts), or it becomes an error result that carries the output that was flushed, and is in doubt. Pending calls
 *    never started: they start in their turn.
 *    A call that waits for a person's answer goes on waiting.
 * 4. A partial answer that was flushed stays as an aborted assistant entry; the request is made again.
 */
import type { LiveDocument } from "../../../domain/document.ts"
import { callOf } from "../../../domain/effect.ts"
import type { TaskId } from "../../../domain/ids.ts"
import { text, toolCallsOf } from "../../../domain/message.ts"
import type { Task } from "../../../domain/task.ts"
import { restartLimit, TaskKind } from "../../../domain/task.ts"
import { leftToDo, recoverAfterRuns } from "./after-run.ts"
import { storedCall } from "./call.ts"
import { recoverChildren } from "./children-recover.ts"
import type { CallSlot, Decision, MachineEvent, SubmissionRow, TaskRow } from "./data.ts"
import { leaveInDoubt, reconcile } from "./doubt.ts"
import type { Draft } from "./draft.ts"
import { resumeYield } from "./hooked.ts"
import { recoverInputCalls } from "./input.ts"
import { recoverQuestions, unstarted } from "./question.ts"
import { readQueue } from "./reading.ts"
import { recoverCompactions } from "./recover-compactions.ts"
import type { Checkpoint } from "./run.ts"
import { abortRun, addAssistant, checkpointOf, clearLive, flushLive, freshRun, startNext, startTurn } from "./run.ts"
import { advance, endCall, refuseCall } from "./tools.ts"

type Recover = Extract<MachineEvent, { readonly type: "recover" }>

/** Of a call that may be repeated and was not. */
const lostText = "The call was interrupted: the process died while it ran. It was not run again."

/** Takes up the open work of the conversation. */
export const recover = (d: Draft, event: Recover): Decision => {
  const { stored } = event
  d.to("idle")
  const queued = stored.submissions.filter((row) => row.status === "queued")
  d.patch({ queue: queued })
  recoverQuestions(d, stored.tasks)
  const fatal = recoverCompactions(d, stored.tasks, (task) => take(d, task))
  recoverAfterRuns(d, stored.tasks, (task) => take(d, task))
  const resumed = recoverInputCalls(d, stored.tasks, (task) => take(d, task))
  readQueue(d)
  const generation = stored.tasks.findLast((task) => task.kind === TaskKind.generation)
  const placed = stored.submissions.filter((row) => row.status === "placed")
  if (generation === undefined) {
    d.unanswered(placed, "faulted", "the task that answers it is gone")
    if (resumed) startNext(d)
    if (d.data.run === null && leftToDo(d)) d.to("settling_run")
    return d.done()
  }
  const ids = new Set((generation.input as { readonly submissions: ReadonlyArray<number> }).submissions)
  resume(
    d,
    event,
    generation,
    placed.filter((row) => ids.has(row.id)),
    fatal,
  )
  return d.done()
}

/** The task taken by this node, with its crash counted. */
const take = (d: Draft, task: TaskRow): TaskRow => ({
  ...task,
  node: d.env.node,
  fence: d.env.fence,
  crashes: task.crashes + (task.status === "running" && task.node !== null ? 1 : 0),
})

/** `fatal` are compactions that took their process along too often: a run that waited for one is parked. */
const resume = (
  d: Draft,
  event: Recover,
  task: Task,
  submissions: ReadonlyArray<SubmissionRow>,
  fatal: ReadonlySet<TaskId>,
): void => {
  const checkpoint = checkpointOf(task)
  const calls = event.stored.tasks.filter((call) => call.kind === TaskKind.tool && call.owner === task.id)
  if (task.parked !== null) {
    d.patch({ parked: { generation: task, calls, submissions, reason: task.parked } })
    return
  }
  const waitedForFatal = task.waitingOn?.on.some((id) => fatal.has(id)) === true
  const generation = { ...take(d, task), waitingOn: null, ...(waitedForFatal ? { crashes: restartLimit } : {}) }
  if (checkpoint.phase === "request" && generation.crashes >= restartLimit) {
    park(d, generation, calls, submissions)
    return
  }
  const run = freshRun(generation, submissions, 1)
  d.patch({ run: { ...run, flushed: event.stored.live !== null, cancelling: task.abortRequested } })
  if (checkpoint.phase === "tools") {
    resumeCalls(d, event, { task, generation }, calls, checkpoint)
    return
  }
  if (checkpoint.phase === "yield") {
    clearLive(d)
    resumeYield(d, generation)
    return
  }
  keepPartial(d, event.stored.live, generation)
  clearLive(d)
  if (task.abortRequested) {
    abortRun(d)
    return
  }
  d.patchRun({ attempt: checkpoint.attempt, overflowed: checkpoint.overflowed === true })
  const awaited = task.waitingOn?.on.some((id) => d.data.compactions.some((one) => one.task.id === id)) === true
  if (awaited) {
    d.patchRun({ generation: d.putTask({ ...generation, status: "waiting", waitingOn: task.waitingOn }) })
    d.to("compacting")
    return
  }
  if (task.status === "sleeping") {
    const at = task.wakeAt ?? d.env.now
    d.patchRun({ generation: task, retry: { attempt: checkpoint.attempt, at, reason: "resumed after a restart" } })
    d.to("sleeping_backoff")
    d.act({ type: "timer", timer: "backoff", ms: Math.max(0, at - d.env.now) })
    return
  }
  d.patchRun({ generation: d.putTask({ ...generation, status: "running" }) })
  d.to("preparing_request")
  d.act({ type: "prepare", token: 1 })
}

const park = (
  d: Draft,
  generation: TaskRow,
  calls: ReadonlyArray<TaskRow>,
  submissions: ReadonlyArray<SubmissionRow>,
): void => {
  const reason = `restart_limit: the process died ${generation.crashes} times while it ran`
  const parked = d.putTask({ ...generation, status: "pending", node: null, parked: reason })
  d.patch({ parked: { generation: parked, calls, submissions, reason } })
  d.publish({
    type: "notice",
    level: "error",
    message: `task ${generation.id} is parked (${reason}); retry or cancel it`,
  })
}

/** Rule 4. */
const keepPartial = (d: Draft, live: LiveDocument | null, generation: TaskRow): void => {
  if (live?.generation == null || live.generation.task !== generation.id || live.generation.text === "") return
  d.patchRun({ model: live.generation.model })
  addAssistant(d, [text(live.generation.text)], "aborted", null)
}

/** Rule 3. */
const resumeCalls = (
  d: Draft,
  event: Recover,
  { generation, task }: { readonly task: Task; readonly generation: TaskRow },
  calls: ReadonlyArray<TaskRow>,
  checkpoint: Extract<Checkpoint, { readonly phase: "tools" }>,
): void => {
  const { live } = event.stored
  const again: Array<CallSlot> = []
  const cutOff: Array<CallSlot> = []
  for (const row of calls) {
    const input = callOf(row)
    if (input === null) continue
    const task = take(d, row)
    const safe = input.replay === "safe" && event.replayOf(input.name) === "safe"
    const status = row.status === "pending" ? unstarted(d, row.id) : "pending"
    const slot: CallSlot = {
      ...storedCall(task, input, status, d.env.now),
      replay: safe ? "safe" : "unsafe",
      output: live?.tools[String(row.id)]?.output ?? "",
    }
    const runs = row.status === "pending" || (safe && task.crashes < restartLimit && !d.run.cancelling)
    if (runs) again.push({ ...slot, output: "" })
    else cutOff.push({ ...slot, status: "running" })
  }
  const waiting = d.putTask({ ...generation, status: "waiting" })
  d.patchRun({
    generation: waiting,
    calls: [...cutOff, ...again],
    parallel: checkpoint.parallel,
    model: modelOf(event),
  })
  d.to("executing_tools")
  recoverChildren(d, event.stored.tasks, task)
  if (d.run.cancelling) for (const slot of again) refuseCall(d, slot, "The call was cancelled before it started.")
  for (const slot of cutOff) {
    if (slot.replay === "safe") endCall(d, slot, { output: [text(lostText)], isError: true })
    else if (event.reconciles(slot.call.name) && slot.task.crashes < restartLimit) reconcile(d, slot)
    else leaveInDoubt(d, slot, null)
  }
  missingResults(d, event, calls)
  // What is still being looked into keeps the output that was flushed.
  if (d.run.calls.some((slot) => slot.status === "reconciling" && slot.output !== "")) flushLive(d)
  else clearLive(d)
  advance(d)
}

/** Calls of the batch with neither a task nor a result: the commit that wrote them is whole, so there are none; kept honest by rule 8. */
const missingResults = (d: Draft, event: Recover, calls: ReadonlyArray<TaskRow>): void => {
  const message = event.stored.batch?.model[0]
  if (message?.role !== "assistant") return
  const known = new Set(calls.map((call) => callOf(call)?.callId))
  const missing = toolCallsOf(message).filter((call) => !known.has(call.id) && !event.stored.results.has(call.id))
  if (missing.length > 0) {
    d.publish({ type: "notice", level: "warning", message: `${missing.length} calls have no result and no task` })
  }
}

const modelOf = (event: Recover): string => {
  const message = event.stored.batch?.model[0]
  return message?.role === "assistant" ? message.model : ""
}

/** A person asked to run a parked run again: its crash count starts over. */
export const retryParked = (d: Draft, event: Extract<MachineEvent, { readonly type: "retry" }>): Decision => {
  const { parked } = d.data
  d.succeed(event.reply, undefined)
  if (parked === null) return d.done()
  d.patch({ parked: null })
  const turn = (parked.generation.input as { readonly turn: number }).turn
  d.endTask(parked.generation, { status: "aborted", reason: "retried" })
  startTurn(d, parked.submissions, turn)
  return d.done()
}
