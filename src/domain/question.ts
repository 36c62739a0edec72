/**
 * Questions to a person: a call that needs a permission, or a choice that a tool wants to be made. A question is a `pi.question` task of
 * its conversation, owned by the call (or the turn) that asks:
 *
 *   open (`waiting`) → answered | expired | withdrawn (`terminal`)
 *
 * 1. It is committed before anybody is asked, and belongs to nobody in particular: any client that may see the conversation may answer.
 * 2. The first answer that is committed counts. What comes later is refused and told who won; the same request again is answered alike.
 * 3. Denied, expired and withdrawn are different ends, and none of them is that nobody could be asked, which leaves no question at all.
 */
import { Either, Option, Schema } from "effect"
import { InvalidRequest } from "./failure.ts"
import { ConversationId, TaskId } from "./ids.ts"
import { Json, type JsonObject } from "./json.ts"
import { nearest } from "./nearest.ts"
import type { Task } from "./task.ts"
import { TaskKind } from "./task.ts"

/** How long a question stays open where nothing else is said, in ms. */
export const questionTimeoutMs = 120_000

/** Answers to a question for a permission: the option kinds of the Agent Client Protocol. */
export const PermissionAnswer = Schema.Literal("allow_once", "allow_always", "reject_once", "reject_always")
export type PermissionAnswer = typeof PermissionAnswer.Type

/** One thing that can be chosen. */
export const ChoiceOption = Schema.Struct({
  id: Schema.NonEmptyString,
  label: Schema.NonEmptyString,
  description: Schema.optional(Schema.String),
})
export type ChoiceOption = typeof ChoiceOption.Type

/** One of the things that a question asks. Without options it takes a text. */
export const Choice = Schema.Struct({
  /** Unique within its question. */
  id: Schema.NonEmptyString,
  text: Schema.NonEmptyString,
  options: Schema.Array(ChoiceOption),
  /** Whether several options may be chosen. */
  multiple: Schema.Boolean,
  /** Whether a text may be given instead of, or beside, an option. */
  freeText: Schema.Boolean,
})
export type Choice = typeof Choice.Type

/** What `allow_always` and `reject_always` keep in the session: patterns of shell commands, and names of tools. */
export const Remembered = Schema.Struct({ commands: Schema.Array(Schema.String), tools: Schema.Array(Schema.String) })
export type Remembered = typeof Remembered.Type

const PermissionBody = Schema.Struct({
  kind: Schema.Literal("permission"),
  title: Schema.String,
  reason: Schema.String,
  tool: Schema.String,
  arguments: Json,
  remember: Remembered,
})
const ChoiceBody = Schema.Struct({
  kind: Schema.Literal("choice"),
  title: Schema.String,
  questions: Schema.Array(Choice),
})

/** What is asked. */
export const QuestionBody = Schema.Union(PermissionBody, ChoiceBody)
export type QuestionBody = typeof QuestionBody.Type

/** The durable input of a `pi.question` task. Times in milliseconds since the epoch. */
export const QuestionInput = Schema.Struct({
  body: QuestionBody,
  /** The provider's id of the call that asks, or null. */
  callId: Schema.NullOr(Schema.String),
  /** Unique among the questions of its owner: asked again after a crash, it is this one. */
  key: Schema.String,
  createdAt: Schema.Int,
  /** Null: it stays open until it is answered or withdrawn. */
  expiresAt: Schema.NullOr(Schema.Int),
})
export type QuestionInput = typeof QuestionInput.Type

/** What was chosen, by the id of each thing that was asked. */
export const ChoiceAnswers = Schema.Record({
  key: Schema.String,
  value: Schema.Struct({
    selected: Schema.Array(Schema.String),
    text: Schema.optionalWith(Schema.NullOr(Schema.String), { default: () => null }),
  }),
})
export type ChoiceAnswers = typeof ChoiceAnswers.Type

/** Any answer. A choice is declined with `reject_once`. */
export const QuestionAnswer = Schema.Union(PermissionAnswer, ChoiceAnswers)
export type QuestionAnswer = typeof QuestionAnswer.Type

