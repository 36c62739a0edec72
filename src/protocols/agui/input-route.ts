/**
 * `POST /agui/v1/sessions/:id/input`: a prompt, an answer to a question, or a cancel, from a front end that follows the events.
 */
import { Effect, Either } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import { type Failure, NotFound } from "../../domain/failure.ts"
import type { TaskId } from "../../domain/ids.ts"
import type { UserPart } from "../../domain/message.ts"
import type { QuestionAnswer } from "../../domain/question.ts"
import { problemOf } from "../http/problems.ts"
import type { Handler, HttpReply, Problem } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import { content, fields, id, optional, type Read, wrong } from "./body.ts"
import { answerOf, questionId } from "./question.ts"
import { clientName, messageRequest } from "./run-route.ts"
import { findThread } from "./thread.ts"

type Input =
  | { readonly type: "prompt"; readonly content: ReadonlyArray<UserPart>; readonly requestId: string | null }
  | {
      readonly type: "answer"
      readonly question: TaskId
      readonly answer: QuestionAnswer
      readonly requestId: string | null
    }
  | { readonly type: "cancel" }

/** The body as it counts. `permission` and `answer` both answer a question. */
export const readInput = (body: unknown): Read<Input> =>
  Either.gen(function* () {
    const record = yield* fields(body, "body")
    switch (record.type) {
      case "prompt": {
        const said = yield* content(record.content ?? record.text, record.content === undefined ? "text" : "content")
        const own = yield* optional(record.id, (value) => id(value, "id"))
        return { type: "prompt" as const, content: said, requestId: own === null ? null : messageRequest(own) }
      }
      case "permission":
      case "answer": {
        const question = yield* questionId(record.questionId ?? record.interruptId, "questionId")
        const given = record.answer ?? (record.answers === undefined ? undefined : { answers: record.answers })
        const requestId = yield* optional(record.requestId, (value) => id(value, "requestId"))
        return { type: "answer" as const, question, answer: yield* answerOf(given, "answer"), requestId }
      }
      case "cancel":
        return { type: "cancel" as const }
      default:
        return yield* wrong("type", '"prompt", "permission", "answer" or "cancel"', record.type)
    }
  })

/** Fails where the question is one of another conversation; one that is over is left to whoever answers it. */
const askedHere = (sessions: SessionsService, target: Required<Target>, question: TaskId) =>
  Effect.gen(function* () {
    const all = yield* sessions.questions({ conversationId: null, principal: target.principal })
    const found = all.find((one) => one.question.question_id === question)
    if (found !== undefined && found.conversation_id !== target.conversationId) {
      return yield* new NotFound({ what: `question ${question} of this session` })
    }
  })

const problem = (failure: Failure): Problem => {
  const worded = problemOf(failure)
  return failure._tag === "Refused" && failure.rule === "question_settled" ? { ...worded, status: 409 } : worded
}

const handle = (
  sessions: SessionsService,
  target: Required<Target>,
  input: Input,
): Effect.Effect<HttpReply, Failure> => {
  const { conversationId, principal } = target
  switch (input.type) {
    case "prompt":
      return Effect.map(
        sessions.submit({ conversationId, principal, content: input.content, requestId: input.requestId }),
        ({ status, submission_id }): HttpReply => ({
          type: "json",
          status: 202,
          body: { conversationId, submissionId: submission_id, status },
        }),
      )
    case "answer":
      return Effect.gen(function* () {
        const { answer, question, requestId } = input
        yield* askedHere(sessions, target, question)
        yield* sessions.answer({ questionId: question, answer, requestId, client: clientName, principal })
        return { type: "json" as const, body: { conversationId, questionId: question, answer } }
      })
    case "cancel":
      return Effect.map(
        sessions.cancel(target),
        ({ cancelled }): HttpReply => ({ type: "json", body: { conversationId, cancelled } }),
      )
  }
}

export const inputHandler =
  (service: ProtocolService): Handler =>
  (request) =>
    Effect.gen(function* () {
      const body = yield* request.json
      const { sessions } = service
      const target = yield* Effect.mapError(findThread(sessions, request.params.id ?? "", request.principal), problemOf)
      const read = readInput(body)
      if (Either.isLeft(read)) return yield* Effect.fail(problemOf(read.left))
      return yield* Effect.mapError(handle(sessions, target, read.right), problem)
    })
