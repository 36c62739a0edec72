/**
 * Where a run waits for its plugins: when the calls of a turn have ended (`afterTools`), and when the model gave its final answer (`onYield`),
 * which is committed first. A plugin that wants the run to go on adds a user message, an entry `pi.continue`; at most {@link continuesAtMost}
 * times in a run.
 */
import { EntryKind } from "../../../domain/entry.ts"
import type { EntryId } from "../../../domain/ids.ts"
import { type StopReason, textOf, toolCallsOf } from "../../../domain/message.ts"
import { restartLimit } from "../../../domain/task.ts"
import { compactBeside } from "./compact.ts"
import type { EndedCall, MachineEvent, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"
import { abortRun, answerRun, checkpointOf, nextTurn, yieldCheckpoint } from "./run.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** How often plugins may have a run go on. */
const continuesAtMost = 10

/** The calls of the response, and how each ended. */
const endedCalls = (d: Draft, assistant: EntryId): ReadonlyArray<EndedCall> => {
  const entries = d.data.context.entries.takeLastWhile((entry) => entry.id >= assistant)
  const message = entries[0]?.model.find(({ role }) => role === "assistant")
  if (message?.role !== "assistant") return []
  const results = entries.flatMap(({ model }) => model.filter((one) => one.role === "tool"))
  return toolCallsOf(message).map(({ arguments: given, id, name }) => {
    const slot = d.run.calls.find((one) => one.call.id === id)
    const isError = results.some((one) => one.role === "tool" && one.callId === id && one.isError)
    return { id, name, args: slot?.args ?? given, isError }
  })
}

/** Tells the plugins that the calls have ended; false where that is done, or none of them wants to know. */
export const tellEnded = (d: Draft): boolean => {
  const { generation, told = false, token } = d.run
  const checkpoint = checkpointOf(generation)
  if (told || checkpoint.phase !== "tools" || d.env.hooks?.has("afterTools") !== true) return false
  // Where subagents were waited for it is their end that ends the batch.
  d.to("executing_tools")
  d.act({ type: "hook", token, hook: { type: "afterTools", calls: endedCalls(d, checkpoint.assistant) } })
  return true
}

/** The model's answer is committed; the plugins say whether it is final. */
export const yieldAnswer = (d: Draft, entry: EntryId, stopReason: StopReason, text: string): void => {
  const { run } = d
  const generation = d.putTask({ ...run.generation, checkpoint: yieldCheckpoint(entry, stopReason), crashes: 0 })
  d.patchRun({ generation, finished: null, partial: { text: "", thinking: "" } })
  d.to("settling_run")
  d.act({ type: "hook", token: run.token, hook: { type: "onYield", entry, text } })
}

/** What the answer that a run ends with says. */
const answerText = (d: Draft, entry: EntryId): string => {
  const [first] = d.data.context.entries.takeLastWhile((one) => one.id >= entry)
  const message = first?.model.find(({ role }) => role === "assistant")
  return message?.role === "assistant" ? textOf(message.content) : ""
}

const continues = (d: Draft): number => {
  const from = d.run.submissions[0]?.entry ?? Number.POSITIVE_INFINITY
  return d.data.context.entries
    .takeLastWhile((entry) => entry.id >= from)
    .filter((entry) => entry.kind === EntryKind.continue).length
}

/** The plugins have said whether the answer is final. */
export const yielded = (d: Draft, { next }: Pick<EventOf<"yielded">, "next">): void => {
  const { run } = d
  const checkpoint = checkpointOf(run.generation)
  if (checkpoint.phase !== "yield") return
  if (run.cancelling) {
    abortRun(d)
    return
  }
  const { assistant, stopReason } = checkpoint
  const over = next !== null && continues(d) >= continuesAtMost
  if (over) {
    const message = `plugins had the run go on ${continuesAtMost} times; the answer counts as it is`
    d.publish({ type: "notice", level: "warning", message })
  }
  if (next === null || over) {
    const { model, window } = run
    answerRun(d, assistant, stopReason, answerText(d, assistant))
    if (d.data.run === null && model !== "") compactBeside(d, { model, window })
    return
  }
  const { content, plugins } = next
  const entry = d.addEntry(EntryKind.continue, [{ role: "user", content }], run.generation.id, { plugins })
  d.publish({ type: "message_completed", entry_id: entry.id, role: "user", content, stop_reason: null })
  nextTurn(d)
}

/** After a death: the plugins are asked again, unless that took the process along too often. */
export const resumeYield = (d: Draft, generation: TaskRow): void => {
  const checkpoint = checkpointOf(generation)
  if (checkpoint.phase !== "yield") return
  d.patchRun({ generation: d.putTask({ ...generation, status: "running" }) })
  d.to("settling_run")
  const asks = d.env.hooks?.has("onYield") === true && generation.crashes < restartLimit && !d.run.cancelling
  if (!asks) {
    yielded(d, { next: null })
    return
  }
  const { assistant } = checkpoint
  d.act({
    type: "hook",
    token: d.run.token,
    hook: { type: "onYield", entry: assistant, text: answerText(d, assistant) },
  })
}