/** How a question ended: the checkpoint of its task. `by` says who, for people. */
export const QuestionEnd = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("answered"),
    answer: QuestionAnswer,
    by: Schema.String,
    requestId: Schema.NullOr(Schema.String),
    at: Schema.Int,
  }),
  Schema.Struct({ type: Schema.Literal("expired"), at: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("withdrawn"), reason: Schema.String, at: Schema.Int }),
)
export type QuestionEnd = typeof QuestionEnd.Type

/** The end as events name it. */
export const QuestionResult = Schema.Literal("allowed", "answered", "denied", "expired", "withdrawn")
export type QuestionResult = typeof QuestionResult.Type

export const resultOf = (end: QuestionEnd): QuestionResult => {
  if (end.type !== "answered") return end.type
  if (typeof end.answer !== "string") return "answered"
  return isAllowed(end.answer) ? "allowed" : "denied"
}

export const isAllowed = (answer: PermissionAnswer): boolean => answer === "allow_once" || answer === "allow_always"

/** What the one who asked is told. */
export type AskOutcome =
  | { readonly type: "allowed"; readonly answer: PermissionAnswer; readonly by: string }
  | { readonly type: "answered"; readonly answers: ChoiceAnswers; readonly by: string }
  | { readonly type: "denied"; readonly answer: PermissionAnswer; readonly by: string }
  | { readonly type: "expired" }
  | { readonly type: "withdrawn"; readonly reason: string }
  /** No client that can answer is connected, or nobody is to be asked here. */
  | { readonly type: "nobody"; readonly reason: string }

export const outcomeOf = (end: QuestionEnd): AskOutcome => {
  if (end.type === "expired") return { type: "expired" }
  if (end.type === "withdrawn") return { type: "withdrawn", reason: end.reason }
  const { answer, by } = end
  if (typeof answer !== "string") return { type: "answered", answers: answer, by }
  return isAllowed(answer) ? { type: "allowed", answer, by } : { type: "denied", answer, by }
}

const permissionLabels: Readonly<Record<PermissionAnswer, string>> = {
  allow_once: "Allow once",
  allow_always: "Allow always in this session",
  reject_once: "Reject",
  reject_always: "Reject always in this session",
}

/** The options of a question for a permission, in the order in which they are shown. */
export const permissionOptions: ReadonlyArray<ChoiceOption & { readonly id: PermissionAnswer }> =
  PermissionAnswer.literals.map((id) => ({ id, label: permissionLabels[id] }))

const viewHead = {
  question_id: TaskId,
  /** The provider's id of the call that asks, or null. */
  call_id: Schema.NullOr(Schema.String),
  title: Schema.String,
  created_at: Schema.Int,
  /** Milliseconds since the epoch, or null: it does not expire. */
  expires_at: Schema.NullOr(Schema.Int),
}

/** A question for a permission as clients see it. */
export const permissionFields = {
  ...viewHead,
  tool: Schema.String,
  arguments: Json,
  reason: Schema.String,
  options: Schema.Array(ChoiceOption),
}

/** A choice as clients see it. */
export const choiceFields = { ...viewHead, questions: Schema.Array(Choice) }

/** An open question as clients see it. */
export const QuestionView = Schema.Union(
  Schema.Struct({ kind: Schema.Literal("permission"), ...permissionFields }),
  Schema.Struct({ kind: Schema.Literal("choice"), ...choiceFields }),
)
export type QuestionView = typeof QuestionView.Type

/** An open question of some conversation, as listings show it. */
export const ListedQuestion = Schema.Struct({ conversation_id: ConversationId, question: QuestionView })
export type ListedQuestion = typeof ListedQuestion.Type

export const questionView = (id: TaskId, input: QuestionInput): QuestionView => {
  const { body, callId, createdAt, expiresAt } = input
  const head = { question_id: id, call_id: callId, title: body.title, created_at: createdAt, expires_at: expiresAt }
  if (body.kind === "choice") return { kind: "choice", questions: body.questions, ...head }
  const { arguments: args, reason, tool } = body
  return { kind: "permission", tool, arguments: args, reason, options: permissionOptions, ...head }
}

