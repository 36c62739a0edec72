/**
 * One request to the model: prepared, streamed, failed, retried.
 */
import { EntryKind } from "../../../domain/entry.ts"
import type { ModelError } from "../../../models/model.ts"
import { compactOverflow, holdRequest } from "./compact.ts"
import type { Decision, MachineEvent } from "./data.ts"
import type { Draft } from "./draft.ts"
import { retryJob } from "./retry-job.ts"
import { abortRun, failRun, flushLive, requestCheckpoint } from "./run.ts"
import { stage } from "./tools.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** The model is resolved and the prompt is known: commit what changed of it, then ask. */
export const prepared = (d: Draft, event: EventOf<"prepared">): Decision => {
  if (d.run.cancelling) {
    abortRun(d)
    return d.done()
  }
  if (event.system !== null) d.addEntry(EntryKind.system, [event.system], d.run.generation.id)
  const { model, window } = event
  const run = d.patchRun({ model, window })
  if (holdRequest(d, { model, window })) return d.done()
  d.to("streaming_llm")
  d.act({ type: "request", token: run.token, model: event.model, generation: run.generation.id })
  return d.done()
}

/** Nothing more may be asked: the run ends with an error of its own. */
export const overBudget = (d: Draft, { detail }: EventOf<"overBudget">): Decision => {
  if (d.run.cancelling) abortRun(d)
  else failRun(d, "budget_exceeded", `The budget is used up: ${detail}`, null)
  return d.done()
}

/** A piece of the answer: published at once, staged for the next flush. */
export const delta = (d: Draft, event: EventOf<"text" | "thinking" | "callDelta">): Decision => {
  const { partial } = d.run
  switch (event.type) {
    case "text":
      d.patchRun({ partial: { ...partial, text: partial.text + event.delta } })
      d.publish({ type: "text_delta", text: event.delta })
      break
    case "thinking":
      d.patchRun({ partial: { ...partial, thinking: partial.thinking + event.delta } })
      d.publish({ type: "thinking_delta", text: event.delta })
      break
    case "callDelta":
      d.publish({
        type: "toolcall_delta",
        call_id: event.callId,
        name: event.name,
        delta: event.delta,
        arguments: event.arguments,
      })
      return d.done()
  }
  stage(d)
  return d.done()
}

/** The wait before attempt `attempt + 1`, in ms: what the service asked for, or doubling with jitter. */
export const backoffMs = (attempt: number, retryAfterMs: number | null, env: Draft["env"]): number => {
  const { backoffBaseMs, backoffMaxMs } = env.policy
  if (retryAfterMs !== null) return Math.min(Math.max(0, retryAfterMs), backoffMaxMs)
  return Math.round(Math.min(backoffBaseMs * 2 ** (attempt - 1), backoffMaxMs) * (0.5 + env.random() / 2))
}

/** The request failed: sleep and try again where that may help, else end the run. */
export const modelFailed = (d: Draft, event: EventOf<"modelFailed">): Decision => {
  const run = d.run
  if (run.cancelling) {
    abortRun(d)
    return d.done()
  }
  const { error } = event
  if (error._tag === "ContextOverflow" && retryShorter(d, error.detail)) return d.done()
  if (error._tag !== "ModelTransient" || run.attempt > d.env.policy.maxRetries) {
    failRun(d, failureCode(error), error.message, null)
    return d.done()
  }
  const at = d.env.now + backoffMs(run.attempt, error.retryAfterMs, d.env)
  const reason = error.detail
  const generation = d.putTask({
    ...run.generation,
    status: "sleeping",
    node: null,
    checkpoint: requestCheckpoint(run.attempt + 1, run.overflowed),
    crashes: 0,
    wakeAt: at,
  })
  if (run.partial.text !== "" || run.partial.thinking !== "") d.publish({ type: "stream_reset", reason })
  d.addJob(retryJob(generation.id, at))
  d.patchRun({
    generation,
    attempt: run.attempt + 1,
    partial: { text: "", thinking: "" },
    retry: { attempt: run.attempt + 1, at, reason },
  })
  flushLive(d)
  d.act({ type: "clearTimer", timer: "flush" })
  d.to("sleeping_backoff")
  d.publish({ type: "retry_scheduled", attempt: run.attempt + 1, at_ms: at, reason })
  d.act({ type: "timer", timer: "backoff", ms: at - d.env.now })
  return d.done()
}

/** A context that is too long: the request is made once more with a shorter one. False where that was tried, or nothing can go. */
const retryShorter = (d: Draft, reason: string): boolean => {
  const { attempt, model, partial, window } = d.run
  if (!compactOverflow(d, { model, window })) return false
  if (partial.text !== "" || partial.thinking !== "") d.publish({ type: "stream_reset", reason })
  d.act({ type: "clearTimer", timer: "flush" })
  const generation = d.putTask({ ...d.run.generation, checkpoint: requestCheckpoint(attempt, true) })
  d.patchRun({ generation, partial: { text: "", thinking: "" }, flushDue: false })
  return true
}

/** The backoff is over: the generation runs again. */
export const wake = (d: Draft): Decision => {
  if (d.data.state !== "sleeping_backoff" || d.data.run === null) return d.done()
  const run = d.run
  const generation = d.putTask({
    ...run.generation,
    status: "running",
    node: d.env.node,
    fence: d.env.fence,
    wakeAt: null,
  })
  d.patchRun({ generation, token: run.token + 1, retry: null })
  d.to("preparing_request")
  d.act({ type: "prepare", token: run.token + 1 })
  return d.done()
}

/** The code of a failed request towards programs. */
export const failureCode = (error: ModelError): string => {
  switch (error._tag) {
    case "ModelNotFound":
      return "model_not_found"
    case "ProviderNotConfigured":
      return "provider_not_configured"
    case "ContextOverflow":
      return "context_overflow"
    case "ModelRejected":
      return "model_rejected"
    case "ModelTransient":
      return "model_unavailable"
  }
}
