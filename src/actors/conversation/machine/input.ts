/**
 * What plugins made of a queued input, and the commands that they want run before it is placed; rules are in `reading.ts`. A command is
 *
 *   (asking →) running → terminal
 *
 * and its output, or why it did not run, stands in its input. Commands of an input that is withdrawn end as aborted ones.
 */
import { callOf, effectIdOf } from "../../../domain/effect.ts"
import type { SubmissionId, TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import { textOf } from "../../../domain/message.ts"
import { outcomeOf, type QuestionEnd, refusalText } from "../../../domain/question.ts"
import type { TaskOutcome } from "../../../domain/task.ts"
import type { ToolResult } from "../../../tools/tool.ts"
import { newCall, storedCall } from "./call.ts"
import type { CallSlot, Decision, InputCall, MachineEvent, SubmissionRow, TaskRow, Verdict } from "./data.ts"
import type { Draft } from "./draft.ts"
import { inputOf } from "./place.ts"
import { askForCall, orRefused } from "./question-open.ts"
import { commandsOf, doneReading, type ReadInput, readOf } from "./reading.ts"
import { answerCancels, startNext } from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>
type Runs = Extract<Verdict, { readonly type: "run" }>

const lost = "[interrupted: the process died while the command ran; it was not run again]"

/** Why a command does not run, as its output. */
const notRun = (reason: string): string => `[not run: ${reason}]`

/** Changes a queued row, where it is still queued. */
const setRow = (d: Draft, row: SubmissionRow, read: ReadInput): void => {
  const content = { ...(row.content as { readonly [key: string]: Json }), read } as unknown as Json // plain data
  const changed = d.putSubmission({ ...row, content })
  d.setQueue(d.data.queue.map((one) => (one.id === row.id ? changed : one)))
}

/** Places what is ready, where nothing runs. */
const proceed = (d: Draft): void => {
  if (d.data.run === null && d.data.parked === null && d.data.state !== "recovering") startNext(d)
}

const cut = (output: string, maxBytes: number): string => {
  const bytes = Buffer.from(output, "utf8")
  if (bytes.length <= maxBytes) return output
  return `${bytes
    .subarray(0, maxBytes)
    .toString("utf8")
    .replace(/\uFFFD+$/, "")}\n[cut off after ${maxBytes} bytes]`
}

/** The plugins have read an input. */
export const inputRead = (d: Draft, event: EventOf<"inputRead">): Decision => {
  const { agent, commands, content, settles, submission } = event
  doneReading(d, submission)
  const row = d.data.queue.find((one) => one.id === submission)
  if (row === undefined || readOf(row) !== null) return d.done()
  const begun = commands.map(({ verdict }, at) => begin(d, submission, at, orRefused(d, verdict)))
  setRow(d, row, {
    content,
    agent,
    outputs: begun.map((one) => (typeof one === "string" ? one : null)),
    tasks: begun.map((one) => (typeof one === "string" ? null : one.slot.task.id)),
    maxBytes: commands.map((one) => one.maxBytes),
    ...(settles === undefined ? {} : { settles }),
  })
  const calls = begun.flatMap((one) => (typeof one === "string" ? [] : [one]))
  d.patch({ inputCalls: [...commandsOf(d), ...calls.map(({ slot }) => ({ submission, slot }))] })
  for (const { slot, verdict } of calls) {
    if (verdict.ask === undefined) d.act({ type: "runTool", slot })
    else askForCall(d, slot.task.id, slot.call, verdict.args, verdict.ask)
  }
  proceed(d)
  return d.done()
}

/** The intent of a command that may run, or has to be allowed first; else why it does not run. */
const begin = (
  d: Draft,
  submission: SubmissionId,
  at: number,
  verdict: Verdict,
): { readonly slot: CallSlot; readonly verdict: Runs } | string => {
  if (verdict.type === "refuse") return notRun(verdict.reason)
  const call = { type: "toolCall", id: `input-${submission}-${at}`, name: "bash", arguments: {} } as const
  return { slot: newCall(d, call, verdict, null, verdict.ask === undefined ? "running" : "asking"), verdict }
}

/** The job that read an input broke: it is taken as it was given. */
export const inputUnread = (d: Draft, submission: SubmissionId): Decision => {
  const row = d.data.queue.find((one) => one.id === submission)
  doneReading(d, submission)
  if (row === undefined || readOf(row) !== null) return d.done()
  setRow(d, row, { content: inputOf(row).content, agent: null, outputs: [], tasks: [], maxBytes: [] })
  proceed(d)
  return d.done()
}

const commandOf = (d: Draft, task: TaskId): InputCall | undefined =>
  commandsOf(d).find(({ slot }) => slot.task.id === task)

const setCommand = (d: Draft, changed: CallSlot): void => {
  d.patch({
    inputCalls: commandsOf(d).map((one) => (one.slot.task.id === changed.task.id ? { ...one, slot: changed } : one)),
  })
}

/** A command ended: its output stands in its input, and an input that waited for nothing else takes its place. */
const endCommand = (d: Draft, known: InputCall, task: TaskRow, outcome: TaskOutcome, output: string): void => {
  d.endTask(task, outcome)
  d.patch({ inputCalls: commandsOf(d).filter(({ slot }) => slot.task.id !== task.id) })
  if (known.slot.task.abortRequested) {
    answerCancels(d)
    return
  }
  note(d, known.submission, task.id, output)
  proceed(d)
}

/** The slot of a command that waits for a person's answer, or undefined. */
export const askingCommand = (d: Draft, task: TaskId): CallSlot | undefined => {
  const slot = commandOf(d, task)?.slot
  return slot?.status === "asking" ? slot : undefined
}

/** The question about a command ended: it starts, or its input says why it did not run. */
export const commandSettled = (d: Draft, slot: CallSlot, reason: string, end: QuestionEnd): void => {
  const known = commandOf(d, slot.task.id)
  const outcome = outcomeOf(end)
  if (known === undefined || outcome.type === "answered") return
  if (outcome.type !== "allowed") {
    const why = refusalText(reason, outcome)
    endCommand(d, known, slot.task, { status: "aborted", reason: why }, notRun(why))
    return
  }
  const { fence, node, now } = d.env
  const task = d.putTask({ ...slot.task, status: "running", node, fence, startedAt: now })
  const started: CallSlot = { ...slot, task, status: "running", startedAt: now }
  setCommand(d, started)
  d.act({ type: "runTool", slot: started })
}

/** A command ended with its result. False where the task is no command of an input. */
export const inputCallEnded = (d: Draft, task: TaskId, result: ToolResult): boolean => {
  const known = commandOf(d, task)
  if (known === undefined) return false
  const { slot } = known
  const output = textOf(result.output)
  const inDoubt = result.inDoubt === true && slot.replay === "unsafe"
  const failed = result.isError === true
  const outcome: TaskOutcome = failed
    ? { status: "failed", error: output.slice(0, 500) }
    : { status: "completed", result: null }
  endCommand(d, known, { ...slot.task, inDoubt }, outcome, output)
  return true
}

/** The job of a command ended without a result: it broke, or was stopped with its input. False where the task is no command of an input. */
export const inputCallLost = (d: Draft, task: TaskId, why: string): boolean => {
  const known = commandOf(d, task)
  if (known === undefined) return false
  const { slot } = known
  const inDoubt = slot.whenInterrupted === "inDoubt" && slot.replay === "unsafe"
  const stopped = slot.task.abortRequested
  const outcome: TaskOutcome = stopped ? { status: "aborted", reason: "cancelled" } : { status: "failed", error: why }
  endCommand(d, known, { ...slot.task, inDoubt }, outcome, why)
  return true
}

/** Ends what is done for inputs that were taken out of the queue. A command that runs ends when it has stopped. */
export const stopCommands = (d: Draft, rows: ReadonlyArray<SubmissionRow>, reason: string): void => {
  const meant = commandsOf(d).filter(({ submission }) => rows.some((row) => row.id === submission))
  if (meant.length === 0) return
  const tasks: Array<TaskId> = []
  for (const { slot } of meant) {
    if (slot.status === "asking") d.endTask(slot.task, { status: "aborted", reason })
    else {
      setCommand(d, { ...slot, task: d.putTask({ ...slot.task, abortRequested: true }) })
      tasks.push(slot.task.id)
    }
  }
  const ended = meant.filter(({ slot }) => slot.status === "asking")
  d.patch({ inputCalls: commandsOf(d).filter((one) => !ended.includes(one)) })
  if (tasks.length > 0) d.act({ type: "stopCalls", tasks })
}

const note = (d: Draft, submission: SubmissionId, task: TaskId, output: string): void => {
  const row = d.data.queue.find((one) => one.id === submission)
  const read = row === undefined ? null : readOf(row)
  if (row === undefined || read === null) return
  const at = read.tasks.indexOf(task)
  const outputs = read.outputs.map((one, index) =>
    index === at ? cut(output, read.maxBytes[index] ?? output.length) : one,
  )
  setRow(d, row, { ...read, outputs })
}

/**
 * After a death: a command that waits for an answer goes on waiting. One that was cut off is not run again, and its input says so. True where
 * an input can go on now.
 */
export const recoverInputCalls = (
  d: Draft,
  tasks: ReadonlyArray<TaskRow>,
  take: (task: TaskRow) => TaskRow,
): boolean => {
  let found = false
  for (const row of tasks) {
    const input = callOf(row)
    const submission = d.data.queue.find((one) => readOf(one)?.tasks.includes(row.id))
    if (input === null || row.owner !== null || row.status === "terminal") continue
    if (submission !== undefined && d.data.questions.some(({ task }) => task.owner === row.id)) {
      const slot = storedCall(take(row), input, "asking", d.env.now)
      d.patch({ inputCalls: [...commandsOf(d), { submission: submission.id, slot }] })
      continue
    }
    const inDoubt = row.status === "running" && input.replay === "unsafe"
    const outcome: TaskOutcome = row.abortRequested
      ? { status: "aborted", reason: "cancelled" }
      : { status: "failed", error: lost }
    d.endTask({ ...take(row), inDoubt }, outcome)
    d.publish({
      type: "notice",
      level: "warning",
      message: `command ${effectIdOf(row, input)} of an input was cut off`,
    })
    if (submission === undefined) continue
    note(d, submission.id, row.id, lost)
    found = true
  }
  return found
}
