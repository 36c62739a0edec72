/**
 * Runs and turns: placing inputs, starting a turn, ending a run with an answer, a failure or a cancel.
 */
import type { LiveDocument, UsageDocument } from "../../../domain/document.ts"
import { DocumentKind } from "../../../domain/document.ts"
import { EntryKind } from "../../../domain/entry.ts"
import type { EntryId } from "../../../domain/ids.ts"
import { isJsonObject, type Json } from "../../../domain/json.ts"
import type { AssistantMessage, AssistantPart, StopReason, UserPart } from "../../../domain/message.ts"
import { text } from "../../../domain/message.ts"
import type { TaskOutcome } from "../../../domain/task.ts"
import { TaskKind } from "../../../domain/task.ts"
import type { Usage } from "../../../domain/usage.ts"
import { addUsage, noUsage } from "../../../domain/usage.ts"
import type { ToolUsage } from "../../../tools/tool.ts"
import { leaveAfterRun, leftToDo } from "./after-run.ts"
import { liveCompactions } from "./compaction-view.ts"
import type { Data, Run, SubmissionRow, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"
import { inputOf, placeInput, placeInputs, placeWrites } from "./place.ts"
import { commandsStopping, readQueue } from "./reading.ts"

/** Where a generation is: about to ask the model, or waiting for its calls. */
export type Checkpoint =
  | { readonly phase: "request"; readonly attempt: number; readonly overflowed?: boolean }
  /** `calls` counts the calls of the response; `control.ts` adds what their results ask for. */
  | { readonly phase: "tools"; readonly assistant: EntryId; readonly parallel: number; readonly calls: number }
  /** The answer is committed, and plugins say whether it is final. */
  | { readonly phase: "yield"; readonly assistant: EntryId; readonly stopReason: StopReason }

/** `overflowed`: the service found the context too long once, and it was compacted. */
export const requestCheckpoint = (attempt: number, overflowed = false): Json => ({
  phase: "request",
  attempt,
  ...(overflowed ? { overflowed } : {}),
})
export const toolsCheckpoint = (assistant: EntryId, parallel: number, calls: number): Json => ({
  phase: "tools",
  assistant,
  parallel,
  calls,
})

export const yieldCheckpoint = (assistant: EntryId, stopReason: StopReason): Json => ({
  phase: "yield",
  assistant,
  stopReason,
})

/** The checkpoint of a generation that this engine wrote. */
export const checkpointOf = (generation: TaskRow): Checkpoint => generation.checkpoint as unknown as Checkpoint

/** A run at the start of a turn. */
export const freshRun = (generation: TaskRow, submissions: ReadonlyArray<SubmissionRow>, token: number): Run => ({
  generation,
  submissions,
  model: "",
  attempt: 1,
  token,
  partial: { text: "", thinking: "" },
  finished: null,
  calls: [],
  parallel: 1,
  retry: null,
  flushed: false,
  flushDue: false,
  cancelling: false,
  window: null,
  waits: 0,
  overflowed: false,
  children: [],
})

/** Starts a run for inputs; the machine must have none. */
export const startRun = (d: Draft, rows: ReadonlyArray<SubmissionRow>): void => {
  const placed = rows.map((row) => placeInput(d, row))
  startTurn(d, placed, 1)
}

/** The next turn for `submissions`: a generation that runs, and a request to prepare. */
export const startTurn = (d: Draft, submissions: ReadonlyArray<SubmissionRow>, turn: number): void => {
  const input = { submissions: submissions.map((row) => row.id), turn }
  const generation = d.newTask(TaskKind.generation, input, requestCheckpoint(1), null)
  // Higher than any in this life: a job of a run that ended may still be on its way out.
  const token = (d.data.run?.token ?? d.data.lastToken ?? 0) + 1
  d.patch({ run: freshRun(generation, submissions, token) })
  d.to("preparing_request")
  d.publish({ type: "turn_started", submission_ids: submissions.map((row) => row.id), model: d.data.agent.model ?? "" })
  d.act({ type: "prepare", token })
}

/** Which turn of its run a generation is, from 1. */
export const turnOf = (generation: TaskRow): number => (generation.input as { readonly turn: number }).turn

/** What some inputs said, as they were placed. */
export const inputsOf = (rows: ReadonlyArray<SubmissionRow>): ReadonlyArray<ReadonlyArray<UserPart>> =>
  rows.map((row) => inputOf(row).content)

/** What is queued takes its place; its inputs start the next run, if there are any. The machine must have no run. */
export const startNext = (d: Draft): boolean => {
  if (d.data.queue.length === 0) return false
  readQueue(d)
  placeWrites(d)
  const inputs = placeInputs(d, "final")
  if (inputs.length === 0) return false
  startTurn(d, inputs, 1)
  return true
}

/** After the calls of a turn: writes are placed and steers join, then the next turn. A reset among the writes ends the run. */
export const nextTurn = (d: Draft): void => {
  const run = d.run
  const turn = turnOf(run.generation) + 1
  if (turn > d.env.policy.maxTurns) {
    d.patchRun({ partial: { text: "", thinking: "" }, finished: null })
    failRun(d, "turn_limit", `the run took more than ${d.env.policy.maxTurns} turns`, null)
    return
  }
  if (placeWrites(d)) {
    d.endTask(run.generation, { status: "aborted", reason: "reset" })
    leaveAfterRun(d, "cancelled", null)
    d.publish({ type: "turn_cancelled" })
    d.unanswered(run.submissions, "reset", "a reset began a new context before the answer")
    rest(d)
    return
  }
  d.endTask(run.generation, { status: "completed", result: null })
  startTurn(d, [...run.submissions, ...placeInputs(d, "afterTools")], turn)
}

/** There is no run any more. */
const leave = (d: Draft): void => d.patch({ run: null, lastToken: d.run.token })

/** A run ended as it should: what is queued goes on in the same commit, so that no death between the two leaves it waiting. */
const rest = (d: Draft): void => {
  leave(d)
  if (startNext(d)) return
  d.to("settling_run")
  if (!leftToDo(d)) d.act({ type: "self", event: { type: "settled" } })
}

/** Adds the tokens of one response to `pi.usage`: of the run's request, which is a turn, or of a model asked `beside` it. */
export const countUsage = (d: Draft, usage: Usage, beside?: string): void => {
  const model = beside ?? d.run.model
  const { models: before, turns = 0, ...others } = d.data.usage
  const models = { ...before, [model]: addUsage(before[model] ?? noUsage, usage) }
  const document: UsageDocument = { models, turns: beside === undefined ? turns + 1 : turns, ...others }
  d.patch({ usage: document })
  d.putDocument(DocumentKind.usage, document as Json)
  d.publish({ type: "usage_updated", usage, total: sumUsage(models) })
}

/** Adds the tokens that a tool's result reports to `pi.usage`: to the tool's, and where it names a model to the model's. */
export const countToolUsage = (d: Draft, tool: string, { model, usage }: ToolUsage): void => {
  const { tools = {}, ...others } = d.data.usage
  const counted = { ...tools, [tool]: addUsage(tools[tool] ?? noUsage, usage) }
  const document: UsageDocument = { tools: counted, ...others }
  d.patch({ usage: document })
  if (model === undefined) d.putDocument(DocumentKind.usage, document as Json)
  else countUsage(d, usage, model)
}

export const sumUsage = (models: { readonly [model: string]: Usage }): Usage =>
  Object.values(models).reduce(addUsage, noUsage)

/** Appends what the model said. */
export const addAssistant = (
  d: Draft,
  content: ReadonlyArray<AssistantPart>,
  stopReason: StopReason,
  usage: Usage | null,
  error: string | null = null,
): EntryId => {
  const run = d.run
  const message: AssistantMessage = {
    role: "assistant",
    content,
    model: run.model,
    stopReason,
    ...(usage === null ? {} : { usage }),
    ...(error === null ? {} : { error }),
  }
  const entry = d.addEntry(EntryKind.assistant, [message], run.generation.id)
  d.publish({ type: "message_completed", entry_id: entry.id, role: "assistant", content, stop_reason: stopReason })
  return entry.id
}

/** The value of `pi.live` for a run in progress. */
const liveOf = (run: Run, data: Data): LiveDocument => ({
  generation:
    run.partial.text === "" && run.partial.thinking === ""
      ? null
      : { task: run.generation.id, model: run.model, text: run.partial.text, thinking: run.partial.thinking },
  tools: Object.fromEntries(
    run.calls
      .filter((slot) => (slot.status === "running" || slot.status === "reconciling") && slot.output !== "")
      .map((slot) => [String(slot.task.id), { callId: slot.call.id, output: slot.output }]),
  ),
  retry: run.retry,
  ...liveCompactions(data),
})

export const emptyLive = { generation: null, tools: {}, retry: null } as const

/** Writes `pi.live` in this commit. */
export const flushLive = (d: Draft): void => {
  d.putDocument(DocumentKind.live, liveOf(d.run, d.data))
  d.patchRun({ flushed: true, flushDue: false })
}

/** Empties `pi.live` where this turn wrote to it; a flush that was due is void. */
export const clearLive = (d: Draft): void => {
  if (d.run.flushed) d.putDocument(DocumentKind.live, { ...emptyLive, ...liveCompactions(d.data) })
  if (d.run.flushDue) d.act({ type: "clearTimer", timer: "flush" })
  d.patchRun({ flushed: false, flushDue: false, retry: null })
}

/**
 * Ends the run with an answer: entry `answer` for every input of the run.
 */
export const answerRun = (d: Draft, answer: EntryId, stopReason: StopReason, answerText: string): void => {
  const run = d.run
  d.endTask(run.generation, { status: "completed", result: answer })
  leaveAfterRun(d, "answered", answer)
  // Before the ends of its submissions: who waits for one of these has then seen how the turn ended.
  d.publish({ type: "turn_completed", stop_reason: stopReason, entry_id: answer, text: answerText })
  for (const row of run.submissions) {
    d.act({ type: "settle", submission: d.putSubmission({ ...row, status: "done", answer }) })
  }
  rest(d)
}

/** What was streamed or finished of a response that never became one. */
const unfinished = (run: Run): ReadonlyArray<AssistantPart> =>
  run.finished !== null ? run.finished.content : run.partial.text === "" ? [] : [text(run.partial.text)]

const endRun = (
  d: Draft,
  outcome: TaskOutcome,
  reason: "aborted" | "model_error" | "faulted",
  detail: string,
): void => {
  const run = d.run
  clearLive(d)
  d.endTask(run.generation, outcome)
  d.unanswered(run.submissions, reason, detail)
}

/** Ends the run with a failure. What is queued stays queued until the next input. */
export const failRun = (d: Draft, code: string, message: string, reference: string | null): void => {
  addAssistant(d, unfinished(d.run), "error", d.run.finished?.usage ?? null, message)
  d.publish({ type: "turn_error", code, message, reference })
  endRun(d, { status: "failed", error: { code, message } }, reference === null ? "model_error" : "faulted", message)
  leaveAfterRun(d, "failed", null)
  leave(d)
  d.to(leftToDo(d) ? "settling_run" : "idle")
}

/** Part of the checkpoint of a run that is cancelled for one of those who wait for it: what others queued goes on when it has ended. */
const cancelledAlone = "cancelledAlone"

/** A generation that is to be cancelled: with what is queued, or `alone`. */
export const toBeAborted = (generation: TaskRow, alone: boolean): TaskRow => {
  const { [cancelledAlone]: _, ...checkpoint } = generation.checkpoint as { readonly [key: string]: Json }
  const marked: Json = alone ? { ...checkpoint, [cancelledAlone]: true } : checkpoint
  return { ...generation, abortRequested: true, checkpoint: marked }
}

const isAlone = ({ checkpoint }: TaskRow): boolean => isJsonObject(checkpoint) && checkpoint[cancelledAlone] === true

/** Ends a cancelled run, once everything that it started has ended. */
export const abortRun = (d: Draft): void => {
  const alone = isAlone(d.run.generation)
  const partial = unfinished(d.run)
  if (partial.length > 0) addAssistant(d, partial, "aborted", d.run.finished?.usage ?? null)
  if (d.run.finished !== null) countUsage(d, d.run.finished.usage)
  d.publish({ type: "turn_cancelled" })
  endRun(d, { status: "aborted", reason: "cancelled" }, "aborted", "cancelled")
  leaveAfterRun(d, "cancelled", null)
  leave(d)
  d.to(leftToDo(d) ? "settling_run" : "idle")
  answerCancels(d)
  if (alone) startNext(d)
}

/** Answers whoever waits for a cancel, once nothing is left that it stops. */
export const answerCancels = (d: Draft): void => {
  if (d.data.cancels.length === 0 || d.data.run?.cancelling === true || leftToDo(d)) return
  if (d.data.compactions.some((one) => one.cancelling) || commandsStopping(d)) return
  for (const reply of d.data.cancels) d.succeed(reply, { cancelled: true })
  d.patch({ cancels: [] })
}
