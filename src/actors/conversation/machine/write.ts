/**
 * Writes, resets and withdrawals: what changes a conversation without asking the model. Rules:
 * 1. A note (kind and data only) is appended at once, in any state, except behind a queued reset, which would hide it.
 * 2. Any other write is appended at once where the conversation is idle with nothing queued; else it waits for the next boundary.
 * 3. Only what is queued can be withdrawn.
 */
import { NotFound } from "../../../domain/failure.ts"
import type { Json } from "../../../domain/json.ts"
import { isNote } from "../../../domain/write.ts"
import type { Decision, MachineEvent, SubmissionRow } from "./data.ts"
import { type Draft, queuedSubmission } from "./draft.ts"
import { stopCommands } from "./input.ts"
import { isReset, placeWrite } from "./place.ts"
import { isReady } from "./reading.ts"
import { startNext } from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** Admits a write: it becomes an entry, or waits in the queue. */
export const write = (d: Draft, event: EventOf<"write">): Decision => {
  const { queue } = d.data
  const row = queuedSubmission({
    id: d.env.ids.submission(),
    conversation: d.data.conversation.id,
    kind: "write",
    content: { ...event.entry } as Json,
    whenBusy: "followUp",
    requestId: event.requestId,
    createdAt: d.env.now,
  })
  const idle = d.data.run === null && d.data.parked === null
  const atOnce = isNote(event.entry) ? !queue.some(isReset) : idle && queue.length === 0
  if (atOnce) {
    d.succeed(event.reply, placeWrite(d, row))
    return d.done()
  }
  d.putSubmission(row)
  d.setQueue([...queue, row])
  if (idle) startNext(d)
  d.succeed(event.reply, d.submission(row))
  return d.done()
}

/** Takes something out of the queue again. */
export const withdraw = (d: Draft, event: EventOf<"withdraw">): Decision => {
  const row = d.data.queue.find((one) => one.id === event.submission)
  if (row === undefined) {
    d.act({
      type: "fail",
      reply: event.reply,
      failure: new NotFound({ what: `queued submission ${event.submission}` }),
    })
    return d.done()
  }
  takeBack(d, row, "withdrawn")
  d.succeed(event.reply, d.submission(row))
  return d.done()
}

/** Takes a row out of the queue, and ends what was done for it. What waited only for it to become ready takes its place. */
export const takeBack = (d: Draft, row: SubmissionRow, why: string): void => {
  const heldUp = !isReady(d, row)
  d.setQueue(d.data.queue.filter((one) => one !== row))
  stopCommands(d, [row], why)
  d.unanswered([row], "withdrawn", why)
  if (heldUp && d.data.run === null && d.data.parked === null) startNext(d)
}
