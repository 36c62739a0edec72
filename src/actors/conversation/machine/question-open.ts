/**
 * Opening and ending questions. A question is a `pi.question` row owned by the task that asks; it is open in `data.questions` and in storage
 * alike. Whatever ends its owner withdraws it, in the same commit (`Draft.endTask`).
 */

import type { TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import type { ToolCallPart } from "../../../domain/message.ts"
import type { QuestionBody, QuestionEnd, QuestionInput, Remembered } from "../../../domain/question.ts"
import { outcomeOf, questionTimeoutMs, questionView, refusalText, resultOf } from "../../../domain/question.ts"
import type { TaskOutcome } from "../../../domain/task.ts"
import { TaskKind } from "../../../domain/task.ts"
import type { TrailStep } from "../../../domain/trail.ts"
import type { AskFirst, Question, Verdict } from "./data.ts"
import type { Draft } from "./draft.ts"

/** Why nobody can be asked, or null. A conversation that belongs to a task waits for nobody: it is hardly ever watched. */
export const nobodyToAsk = (d: Draft): string | null => {
  if (d.data.agent.subagent !== undefined) return "a subagent asks nobody"
  if (d.env.answerable === true) return null
  const waits = d.data.agent.questions === "wait" && d.data.conversation.owner === null
  return waits ? null : "no client that can answer is connected"
}

/** Opens a question and asks it. `timeoutMs` null is the policy's. */
export const openQuestion = (
  d: Draft,
  asked: {
    readonly owner: TaskId
    readonly callId: string | null
    readonly key: string
    readonly body: QuestionBody
    readonly timeoutMs: number | null
    readonly replies: Question["replies"]
  },
): void => {
  const { body, callId, key, owner, replies } = asked
  const { now, policy } = d.env
  const timeout = asked.timeoutMs ?? policy.questionTimeoutMs ?? questionTimeoutMs
  const waits = d.data.agent.questions === "wait"
  const input: QuestionInput = { body, callId, key, createdAt: now, expiresAt: waits ? null : now + timeout }
  // What the schema describes is plain data.
  const row = d.newTask(TaskKind.question, input as unknown as Json, null, owner, false)
  const task = d.putTask({ ...row, status: "waiting", startedAt: now })
  const question: Question = { task, input, replies }
  d.patch({ questions: [...d.data.questions, question] })
  publishQuestion(d, question)
  armQuestions(d)
}

/** Shows a question to the watchers. */
export const publishQuestion = (d: Draft, { input, task }: Question): void => {
  const { kind, ...view } = questionView(task.id, input)
  if ("reason" in view) d.publish({ type: "permission_request", ...view })
  else if (kind === "choice") d.publish({ type: "ui_request", ...view })
}

/** Sets the timer for the question that expires next. */
export const armQuestions = (d: Draft): void => {
  const next = Math.min(...d.data.questions.map(({ input }) => input.expiresAt ?? Number.POSITIVE_INFINITY))
  if (Number.isFinite(next)) d.act({ type: "timer", timer: "question", ms: Math.max(0, next - d.env.now) })
  else d.act({ type: "clearTimer", timer: "question" })
}

const taskOutcome = (end: QuestionEnd): TaskOutcome => {
  switch (end.type) {
    case "answered":
      return { status: "completed", result: end.answer as Json }
    case "expired":
      return { status: "failed", error: "expired: nobody answered in time" }
    case "withdrawn":
      return { status: "aborted", reason: end.reason }
  }
}

/** Ends a question and tells whoever waits for it. */
export const endQuestion = (d: Draft, question: Question, end: QuestionEnd): void => {
  const { replies, task } = question
  d.patch({ questions: d.data.questions.filter((other) => other !== question) })
  d.endTask({ ...task, checkpoint: end as Json }, taskOutcome(end))
  d.publish({
    type: "question_settled",
    question_id: task.id,
    result: resultOf(end),
    answer: end.type === "answered" ? end.answer : null,
    by: end.type === "answered" ? end.by : null,
    reason: end.type === "withdrawn" ? end.reason : null,
  })
  for (const reply of replies) d.succeed(reply, outcomeOf(end))
  armQuestions(d)
}

/** Withdraws the open questions of a task. */
export const withdrawQuestions = (d: Draft, owner: TaskId, reason: string): void => {
  for (const question of d.data.questions) {
    if (question.task.owner === owner) endQuestion(d, question, { type: "withdrawn", reason, at: d.env.now })
  }
}

const nothing: Remembered = { commands: [], tools: [] }

/** Asks whether a call may run; `owner` is its task. */
export const askForCall = (d: Draft, owner: TaskId, call: ToolCallPart, args: Json, ask: AskFirst): void => {
  const { reason, remember = nothing, timeoutMs = null, title } = ask
  const body: QuestionBody = {
    kind: "permission",
    title,
    reason,
    tool: call.name,
    arguments: args,
    remember,
  }
  openQuestion(d, { owner, callId: call.id, key: "permission", body, timeoutMs, replies: [] })
}

/** A verdict that asks becomes a refusal where nobody can be asked. */
export const orRefused = (d: Draft, verdict: Verdict): Verdict => {
  const nobody = verdict.type === "run" && verdict.ask !== undefined ? nobodyToAsk(d) : null
  if (verdict.type !== "run" || verdict.ask === undefined || nobody === null) return verdict
  const { now } = d.env
  const step = questionStep("nobody", { rule: null, reason: nobody, at: now, since: now })
  return {
    type: "refuse",
    reason: refusalText(verdict.ask.reason, { type: "nobody", reason: nobody }),
    question: "nobody",
    trail: [...(verdict.trail ?? []), step],
  }
}

/** What a question came to, in the decision trail of its call. `since`: when it was asked. */
export const questionStep = (
  decision: string,
  of: { readonly rule: string | null; readonly reason: string | null; readonly at: number; readonly since: number },
): TrailStep => ({
  plugin: "question",
  hook: "beforeTool",
  decision,
  rule: of.rule,
  reason: of.reason,
  at: of.at,
  ms: Math.max(0, of.at - of.since),
})
