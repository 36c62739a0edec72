/**
 * What plugins made of a queued input, and the commands that they want run before it is placed; rules are in `reading.ts`.
 */
import { callOf, effectIdOf } from "../../../domain/effect.ts"
import type { SubmissionId, TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import { textOf } from "../../../domain/message.ts"
import type { ToolResult } from "../../../tools/tool.ts"
import { newCall } from "./call.ts"
import type { CallSlot, Decision, MachineEvent, SubmissionRow, TaskRow, Verdict } from "./data.ts"
import type { Draft } from "./draft.ts"
import { inputOf } from "./place.ts"
import { doneReading, type ReadInput, readOf } from "./reading.ts"
import { startNext } from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

const lost = "[interrupted: the process died while the command ran; it was not run again]"

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

/** Why a command does not run, as its output. */
const refusal = (verdict: Verdict): string | null => {
  if (verdict.type === "refuse") return `[not run: ${verdict.reason}]`
  return verdict.ask === undefined
    ? null
    : `[not run: ${verdict.ask.reason} Nobody is asked before an input is placed.]`
}

/** The plugins have read an input. */
export const inputRead = (d: Draft, event: EventOf<"inputRead">): Decision => {
  const { agent, commands, content, submission } = event
  doneReading(d, submission)
  const row = d.data.queue.find((one) => one.id === submission)
  if (row === undefined || readOf(row) !== null) return d.done()
  const outputs: Array<string | null> = []
  const tasks: Array<TaskId | null> = []
  const started: Array<CallSlot> = []
  for (const [at, { verdict }] of commands.entries()) {
    const refused = refusal(verdict)
    outputs.push(refused)
    if (refused !== null || verdict.type !== "run") {
      tasks.push(null)
      continue
    }
    const slot = newSlot(d, submission, at, verdict)
    tasks.push(slot.task.id)
    started.push(slot)
  }
  setRow(d, row, { content, agent, outputs, tasks, maxBytes: commands.map((one) => one.maxBytes) })
  d.patch({ inputCalls: [...(d.data.inputCalls ?? []), ...started.map((slot) => ({ submission, slot }))] })
  for (const slot of started) d.act({ type: "runTool", slot })
  proceed(d)
  return d.done()
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

const newSlot = (
  d: Draft,
  submission: SubmissionId,
  at: number,
  verdict: Extract<Verdict, { readonly type: "run" }>,
): CallSlot => {
  const call = { type: "toolCall", id: `input-${submission}-${at}`, name: "bash", arguments: {} } as const
  return newCall(d, call, verdict, null, "running")
}

/** A command ended: its output stands in its input. False where the task is no command of an input. */
export const inputCallEnded = (d: Draft, task: TaskId, result: ToolResult): boolean => {
  const known = (d.data.inputCalls ?? []).find(({ slot }) => slot.task.id === task)
  if (known === undefined) return false
  const failed = result.isError === true
  d.endTask(
    { ...known.slot.task, inDoubt: result.inDoubt === true && known.slot.replay === "unsafe" },
    failed ? { status: "failed", error: textOf(result.output).slice(0, 500) } : { status: "completed", result: null },
  )
  d.patch({ inputCalls: (d.data.inputCalls ?? []).filter((one) => one !== known) })
  note(d, known.submission, task, textOf(result.output))
  proceed(d)
  return true
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

/** After a death: a command that was cut off is not run again, and its input says so. True where an input can go on now. */
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
    d.endTask({ ...take(row), inDoubt: input.replay === "unsafe" }, { status: "failed", error: lost })
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
