/**
 * How subagents end. One commit ends the task, appends its summary and adds its tokens; the one of the last subagent also starts the next turn,
 * so a summary arrives exactly once and no death leaves the parent waiting.
 */
import { DocumentKind, type UsageDocument } from "../../../domain/document.ts"
import { EntryKind } from "../../../domain/entry.ts"
import type { Json } from "../../../domain/json.ts"
import { text } from "../../../domain/message.ts"
import { type SubagentEnd, summaryOf } from "../../../domain/subagent.ts"
import type { TaskOutcome } from "../../../domain/task.ts"
import { addUsage, noUsage } from "../../../domain/usage.ts"
import { stopChildren } from "./children.ts"
import type { Child, Decision, MachineEvent } from "./data.ts"
import type { Draft } from "./draft.ts"
import { endBatch } from "./tools.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** Characters of a failure that a task row keeps. */
const errorLength = 500

const outcomeOf = ({ status, text: said }: SubagentEnd): TaskOutcome => {
  switch (status) {
    case "completed":
      return { status: "completed", result: null }
    case "stopped":
      return { status: "aborted", reason: said.slice(0, errorLength) }
    default:
      return { status: "failed", error: said.slice(0, errorLength) }
  }
}

/** Its tokens and turns count for this conversation's tree from now on. */
const count = (d: Draft, { models, turns }: SubagentEnd): void => {
  if (turns === 0 && Object.keys(models).length === 0) return
  const { usage } = d.data
  const before = usage.subagents ?? { models: {}, turns: 0 }
  const sums = { ...before.models }
  for (const [model, used] of Object.entries(models)) sums[model] = addUsage(sums[model] ?? noUsage, used)
  const { subagents: _, ...own } = usage
  const document: UsageDocument = { subagents: { models: sums, turns: before.turns + turns }, ...own }
  d.patch({ usage: document })
  d.putDocument(DocumentKind.usage, document as Json)
}

/** Ends the task of a subagent, with its summary for the model unless the run is being cancelled. */
const endChild = (d: Draft, { input, task }: Child, end: SubagentEnd): void => {
  d.endTask(task, outcomeOf(end))
  d.patchRun({ children: d.run.children.filter((one) => one.task.id !== task.id) })
  count(d, end)
  const { callId, conversation, role } = input
  const { status } = end
  if (!d.run.cancelling) {
    const message = { role: "user" as const, content: [text(summaryOf(input, end))] }
    d.addEntry(EntryKind.subagent, [message], task.id, { call: callId, conversation, role, status })
  }
  d.publish({
    type: "subagent_finished",
    task_id: task.id,
    call_id: callId,
    subagent_id: conversation,
    role,
    status,
    error: status === "completed" ? null : end.text.slice(0, errorLength),
    duration_ms: task.startedAt === null ? 0 : Math.max(0, d.env.now - task.startedAt),
  })
}

/** A subagent ended; the first word counts. With `failFast` a failure stops the others. */
export const childEnded = (d: Draft, { end, reply, task }: EventOf<"childEnded">): Decision => {
  d.succeed(reply, undefined)
  const child = d.data.run?.children.find((one) => one.task.id === task)
  if (child === undefined) return d.done()
  // Whatever it says of itself, one that was told to stop was stopped, unless it was done before.
  const stopped = child.task.abortRequested && end.status !== "completed"
  endChild(d, child, stopped ? { ...end, status: "stopped" } : end)
  const failFast = d.run.generation.waitingOn?.policy === "failFast"
  if (failFast && end.status !== "completed" && !d.run.cancelling) stopChildren(d)
  if (d.run.children.length === 0) goOn(d)
  return d.done()
}

/** Nothing is waited for any more: the batch ends, where its other calls have. */
const goOn = (d: Draft): void => {
  d.patchRun({ generation: d.putTask({ ...d.run.generation, waitingOn: null }) })
  if (d.data.state !== "awaiting_children") return
  d.act({ type: "clearTimer", timer: "children" })
  endBatch(d)
}
