/**
 * What happens around open questions: an answer, the end of their time, a tool that asks, and what is open when the machine starts. Rules:
 * 1. A call that has to be allowed first is `asking`: it has no effect yet, and the rest of its batch goes on. So is a command of an input,
 *    which waits in the queue meanwhile.
 * 2. Its answer and what follows from it (the call starts, or its result says why it did not run) are one commit.
 * 3. A question that a crash left open is asked again to whoever connects, until its own time is over.
 */

import { DocumentKind } from "../../../domain/document.ts"
import { NotFound } from "../../../domain/failure.ts"
import type { TaskId } from "../../../domain/ids.ts"
import { isJsonObject, type Json } from "../../../domain/json.ts"
import type { AskOutcome, QuestionEnd } from "../../../domain/question.ts"
import { outcomeOf, questionOf, refusalDetails, refusalText, resultOf } from "../../../domain/question.ts"
import { remember } from "../../../domain/remembered.ts"
import { TaskKind } from "../../../domain/task.ts"
import type { CallSlot, Decision, MachineEvent, Question, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"
import { askingCommand, commandSettled } from "./input.ts"
import { armQuestions, endQuestion, nobodyToAsk, openQuestion, publishQuestion, questionStep } from "./question-open.ts"
import { advance, refuseCall, setSlot } from "./tools.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** The first answer: the question ends, and the call that waited for it starts or is refused. */
export const answerQuestion = (d: Draft, event: EventOf<"answer">): Decision => {
  const { answer, by, reply, requestId } = event
  const question = d.data.questions.find((one) => one.task.id === event.question)
  if (question === undefined) {
    d.act({ type: "fail", reply, failure: new NotFound({ what: `open question ${event.question}` }) })
    return d.done()
  }
  const { body } = question.input
  if (body.kind === "permission" && typeof answer === "string") {
    const agent = remember(d.data.agent, answer, body.remember)
    if (agent !== d.data.agent) {
      d.patch({ agent })
      d.putDocument(DocumentKind.agent, { ...agent } as Json)
    }
  }
  settle(d, question, { type: "answered", answer, by, requestId, at: d.env.now })
  d.succeed(reply, undefined)
  return d.done()
}

/** The timer of the questions fired: what has had its time is over. */
export const expireQuestions = (d: Draft): Decision => {
  const over = d.data.questions.filter(({ input }) => input.expiresAt !== null && input.expiresAt <= d.env.now)
  for (const question of over) settle(d, question, { type: "expired", at: d.env.now })
  if (over.length === 0 && d.data.questions.length > 0) armQuestions(d)
  return d.done()
}

/** Ends a question, then the waiting of its call. */
const settle = (d: Draft, question: Question, end: QuestionEnd): void => {
  endQuestion(d, question, end)
  const { owner } = question.task
  const { body } = question.input
  if (owner === null || body.kind !== "permission") return
  const command = askingCommand(d, owner)
  if (command !== undefined) {
    commandSettled(d, noted(command, question, end), body.reason, end)
    return
  }
  const found = d.data.run?.calls.find((one) => one.task.id === owner)
  if (found?.status !== "asking") return
  const slot = noted(found, question, end)
  const outcome = outcomeOf(end)
  if (outcome.type === "allowed") setSlot(d, { ...slot, status: "pending" })
  else if (outcome.type !== "answered") {
    refuseCall(d, slot, refusalText(body.reason, outcome), refusalDetails(question.task.id, resultOf(end)))
  }
  advance(d)
}

/** A call with what its question came to in its decision trail, in memory and in its row. */
const noted = (slot: CallSlot, { input }: Question, end: QuestionEnd): CallSlot => {
  const decision = end.type === "answered" && typeof end.answer === "string" ? end.answer : end.type
  const rule = end.type === "answered" ? end.by : null
  const reason = end.type === "withdrawn" ? end.reason : null
  const step = questionStep(decision, { rule, reason, at: end.at, since: input.createdAt })
  const trail = [...(slot.trail ?? []), step]
  const intent = isJsonObject(slot.task.input) ? slot.task.input : {}
  return { ...slot, trail, task: { ...slot.task, input: { ...intent, trail: trail.map((one) => ({ ...one })) } } }
}

/** A tool, or a turn, asks. Asked again under the same key, it waits for the question that is open. */
export const askQuestion = (d: Draft, event: EventOf<"ask">): Decision => {
  const { body, key, reply, timeoutMs } = event
  const { questions, run } = d.data
  const told = (outcome: AskOutcome): Decision => {
    d.succeed(reply, outcome)
    return d.done()
  }
  const slot = run?.calls.find((one) => one.task.id === event.owner)
  if (run === null || run.cancelling || (event.owner !== null && slot?.status !== "running")) {
    return told({ type: "withdrawn", reason: "who asked is over" })
  }
  const owner = event.owner ?? run.generation.id
  const known = questions.find((one) => one.task.owner === owner && one.input.key === key)
  if (known !== undefined) {
    const joined = { ...known, replies: [...known.replies, reply] }
    d.patch({ questions: questions.map((one) => (one === known ? joined : one)) })
    return d.done()
  }
  const nobody = nobodyToAsk(d)
  if (nobody !== null) return told({ type: "nobody", reason: nobody })
  openQuestion(d, { owner, callId: slot?.call.id ?? null, key, body, timeoutMs, replies: [reply] })
  return d.done()
}

/** Takes up the open questions that are stored. Those whose asker is gone are withdrawn. */
export const recoverQuestions = (d: Draft, tasks: ReadonlyArray<TaskRow>): void => {
  const rows = tasks.filter((task) => task.kind === TaskKind.question)
  if (rows.length === 0) return
  const open = new Set(tasks.map((task) => task.id))
  const found = rows.flatMap((task): ReadonlyArray<Question> => {
    const input = questionOf(task)
    return input === null ? [] : [{ task: { ...task, fence: d.env.fence }, input, replies: [] }]
  })
  d.patch({ questions: found })
  for (const task of rows) {
    if (!found.some((one) => one.task.id === task.id)) {
      d.endTask(task, { status: "faulted", error: "what it asks cannot be read" })
    }
  }
  for (const question of found) {
    if (question.task.owner !== null && open.has(question.task.owner)) publishQuestion(d, question)
    else endQuestion(d, question, { type: "withdrawn", reason: "who asked is gone", at: d.env.now })
  }
  armQuestions(d)
}

/** A call that an earlier process left unstarted: `asking` while its question is open. */
export const unstarted = (d: Draft, call: TaskId): CallSlot["status"] =>
  d.data.questions.some(({ input, task }) => task.owner === call && input.body.kind === "permission")
    ? "asking"
    : "pending"
