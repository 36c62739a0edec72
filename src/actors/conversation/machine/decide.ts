/**
 * The conversation machine: `decide(data, event, env)`. The transition table is in `docs/conversation.md`; states and events that the
 * table does not name together are postponed until the next state. Nothing here reads a clock, a socket or a store.
 */
import type { TaskId } from "../../../domain/ids.ts"
import { configure, proceed, submit } from "./admit.ts"
import { afterRunEnded, leftToDo } from "./after-run.ts"
import { cancel } from "./cancel.ts"
import { checkChildren, childBegun } from "./children.ts"
import { childEnded } from "./children-end.ts"
import { compact } from "./compact.ts"
import {
  compacted,
  compactionDeclined,
  compactionFailed,
  compactionJobEnded,
  placeReady,
  wakeCompactions,
} from "./compaction-end.ts"
import type { Data, Decision, Env, JobEnd, MachineEvent } from "./data.ts"
import { notReconciled, reconciled, settleEffect } from "./doubt.ts"
import { Draft } from "./draft.ts"
import { inputRead, inputUnread } from "./input.ts"
import { answerQuestion, askQuestion, expireQuestions } from "./question.ts"
import { recover, retryParked } from "./recover.ts"
import { backoffMs, delta, modelFailed, overBudget, prepared, wake } from "./request.ts"
import { answerCancels } from "./run.ts"
import { callsPrepared, flush, hookDone, jobEnded, responded, toolEnded, toolOutput } from "./tools.ts"
import { withdraw, write } from "./write.ts"

/** Whether a job's message belongs to the request or batch in progress. */
const current = (data: Data, token: number): boolean => data.run !== null && data.run.token === token

const nothing = (data: Data): Decision => ({ type: "go", data, commit: null, actions: [] })

/** What to do about one event. Draws ids from `env.ids`; otherwise pure. */
export const decide = (data: Data, event: MachineEvent, env: Env): Decision => {
  if (data.state === "recovering" && event.type !== "recover") return { type: "postpone" }
  const d = new Draft(data, env)
  const decision = dispatch(d, data, event)
  return placeReady(d) ? d.done() : decision
}

const jobFault = (end: JobEnd): string => (end.type === "crashed" ? end.message : "it was stopped")

/** What was left to do after a run is done: the conversation rests, unless it works on something else. */
const afterRunOver = (d: Draft, task: TaskId, fault: string | null): Decision => {
  if (afterRunEnded(d, task, fault)) {
    if (d.data.run === null && d.data.state === "settling_run") d.to("idle")
    answerCancels(d)
  }
  return d.done()
}

const dispatch = (d: Draft, data: Data, event: MachineEvent): Decision => {
  switch (event.type) {
    case "recover":
      return recover(d, event)
    case "submit":
      return submit(d, event)
    case "write":
      return write(d, event)
    case "withdraw":
      return withdraw(d, event)
    case "configure":
      return configure(d, event)
    case "cancel":
      return cancel(d, event)
    case "retry":
      return retryParked(d, event)
    case "settled":
      if (data.state !== "settling_run" || data.run !== null || leftToDo(d)) return nothing(data)
      d.to("idle")
      return d.done()
    case "prepared":
      return current(data, event.token) && data.state === "preparing_request" ? prepared(d, event) : nothing(data)
    case "text":
    case "thinking":
    case "callDelta":
      return current(data, event.token) && data.state === "streaming_llm" ? delta(d, event) : nothing(data)
    case "responded":
      return current(data, event.token) && data.state === "streaming_llm" ? responded(d, event) : nothing(data)
    case "modelFailed":
      return current(data, event.token) ? modelFailed(d, event) : nothing(data)
    case "callsPrepared":
      return current(data, event.token) && data.state === "executing_tools" ? callsPrepared(d, event) : nothing(data)
    case "toolOutput":
      return toolOutput(d, event)
    case "toolEnded":
      return toolEnded(d, event)
    case "reconciled":
      return reconciled(d, event)
    case "settleEffect":
      return settleEffect(d, event)
    case "answer":
      return answerQuestion(d, event)
    case "ask":
      return askQuestion(d, event)
    case "compact":
      return compact(d, event)
    case "compacted":
      return compacted(d, event)
    case "compactionFailed":
      return compactionFailed(d, event, (attempt, retryAfterMs) => backoffMs(attempt, retryAfterMs, d.env))
    case "compactionDeclined":
      return compactionDeclined(d, event)
    case "childBegun":
      return childBegun(d, event)
    case "childEnded":
      return childEnded(d, event)
    case "proceed":
      return proceed(d, event)
    case "overBudget":
      return current(data, event.token) && data.state === "preparing_request" ? overBudget(d, event) : nothing(data)
    case "toldEnded":
      if (current(data, event.token) && data.state === "executing_tools") hookDone(d, null)
      return d.done()
    case "yielded":
      if (current(data, event.token) && data.state === "settling_run") hookDone(d, event.next)
      return d.done()
    case "inputRead":
      return inputRead(d, event)
    case "afterRunEnded":
      return afterRunOver(d, event.task, null)
    case "jobEnded":
      if (event.job.type === "afterRun") return afterRunOver(d, event.job.task, jobFault(event.end))
      if (event.job.type === "input") return inputUnread(d, event.job.submission)
      if (event.job.type === "compaction") return compactionJobEnded(d, event.job.task, event.end)
      return event.job.type === "reconcile" ? notReconciled(d, event.job.task, event.end) : jobEnded(d, event)
    case "timer":
      if (event.timer === "compaction") return wakeCompactions(d)
      if (event.timer === "children") return checkChildren(d)
      if (event.timer === "question") return expireQuestions(d)
      return event.timer === "backoff" ? wake(d) : flush(d)
  }
}
