/**
 * Admission: inputs and configuration from outside. Every accepted input is a committed submission before its reply. Cancels: `cancel.ts`.
 */
import { DocumentKind } from "../../../domain/document.ts"
import { Busy } from "../../../domain/failure.ts"
import type { Json } from "../../../domain/json.ts"
import { changedAgent } from "../../../domain/subagent.ts"
import type { Decision, MachineEvent } from "./data.ts"
import { type Draft, queuedSubmission } from "./draft.ts"
import { isReady, readQueue } from "./reading.ts"
import { startNext, startRun } from "./run.ts"

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