/** The open questions among tasks, oldest first. */
export const openQuestions = (tasks: ReadonlyArray<Task>): ReadonlyArray<ListedQuestion> =>
  tasks.flatMap((task) => {
    const input = task.status === "terminal" || task.conversation === null ? null : questionOf(task)
    if (input === null || task.conversation === null) return []
    return [{ conversation_id: task.conversation, question: questionView(task.id, input) }]
  })

const decodeInput = Schema.decodeUnknownOption(QuestionInput)
const decodeEnd = Schema.decodeUnknownOption(QuestionEnd)

/** What a task asks, or null where it is no question. */
export const questionOf = (task: Pick<Task, "kind" | "input">): QuestionInput | null =>
  task.kind === TaskKind.question ? Option.getOrNull(decodeInput(task.input)) : null

/** How a question ended, or null while it is open. */
export const endOf = (task: Pick<Task, "checkpoint">): QuestionEnd | null =>
  Option.getOrNull(decodeEnd(task.checkpoint))

const quoted = (names: ReadonlyArray<string>): string => names.map((name) => `"${name}"`).join(", ")

const invalid = (path: string, expected: string, actual: string) =>
  Either.left(new InvalidRequest({ path, expected, actual }))

const checkChoice = (path: string, choice: Choice, answers: ChoiceAnswers): Either.Either<void, InvalidRequest> => {
  const given = answers[choice.id]
  if (given === undefined) return invalid(path, `an answer to "${choice.id}"`, "nothing")
  const ids = choice.options.map((option) => option.id)
  const unknown = given.selected.find((id) => !ids.includes(id))
  if (unknown !== undefined) {
    const expected = ids.length === 0 ? "no option, a text" : `of ${quoted(ids)}`
    return invalid(`${path}.selected`, expected, `"${unknown}" (nearest: "${nearest(unknown, ids) ?? ""}")`)
  }
  if (new Set(given.selected).size > 1 && !choice.multiple) {
    return invalid(`${path}.selected`, "one option", `${given.selected.length}`)
  }
  const text = given.text?.trim() ?? ""
  if (text !== "" && !choice.freeText) return invalid(`${path}.text`, "null: only the options can be chosen", "a text")
  if (given.selected.length === 0 && text === "") {
    return invalid(path, choice.freeText ? "an option or a text" : "an option", "neither")
  }
  return Either.void
}

/** Whether an answer fits what was asked. */
export const checkAnswer = (
  body: QuestionBody,
  answer: QuestionAnswer,
): Either.Either<QuestionAnswer, InvalidRequest> => {
  if (body.kind === "permission") {
    return typeof answer === "string"
      ? Either.right(answer)
      : invalid("answer", `one of ${quoted(PermissionAnswer.literals)}`, "an object")
  }
  if (typeof answer === "string") {
    return answer === "reject_once"
      ? Either.right(answer)
      : invalid(
          "answer",
          `an answer to each of ${quoted(body.questions.map(({ id }) => id))}, or "reject_once"`,
          `"${answer}"`,
        )
  }
  return Either.gen(function* () {
    const ids = body.questions.map(({ id }) => id)
    const unknown = Object.keys(answer).find((id) => !ids.includes(id))
    if (unknown !== undefined) return yield* invalid(`answer.${unknown}`, `one of ${quoted(ids)}`, `"${unknown}"`)
    for (const choice of body.questions) yield* checkChoice(`answer.${choice.id}`, choice, answer)
    return answer
  })
}

/** What the model and people read of a call that was not allowed; `reason` is why it had to be asked. */
export const refusalText = (
  reason: string,
  outcome: Exclude<AskOutcome, { readonly type: "allowed" | "answered" }>,
): string => {
  switch (outcome.type) {
    case "denied":
      return `Denied: a person (${outcome.by}) rejected this call. ${reason}`
    case "expired":
      return `Not run: nobody answered in time whether it may run. ${reason}`
    case "withdrawn":
      return `Not run: the question whether it may run was withdrawn (${outcome.reason}). ${reason}`
    case "nobody":
      return `${reason} Nobody could be asked: ${outcome.reason}.`
  }
}

/** The `details` of a call that was not allowed, for programs: which of the ways it was. */
export const refusalDetails = (question: TaskId | null, result: QuestionResult | "nobody"): JsonObject => ({
  permission: { question, result },
})
