/**
 * Cancel requests from outside. Rules:
 * 1. A cancel withdraws the inputs that are queued (writes stay) and stops the run. The reply waits until the conversation is idle.
 * 2. A cancel of one submission stops the run that it is part of, with everybody else's inputs in that run, and nothing else: what is queued
 *    takes its place as when a run ends. One that is queued is withdrawn.
 * 3. Commands of inputs that were withdrawn are stopped, and waited for.
 */
import type { SubmissionId } from "../../../domain/ids.ts"
import { stopChildren } from "./children.ts"
import { cancelCompactions, stillStopping } from "./compaction-end.ts"
import type { Decision, MachineEvent, Question, Reply } from "./data.ts"
import type { Draft } from "./draft.ts"
import { stopCommands } from "./input.ts"
import { endQuestion } from "./question-open.ts"
import { commandsOf, commandsStopping } from "./reading.ts"
import { abortRun, startNext, toBeAborted } from "./run.ts"
import { refuseCall, unbegun, underway } from "./tools.ts"
import { takeBack } from "./write.ts"

type CancelReply = Reply<{ readonly cancelled: boolean }>

export const cancel = (d: Draft, event: Extract<MachineEvent, { readonly type: "cancel" }>): Decision => {
  if (event.submission === undefined) cancelAll(d, event.reply)
  else cancelOne(d, event.submission, event.reply)
  return d.done()
}

const cancelAll = (d: Draft, reply: CancelReply): void => {
  const queued = d.data.queue.filter((row) => row.kind === "input")
  const compacting = cancelCompactions(d, false)
  d.setQueue(d.data.queue.filter((row) => row.kind !== "input"))
  stopCommands(d, queued, "cancelled")
  d.unanswered(queued, "withdrawn", "withdrawn by cancel")
  const unparked = endParked(d)
  if (d.data.run !== null) stopRun(d, false, reply)
  else answer(d, reply, queued.length > 0 || unparked || compacting)
}

const cancelOne = (d: Draft, id: SubmissionId, reply: CancelReply): void => {
  const { parked, queue, run } = d.data
  const row = queue.find((one) => one.id === id)
  const isIt = (one: { readonly id: SubmissionId }): boolean => one.id === id
  if (row !== undefined) {
    takeBack(d, row, "withdrawn by cancel")
    answer(d, reply, true)
  } else if (run?.submissions.some(isIt) === true) {
    stopRun(d, true, reply)
  } else if (parked?.submissions.some(isIt) === true) {
    endParked(d)
    startNext(d)
    d.succeed(reply, { cancelled: true })
  } else d.succeed(reply, { cancelled: false })
}

/** Answers at once, or when what is being stopped has ended. */
const answer = (d: Draft, reply: CancelReply, cancelled: boolean): void => {
  if (stillStopping(d) || commandsStopping(d)) d.patch({ cancels: [...d.data.cancels, reply] })
  else d.succeed(reply, { cancelled })
}

/** Ends a parked run. False where there is none. */
const endParked = (d: Draft): boolean => {
  const { parked } = d.data
  if (parked === null) return false
  for (const call of parked.calls) d.endTask(call, { status: "aborted", reason: "cancelled" })
  d.endTask(parked.generation, { status: "aborted", reason: "cancelled" })
  d.publish({ type: "turn_cancelled" })
  d.unanswered(parked.submissions, "aborted", "cancelled")
  d.patch({ parked: null })
  return true
}

/** Stops the run; it ends when everything that it started has ended. */
const stopRun = (d: Draft, alone: boolean, reply: CancelReply): void => {
  const { run } = d
  d.patch({ cancels: [...d.data.cancels, reply] })
  if (run.cancelling) {
    // What is queued from here on stays, as after any cancel of everything.
    if (!alone) d.patchRun({ generation: d.putTask(toBeAborted(run.generation, false)) })
    return
  }
  if (alone) cancelCompactions(d, true)
  d.patchRun({ cancelling: true, generation: d.putTask(toBeAborted(run.generation, alone)) })
  d.act({ type: "clearTimer", timer: "backoff" })
  d.act({ type: "stopJobs", spare: commandsOf(d).map(({ slot }) => slot.task.id) })
  for (const slot of run.calls) if (unbegun(slot)) refuseCall(d, slot, "The call was cancelled before it started.")
  // Of calls that run: they end later, and nobody should answer meanwhile.
  for (const question of d.data.questions.filter((one) => !isOfCommand(d, one))) {
    endQuestion(d, question, { type: "withdrawn", reason: "cancelled", at: d.env.now })
  }
  const waiting =
    stopChildren(d) ||
    d.data.state === "preparing_request" ||
    d.data.state === "streaming_llm" ||
    callsRunning(d) ||
    (d.data.state === "compacting" && stillStopping(d))
  if (!waiting) abortRun(d)
}

const isOfCommand = (d: Draft, { task }: Question): boolean =>
  commandsOf(d).some(({ slot }) => slot.task.id === task.owner)

/** Whether a job of the batch is still to end: its preparation, or a running call. */
const callsRunning = (d: Draft): boolean =>
  d.data.state === "executing_tools" && (d.run.calls.length === 0 || d.run.calls.some(underway))
