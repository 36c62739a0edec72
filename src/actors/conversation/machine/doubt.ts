/**
 * Effects that may or may not have happened. Rules:
 * 1. An unsafe call that ran when its process ended is never simply run again. A tool with `reconcile` is asked what became of it, as a
 *    job that changes nothing and starts over after a death; its row says `running` until the answer is committed.
 * 2. It happened: its result is committed. It did not: the call runs now, under the same effect id, and rule 1 holds for it again.
 * 3. Anything else (unknown, a failure, no `reconcile`, {@link restartLimit} deaths) is an error result with the output that was flushed,
 *    and a row that is in doubt until somebody settles it.
 */
import type { EffectSettled } from "../../../domain/effect.ts"
import { callOf, effectIdOf } from "../../../domain/effect.ts"
import { EntryKind } from "../../../domain/entry.ts"
import type { TaskId } from "../../../domain/ids.ts"
import { text } from "../../../domain/message.ts"
import type { CallSlot, Decision, JobEnd, MachineEvent } from "./data.ts"
import type { Draft } from "./draft.ts"
import { advance, endCall, setSlot, start, withOutput } from "./tools.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

const interruptedText =
  "The call was interrupted: the process died while it ran, and it may or may not have taken effect. It was not run again."

/** Asks the tool what became of a call that was cut off. */
export const reconcile = (d: Draft, slot: CallSlot): void => {
  const looked: CallSlot = { ...slot, status: "reconciling", task: d.putTask({ ...slot.task, status: "running" }) }
  setSlot(d, looked)
  d.act({ type: "reconcile", slot: looked })
}

/** Ends a call that was cut off, as in doubt. `why` says why it could not be found out. */
export const leaveInDoubt = (d: Draft, slot: CallSlot, why: string | null): void => {
  const reason = why === null ? interruptedText : `${interruptedText} ${why}`
  endCall(d, slot, { output: [text(withOutput(reason, slot.output))], isError: true, inDoubt: true }, reason)
}

const reconcilingSlot = (d: Draft, task: TaskId): CallSlot | undefined =>
  d.data.run?.calls.find((slot) => slot.task.id === task && slot.status === "reconciling")

/** The tool found out what became of a call, or that it cannot. */
export const reconciled = (d: Draft, { found, task }: EventOf<"reconciled">): Decision => {
  const slot = reconcilingSlot(d, task)
  if (slot === undefined) return d.done()
  if ("unknown" in found) leaveInDoubt(d, slot, found.reason ?? null)
  else if (found.happened) endCall(d, slot, found.result)
  else if (d.run.cancelling) {
    endCall(d, slot, { output: [text("The call was cancelled. It had not taken effect.")], isError: true })
  } else {
    const running: CallSlot = { ...slot, status: "running", output: "", startedAt: d.env.now }
    setSlot(d, running)
    start(d, running)
  }
  advance(d)
  return d.done()
}

/** Finding out broke, or was stopped by a cancel. */
export const notReconciled = (d: Draft, task: TaskId, end: JobEnd): Decision => {
  const slot = reconcilingSlot(d, task)
  if (slot === undefined) return d.done()
  const why = end.type === "crashed" ? `Finding out broke: ${end.message} (reference ${end.reference}).` : null
  leaveInDoubt(d, slot, why)
  advance(d)
  return d.done()
}

/** What the model reads of an answer that it should know. */
const told = { happened: "it did take effect", "not-happened": "it did not take effect" } as const

/** A person says what became of a call in doubt: its row keeps the answer, the transcript a note, the model reads it with the next request. */
export const settleEffect = (d: Draft, { answer, reply, task }: EventOf<"settleEffect">): Decision => {
  const input = callOf(task)
  if (!task.inDoubt || input === null) {
    d.succeed(reply, undefined)
    return d.done()
  }
  const settled: EffectSettled = { settled: { answer, at: d.env.now } }
  d.putTask({ ...task, fence: d.env.fence, inDoubt: false, checkpoint: settled })
  const about = { task: task.id, call: input.callId, tool: input.name, effect: effectIdOf(task, input), answer }
  const note =
    answer === "ignore"
      ? []
      : [text(`About the call of ${input.name} (${input.callId}) that was cut off earlier: ${told[answer]}.`)]
  d.addEntry(EntryKind.effectSettled, note.length === 0 ? [] : [{ role: "user", content: note }], null, about)
  d.publish({ type: "notice", level: "info", message: `call ${task.id} (${input.name}) was settled: ${answer}` })
  d.succeed(reply, undefined)
  return d.done()
}
