/**
 * The calls of one turn: intents committed before they run, results as they come, the next turn when all are there.
 */
import { EntryKind } from "../../../domain/entry.ts"
import type { Json } from "../../../domain/json.ts"
import type { ToolResultMessage } from "../../../domain/message.ts"
import { text, textOf, toolCallsOf } from "../../../domain/message.ts"
import { refusalDetails } from "../../../domain/question.ts"
import { trailData } from "../../../domain/trail.ts"
import { resetDraft } from "../../../domain/write.ts"
import type { ToolResult } from "../../../tools/tool.ts"
import { newCall } from "./call.ts"
import { park, settleResult } from "./children.ts"
import { compactBeside } from "./compact.ts"
import { applyControl, endAsked } from "./control.ts"
import type { CallSlot, Decision, Finished, MachineEvent, Run, Verdict } from "./data.ts"
import type { Draft } from "./draft.ts"
import { tellEnded, yieldAnswer, yielded } from "./hooked.ts"
import { inputCallEnded, inputCallLost } from "./input.ts"
import { appendDraft } from "./place.ts"
import { askForCall, orRefused } from "./question-open.ts"
import {
  abortRun,
  addAssistant,
  answerRun,
  checkpointOf,
  clearLive,
  countToolUsage,
  countUsage,
  failRun,
  flushLive,
  nextTurn,
  toolsCheckpoint,
} from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** UTF-16 units of streamed output kept per call for late watchers and for an interrupted result. */
const outputTail = 16_384

const skippedBySteer = "The call was skipped: the person sent new instructions before it started."

/** The response came back whole: an answer, or calls to prepare. */
export const responded = (d: Draft, event: EventOf<"responded">): Decision => {
  d.patchRun({ finished: event.finished })
  if (d.run.cancelling) {
    abortRun(d)
    return d.done()
  }
  const calls = callsOf(event.finished)
  if (calls.length === 0) {
    const { content, stopReason, usage } = event.finished
    const { model, window } = d.run
    const entry = addAssistant(d, content, stopReason, usage)
    countUsage(d, usage)
    clearLive(d)
    if (d.env.hooks?.has("onYield") === true) {
      yieldAnswer(d, entry, stopReason, textOf(content))
      return d.done()
    }
    answerRun(d, entry, stopReason, textOf(content))
    if (d.data.run === null) compactBeside(d, { model, window })
    return d.done()
  }
  d.to("executing_tools")
  d.act({ type: "prepareCalls", token: d.run.token, calls })
  return d.done()
}

const callsOf = (finished: Finished) =>
  toolCallsOf({ role: "assistant", content: finished.content, model: "", stopReason: finished.stopReason })

/** Commits the response with the intent of every call, then starts them. */
export const callsPrepared = (d: Draft, event: EventOf<"callsPrepared">): Decision => {
  const run = d.run
  if (run.cancelling) {
    abortRun(d)
    return d.done()
  }
  const { finished } = run
  if (finished === null) return d.done()
  const calls = callsOf(finished)
  const verdicts = calls.map(
    (_, at): Verdict => orRefused(d, event.verdicts[at] ?? { type: "refuse", reason: "the call was not prepared" }),
  )
  const sequential = verdicts.some((verdict) => verdict.type === "run" && verdict.execution === "sequential")
  const parallel = sequential ? 1 : d.env.policy.parallelCalls
  const assistant = addAssistant(d, finished.content, "tool_calls", finished.usage)
  countUsage(d, finished.usage)
  clearLive(d)
  const slots: Array<CallSlot> = []
  calls.forEach((call, at) => {
    const verdict = verdicts[at]
    if (verdict?.type !== "run") return
    // In a sequential batch a call that waits for an answer holds up those behind it.
    const ahead = parallel === 1 ? slots.length : slots.filter(underway).length
    const status = verdict.ask !== undefined ? "asking" : ahead < parallel ? "running" : "pending"
    slots.push(newCall(d, call, verdict, run.generation.id, status))
  })
  const generation = d.putTask({
    ...run.generation,
    status: slots.length === 0 ? "running" : "waiting",
    checkpoint: toolsCheckpoint(assistant, parallel, calls.length),
    crashes: 0,
  })
  d.patchRun({ generation, calls: slots, parallel, finished: null, partial: { text: "", thinking: "" } })
  calls.forEach((call, at) => {
    const verdict = verdicts[at]
    if (verdict?.type !== "refuse") return
    const details = verdict.question === undefined ? {} : { details: refusalDetails(null, verdict.question) }
    const result = { output: [text(verdict.reason)], isError: true, ...details }
    addResult(d, call.id, call.name, result, undefined, verdict.trail)
    // Whoever saw the call being written is told that it never runs, whyever.
    d.publish({ type: "tool_blocked", call_id: call.id, name: call.name, reason: verdict.reason })
  })
  for (const slot of slots) if (slot.status === "running") start(d, slot)
  calls.forEach((call, at) => {
    const verdict = verdicts[at]
    const slot = slots.find((one) => one.call === call)
    if (slot === undefined || verdict?.type !== "run" || verdict.ask === undefined) return
    askForCall(d, slot.task.id, call, verdict.args, verdict.ask)
  })
  if (slots.length === 0) nextTurn(d)
  return d.done()
}

