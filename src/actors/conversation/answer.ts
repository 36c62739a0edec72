/**
 * Answers and questions on their way to the machine. What an answer meets is looked up here, inside the actor, so that of two that come
 * together the second one meets what the first left: a question that is over says who won.
 */
import { Effect, Either } from "effect"
import { type Failure, NotFound, Refused } from "../../domain/failure.ts"
import { type AskOutcome, checkAnswer, endOf, outcomeOf, type QuestionEnd, questionOf } from "../../domain/question.ts"
import { type Task, TaskKind } from "../../domain/task.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { StoreService } from "../../storage/store.ts"
import { keep, postpone } from "../kernel/index.ts"
import { orStorageFailure } from "./failures.ts"
import type { MachineEvent } from "./machine/data.ts"
import type { ConversationMessage } from "./messages.ts"
import type { Change, Shell } from "./shell.ts"

type Answer = Extract<ConversationMessage, { readonly type: "answerNow" }>
type Ask = Extract<MachineEvent, { readonly type: "ask" }>

const told = (shell: Shell, tell: () => void): Effect.Effect<Change> => Effect.as(Effect.sync(tell), keep<Shell>(shell))

/** An answer of a client: to an open question it counts; to one that is over it is refused, or repeated. */
export const answerNow = (store: StoreService, shell: Shell, message: Answer): Effect.Effect<Change> => {
  // What is open is not known yet.
  if (shell.data.state === "recovering") return Effect.succeed(postpone)
  const { answer, by, questionId, reply, requestId } = message
  const open = shell.data.questions.find((one) => one.task.id === questionId)
  if (open !== undefined) {
    return Either.match(checkAnswer(open.input.body, answer), {
      onLeft: (fault) => told(shell, () => reply.fail(fault)),
      onRight: (fits) => shell.handle({ type: "answer", question: questionId, answer: fits, by, requestId, reply }),
    })
  }
  const conversation = shell.data.conversation.id
  return Effect.matchEffect(orStorageFailure(store.task(questionId)), {
    onFailure: (failure) => told(shell, () => reply.fail(failure)),
    onSuccess: (task) =>
      told(shell, () => {
        const refused = refusalOf(task, conversation, requestId)
        if (refused === null) reply.succeed(undefined)
        else reply.fail(refused)
      }),
  })
}

/** Why a question that is not open takes no answer; null where this very request answered it. */
const refusalOf = (task: Task | null, conversation: number, requestId: string | null): Failure | null => {
  const end = task === null || task.conversation !== conversation || questionOf(task) === null ? null : endOf(task)
  if (task === null || end === null) return new NotFound({ what: "this question" })
  if (end.type === "answered" && end.requestId !== null && end.requestId === requestId) return null
  return new Refused({ rule: "question_settled", detail: `question ${task.id} ${overWords(end)}` })
}

const overWords = (end: QuestionEnd): string => {
  const at = new Date(end.at).toISOString()
  switch (end.type) {
    case "answered": {
      const what = typeof end.answer === "string" ? ` with ${end.answer}` : ""
      return `was answered${what} by ${end.by} at ${at}`
    }
    case "expired":
      return `expired at ${at}`
    case "withdrawn":
      return `was withdrawn at ${at}: ${end.reason}`
  }
}

/** What a running call is told at once: what an earlier run of it was told, or that a subagent asks nobody. Null: it is to be asked. */
const knownOutcome = (store: StoreService, shell: Shell, event: Ask): Effect.Effect<AskOutcome | null, ReadError> =>
  Effect.gen(function* () {
    const { owner } = shell.data.conversation
    if (owner !== null && (yield* store.task(owner))?.kind === TaskKind.subagent) {
      return { type: "nobody", reason: "a subagent asks nobody" }
    }
    if (event.owner === null) return null
    const asked = yield* store.ownedTasks(event.owner)
    const same = asked.find((task) => task.status === "terminal" && questionOf(task)?.key === event.key)
    const end = same === undefined ? null : endOf(same)
    return end === null ? null : outcomeOf(end)
  })

/** A running call asks. */
export const askNow = (store: StoreService, shell: Shell, event: Ask): Effect.Effect<Change> => {
  if (shell.data.state === "recovering") return Effect.succeed(postpone)
  return Effect.matchEffect(orStorageFailure(knownOutcome(store, shell, event)), {
    onFailure: (failure) => told(shell, () => event.reply.fail(failure)),
    onSuccess: (outcome) => (outcome === null ? shell.handle(event) : told(shell, () => event.reply.succeed(outcome))),
  })
}
