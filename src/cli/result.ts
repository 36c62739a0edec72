/**
 * The result of one prompt as programs read it: one JSON object on one line.
 */
import type { Json } from "../domain/json.ts"
import type { UnansweredReason } from "../domain/submission.ts"
import type { Usage } from "../domain/usage.ts"
import type { Structured } from "./json-schema.ts"
import type { Outcome } from "./prompt-run.ts"

export interface RunResult {
  readonly type: "result"
  readonly conversation_id: number | null
  readonly submission_id: number | null
  readonly text: string | null
  readonly stop_reason: string | null
  /** `provider/model`. */
  readonly model: string | null
  /** Tokens of the run. */
  readonly usage: Usage | null
  readonly turns: number
  readonly duration_ms: number
  /** The answer as a value, null where there is none; only with `--json-schema`. */
  readonly structured_output?: Json
  readonly is_error: boolean
  /** What failed and what to do; only with `is_error`. */
  readonly error?: string
}

const reasons: Readonly<Record<UnansweredReason, string>> = {
  withdrawn: "the prompt was withdrawn before it was answered",
  aborted: "the turn was cancelled",
  model_error: "the model gave no answer",
  run_failed: "the run failed",
  faulted: "the run broke on our side",
  parked: "the run is parked after crashes",
  stale: "the prompt was no longer current",
  reset: "a reset ended the run",
}

/** Why a submission has no answer, on one line; null when it has one. */
export const errorOf = (outcome: Outcome): string | null => {
  const { conversation_id, status, reason, detail } = outcome.settled
  if (status === "done") return null
  const why = reason === null ? "the prompt was not answered" : reasons[reason]
  const line = detail === null || detail === "" || reason === "aborted" ? why : detail
  return reason === "parked" ? `${line}; ${howToGoOn(conversation_id)}` : line
}

/** How a parked run is decided from outside of it. */
export const howToGoOn = (conversation: number): string =>
  `type /retry or /cancel in: super-pi chat --conversation ${conversation} (session.retry and session.cancel over JSON-RPC)`

/** `structured`: what came of the answer as a value, where one was wanted. */
export const resultOf = (outcome: Outcome, structured: Structured | null = null): RunResult => {
  const { settled } = outcome
  const error = errorOf(outcome) ?? structured?.error ?? null
  return {
    type: "result",
    conversation_id: settled.conversation_id,
    submission_id: settled.submission_id,
    text: settled.text,
    stop_reason: outcome.stopReason,
    model: settled.model,
    usage: settled.usage,
    turns: settled.turns,
    duration_ms: outcome.durationMs,
    ...(structured === null ? {} : { structured_output: structured.value }),
    is_error: error !== null,
    ...(error === null ? {} : { error }),
  }
}

/** The result of a prompt that never reached a conversation, or was lost with it. */
export const failedResult = (error: string, conversationId: number | null): RunResult => ({
  type: "result",
  conversation_id: conversationId,
  submission_id: null,
  text: null,
  stop_reason: "error",
  model: null,
  usage: null,
  turns: 0,
  duration_ms: 0,
  is_error: true,
  error,
})