/** Starts a call whose row says that it runs. */
export const start = (d: Draft, slot: CallSlot): void => {
  const { call, task } = slot
  d.publish({ type: "tool_started", task_id: task.id, call_id: call.id, name: call.name, arguments: call.arguments })
  d.act({ type: "runTool", slot })
}

/** The result entry of a call, with what plugins said of it. */
const addResult = (
  d: Draft,
  callId: string,
  toolName: string,
  result: ToolResult,
  slot?: CallSlot,
  trail: CallSlot["trail"] = slot?.trail,
) => {
  const message: ToolResultMessage = {
    role: "tool",
    callId,
    toolName,
    content: result.output,
    isError: result.isError ?? false,
    ...(result.details === undefined ? {} : { details: result.details }),
  }
  const entry = d.addEntry(EntryKind.toolResult, [message], slot?.task.id ?? d.run.generation.id, trailData(trail))
  if (slot === undefined) return
  d.publish({
    type: "tool_completed",
    task_id: slot.task.id,
    call_id: callId,
    name: toolName,
    is_error: message.isError,
    output: result.output,
    structured_output: result.structuredOutput ?? null,
    details: result.details ?? null,
    entry_id: entry.id,
    duration_ms: Math.max(0, d.env.now - slot.startedAt),
  })
}

export const setSlot = (d: Draft, slot: CallSlot): void => {
  d.patchRun({ calls: d.run.calls.map((other) => (other.task.id === slot.task.id ? slot : other)) })
}

/** Ends a call that has not started, with an error result that says why. */
export const refuseCall = (d: Draft, slot: CallSlot, reason: string, details?: Json): void => {
  const result = { output: [text(reason)], isError: true, ...(details === undefined ? {} : { details }) }
  addResult(d, slot.call.id, slot.call.name, result, slot)
  const task = d.endTask(slot.task, { status: "aborted", reason })
  setSlot(d, { ...slot, task, status: "done" })
}

/** Ends a running call with its result. `reason` says why it failed, where the result says more than that. */
export const endCall = (d: Draft, slot: CallSlot, given: ToolResult, reason: string | null = null): void => {
  const result = settleResult(d, slot, given)
  addResult(d, slot.call.id, slot.call.name, result, slot)
  if (result.usage !== undefined) countToolUsage(d, slot.call.name, result.usage)
  const ended = { ...slot.task, inDoubt: result.inDoubt === true && slot.replay === "unsafe" }
  const task = d.endTask(
    ended,
    result.isError === true
      ? { status: "failed", error: (reason ?? textOf(result.output)).slice(0, 500) }
      : { status: "completed", result: null },
  )
  setSlot(d, { ...slot, task, status: "done" })
  applyControl(d, slot, result.control)
}

/** A call ended: commit its result, start what waited for the slot, go on when the batch is complete. */
export const toolEnded = (d: Draft, event: EventOf<"toolEnded">): Decision => {
  if (inputCallEnded(d, event.task, event.result)) return d.done()
  const slot = d.data.run?.calls.find((other) => other.task.id === event.task)
  if (slot === undefined || slot.status !== "running") return d.done()
  const said = event.trail ?? []
  endCall(d, said.length === 0 ? slot : { ...slot, trail: [...(slot.trail ?? []), ...said] }, event.result)
  advance(d)
  return d.done()
}

/** Whether the call has no effect yet. */
export const unbegun = (slot: CallSlot): boolean => slot.status === "pending" || slot.status === "asking"

/** Whether a job works on the call. */
export const underway = (slot: CallSlot): boolean => slot.status === "running" || slot.status === "reconciling"

