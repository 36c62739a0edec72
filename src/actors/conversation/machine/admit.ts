/**
 * Admission: inputs, configuration and cancel requests from outside. Every accepted input is a committed submission before its reply.
 */
import { DocumentKind } from "../../../domain/document.ts"
import { Busy } from "../../../domain/failure.ts"
import type { Json } from "../../../domain/json.ts"
import { changedAgent } from "../../../domain/subagent.ts"
import { stopChildren } from "./children.ts"
import { cancelCompactions, stillStopping } from "./compaction-end.ts"
import type { Decision, MachineEvent } from "./data.ts"
import { type Draft, queuedSubmission } from "./draft.ts"
import { endQuestion } from "./question-open.ts"
import { isReady, readQueue } from "./reading.ts"
import { abortRun, startNext, startRun } from "./run.ts"
import { refuseCall, unbegun, underway } from "./tools.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** What is stored of an input ({@link InputContent}). */
const contentOf = ({ content, entry, trace }: EventOf<"submit">): Json =>
  ({ content, ...(entry === undefined ? {} : { entry }), ...(trace === undefined ? {} : { trace }) }) as Json

/** Admits an input: it starts a run, or waits in the queue. */
export const submit = (d: Draft, event: EventOf<"submit">): Decision => {
  const busy = d.data.run !== null || d.data.parked !== null
  if (busy && event.whenBusy === "reject") {
    const failure = new Busy({
      what: "conversation",
      detail: `conversation ${d.data.conversation.id} is working on another input`,
      retryAfterMs: null,
    })
    d.act({ type: "fail", reply: event.reply, failure })
    return d.done()
  }
  const row = queuedSubmission({
    id: d.env.ids.submission(),
    conversation: d.data.conversation.id,
    kind: "input",
    content: contentOf(event),
    whenBusy: event.whenBusy,
    requestId: event.requestId,
    createdAt: d.env.now,
  })
  if (!busy && d.data.queue.length === 0 && isReady(d, row)) {
    startRun(d, [row])
  } else {
    d.putSubmission(row)
    d.setQueue([...d.data.queue, row])
    if (busy) readQueue(d)
    else startNext(d)
  }
  d.succeed(event.reply, row)
  return d.done()
}

/** What is queued takes its place now, where nothing runs. */
export const proceed = (d: Draft, { reply }: EventOf<"proceed">): Decision => {
  if (d.data.run === null && d.data.parked === null) startNext(d)
  d.succeed(reply, undefined)
  return d.done()
}

/** Changes `pi.agent`; it counts from the next request on. */
export const configure = (d: Draft, event: EventOf<"configure">): Decision => {
  const before = d.data.agent
  const agent = changedAgent(before, event.agent)
  d.patch({ agent })
  d.putDocument(DocumentKind.agent, { ...agent } as Json)
  if (agent.mode !== undefined && agent.mode !== before.mode) d.publish({ type: "mode_changed", mode: agent.mode })
  d.succeed(event.reply, undefined)
  return d.done()
}

/** Withdraws the inputs that are queued (writes stay) and stops the run. The reply waits until the conversation is idle. */
export const cancel = (d: Draft, event: EventOf<"cancel">): Decision => {
  const queued = d.data.queue.filter((row) => row.kind === "input")
  const compacting = cancelCompactions(d)
  d.setQueue(d.data.queue.filter((row) => row.kind !== "input"))
  d.unanswered(queued, "withdrawn", "withdrawn by cancel")
  const { parked, run } = d.data
  if (parked !== null) {
    for (const call of parked.calls) d.endTask(call, { status: "aborted", reason: "cancelled" })
    d.endTask(parked.generation, { status: "aborted", reason: "cancelled" })
    d.publish({ type: "turn_cancelled" })
    d.unanswered(parked.submissions, "aborted", "cancelled")
    d.patch({ parked: null })
  }
  if (run === null) {
    if (stillStopping(d)) d.patch({ cancels: [...d.data.cancels, event.reply] })
    else d.succeed(event.reply, { cancelled: queued.length > 0 || parked !== null || compacting })
    return d.done()
  }
  d.patch({ cancels: [...d.data.cancels, event.reply] })
  if (run.cancelling) return d.done()
  d.patchRun({ cancelling: true, generation: d.putTask({ ...run.generation, abortRequested: true }) })
  d.act({ type: "clearTimer", timer: "backoff" })
  d.act({ type: "stopJobs" })
  for (const slot of run.calls) if (unbegun(slot)) refuseCall(d, slot, "The call was cancelled before it started.")
  // Of calls that run: they end later, and nobody should answer meanwhile.
  for (const question of d.data.questions) {
    endQuestion(d, question, { type: "withdrawn", reason: "cancelled", at: d.env.now })
  }
  const waiting =
    stopChildren(d) ||
    d.data.state === "preparing_request" ||
    d.data.state === "streaming_llm" ||
    callsRunning(d) ||
    (d.data.state === "compacting" && stillStopping(d))
  if (!waiting) abortRun(d)
  return d.done()
}

/** Whether a job of the batch is still to end: its preparation, or a running call. */
const callsRunning = (d: Draft): boolean =>
  d.data.state === "executing_tools" && (d.run.calls.length === 0 || d.run.calls.some(underway))
