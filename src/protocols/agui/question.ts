/**
 * Questions as interrupts of a run, and what a front end sends back as answers. Pure.
 */
import { Either, Option, Schema } from "effect"
import { InvalidRequest } from "../../domain/failure.ts"
import { TaskId } from "../../domain/ids.ts"
import { PermissionAnswer, QuestionAnswer, type QuestionView } from "../../domain/question.ts"
import type { Interrupt } from "./protocol.ts"

const text = { type: "string" } as const

/** JSON Schema of what answers a question, for front ends that make a form of it. */
const answerSchema = (question: QuestionView): Record<string, unknown> => {
  if (question.kind === "permission") {
    return { type: "object", properties: { answer: { enum: PermissionAnswer.literals } }, required: ["answer"] }
  }
  const properties = Object.fromEntries(
    question.questions.map(({ freeText, id, multiple, options, text: title }) => [
      id,
      {
        type: "object",
        title,
        properties: {
          selected: {
            type: "array",
            items: options.length === 0 ? text : { enum: options.map((option) => option.id) },
            ...(multiple ? {} : { maxItems: 1 }),
          },
          ...(freeText ? { text: { type: ["string", "null"] } } : {}),
        },
        required: ["selected"],
      },
    ]),
  )
  const required = question.questions.map(({ id }) => id)
  return {
    type: "object",
    properties: { answers: { type: "object", properties, required } },
    required: ["answers"],
  }
}

/** A question as `RUN_FINISHED` names it. `metadata` holds the whole question. */
export const interruptOf = (question: QuestionView): Interrupt => {
  const { call_id, expires_at, kind, question_id, title } = question
  return {
    id: String(question_id),
    reason: kind === "permission" ? "tool_call" : "input_required",
    message: question.kind === "permission" && question.reason !== "" ? `${title}\n${question.reason}` : title,
    responseSchema: answerSchema(question),
    metadata: { question },
    ...(call_id === null ? {} : { toolCallId: call_id }),
    ...(expires_at === null ? {} : { expiresAt: new Date(expires_at).toISOString() }),
  }
}

const decodeAnswer = Schema.decodeUnknownOption(QuestionAnswer)
const expected =
  '"allow_once", "allow_always", "reject_once", "reject_always", {"answer": one of these}, {"approved": true or false}, or {"answers": {…}} for a choice'

/** What a front end answered, in any of the shapes that are taken. `path` names the field. */
export const answerOf = (payload: unknown, path: string): Either.Either<QuestionAnswer, InvalidRequest> => {
  const wrong = () =>
    Either.left(new InvalidRequest({ path, expected, actual: (JSON.stringify(payload) ?? "nothing").slice(0, 100) }))
  if (typeof payload === "boolean") return Either.right(payload ? "allow_once" : "reject_once")
  if (typeof payload === "string") return Option.match(decodeAnswer(payload), { onNone: wrong, onSome: Either.right })
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return wrong()
  const { answer, answers, approved } = payload as Readonly<Record<string, unknown>>
  if (typeof approved === "boolean") return Either.right(approved ? "allow_once" : "reject_once")
  return Option.match(decodeAnswer(answer ?? answers ?? payload), { onNone: wrong, onSome: Either.right })
}

const decodeId = Schema.decodeUnknownOption(TaskId)

/** The question that an interrupt's id names. */
export const questionId = (id: unknown, path: string): Either.Either<TaskId, InvalidRequest> => {
  const digits = typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : id
  return Option.match(decodeId(digits), {
    onNone: () =>
      Either.left(
        new InvalidRequest({
          path,
          expected: "the id of a question",
          actual: (JSON.stringify(id) ?? "nothing").slice(0, 100),
        }),
      ),
    onSome: Either.right,
  })
}