/** Starts pending calls while slots are free; ends the batch when nothing is left. */
export const advance = (d: Draft): void => {
  const steered = d.run.parallel === 1 && d.data.queue.some((row) => row.whenBusy === "steer")
  if (steered) {
    for (const slot of d.run.calls) if (unbegun(slot)) refuseCall(d, slot, skippedBySteer)
  }
  let running = d.run.calls.filter(underway).length
  const asking = d.run.calls.some((slot) => slot.status === "asking")
  for (const slot of d.run.calls) {
    if (slot.status === "asking" && d.run.parallel === 1) break
    if (slot.status !== "pending" || running >= d.run.parallel) continue
    const task = d.putTask({
      ...slot.task,
      status: "running",
      node: d.env.node,
      fence: d.env.fence,
      startedAt: slot.task.startedAt ?? d.env.now,
    })
    const started: CallSlot = { ...slot, task, status: "running", startedAt: d.env.now }
    setSlot(d, started)
    start(d, started)
    running++
  }
  if (running === 0 && !asking) endBatch(d)
}

/** Every call of the batch has ended: the run goes on, or waits for its subagents first. */
export const endBatch = (d: Draft): void => {
  const run = d.run
  if (run.children.length > 0) {
    clearLive(d)
    park(d)
    return
  }
  if (run.cancelling) {
    abortRun(d)
    return
  }
  clearLive(d)
  if (tellEnded(d)) return
  const checkpoint = checkpointOf(run.generation)
  const end = checkpoint.phase === "tools" ? endAsked(run, checkpoint.calls) : null
  if (end === null || checkpoint.phase !== "tools") {
    nextTurn(d)
    return
  }
  if (end.type === "handoff") appendDraft(d, resetDraft(end.note), run.generation.id)
  answerRun(d, checkpoint.assistant, "tool_calls", "")
}

/** Streamed output of a call: kept as a tail, published, flushed with the next flush. */
export const toolOutput = (d: Draft, event: EventOf<"toolOutput">): Decision => {
  const slot = d.data.run?.calls.find((other) => other.task.id === event.task)
  if (slot === undefined || slot.status !== "running") return d.done()
  setSlot(d, { ...slot, output: (slot.output + event.chunk).slice(-outputTail) })
  d.publish({ type: "tool_output", call_id: slot.call.id, delta: event.chunk })
  stage(d)
  return d.done()
}

/** Something was staged: it reaches the database within `flushMs`. */
export const stage = (d: Draft): void => {
  if (d.run.flushDue) return
  d.patchRun({ flushDue: true })
  d.act({ type: "timer", timer: "flush", ms: d.env.policy.flushMs })
}

/** The flush timer fired. */
export const flush = (d: Draft): Decision => {
  if (d.data.run?.flushDue === true) flushLive(d)
  return d.done()
}

/** A job ended without a message: stopped, or crashed. */
export const jobEnded = (d: Draft, event: EventOf<"jobEnded">): Decision => {
  const { job, end } = event
  const run: Run | null = d.data.run
  if (job.type === "tool" && inputCallLost(d, job.task, lostCall(end, run?.cancelling === true))) return d.done()
  if (run === null) return d.done()
  if (job.type === "tool") {
    const slot = run.calls.find((other) => other.task.id === job.task)
    if (slot === undefined || slot.status !== "running") return d.done()
    const inDoubt = slot.whenInterrupted === "inDoubt" && slot.replay === "unsafe"
    const reason = `${lostCall(end, run.cancelling)}${inDoubt ? " It may or may not have taken effect." : ""}`
    endCall(d, slot, { output: [text(withOutput(reason, slot.output))], isError: true, inDoubt }, reason)
    advance(d)
    return d.done()
  }
  if (!("token" in job) || job.token !== run.token) return d.done()
  if (run.cancelling) abortRun(d)
  else if (job.type === "hook") hookDone(d, null)
  else if (end.type === "crashed") {
    failRun(d, "internal", `${end.message} (reference ${end.reference}; see the log)`, end.reference)
  } else failRun(d, "internal", "the request was stopped", "stopped")
  return d.done()
}

/** The plugins that the run waited for are done. */
export const hookDone = (d: Draft, next: EventOf<"yielded">["next"]): void => {
  if (checkpointOf(d.run.generation).phase === "yield") {
    yielded(d, { next })
    return
  }
  d.patchRun({ told: true })
  endBatch(d)
}

const lostCall = (end: EventOf<"jobEnded">["end"], cancelling: boolean): string => {
  if (end.type === "crashed") return `The tool broke: ${end.message} (reference ${end.reference}).`
  return cancelling ? "The call was cancelled." : "The call was interrupted."
}

/** An error text with the output that there was. */
export const withOutput = (reason: string, output: string): string =>
  output === "" ? reason : `${reason} Output so far:\n${output}`
