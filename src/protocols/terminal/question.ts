/**
 * Questions as lines for a terminal. Pure; everything is sanitised.
 */
import { isJsonObject } from "../../domain/json.ts"
import type {
  Choice,
  ChoiceAnswers,
  ChoiceOption,
  QuestionAnswer,
  QuestionResult,
  QuestionView,
} from "../../domain/question.ts"
import { shortArguments } from "./format.ts"
import { oneLine } from "./sanitize.ts"

/** Columns of a call's arguments. A command that is to be allowed should be seen whole. */
const argumentColumns = 400

const optionLine = ({ description, label }: ChoiceOption, at: number): string =>
  `  ${at + 1}) ${oneLine(label)}${description === undefined ? "" : ` – ${oneLine(description)}`}`

/** One of the things that are asked, with its options numbered, and how to answer. */
export const choiceLines = ({ freeText, multiple, options, text }: Choice): ReadonlyArray<string> => {
  const how =
    options.length === 0
      ? "type the answer"
      : [multiple ? "numbers, such as 1,3" : "a number", ...(freeText ? ["or a text"] : [])].join(" ")
  return [oneLine(text), ...options.map(optionLine), `  (${how}; Esc or Ctrl-C declines)`]
}

/** What a permission is asked for, and the four answers. */
const permissionLines = (question: Extract<QuestionView, { readonly kind: "permission" }>): ReadonlyArray<string> => {
  const args = isJsonObject(question.arguments) ? shortArguments(question.arguments, argumentColumns) : ""
  return [
    oneLine(question.title),
    `  ${oneLine(question.tool)} ${args}`.trimEnd(),
    ...(question.reason === "" ? [] : [`  ${oneLine(question.reason)}`]),
    ...question.options.map(optionLine),
    "  (a number, y or n; Esc or Ctrl-C rejects)",
  ]
}

/** A question as it is shown when it is asked: a choice with the first of what it asks. */
export const questionLines = (question: QuestionView): ReadonlyArray<string> => {
  if (question.kind === "permission") return permissionLines(question)
  const [first] = question.questions
  const head = question.title === "" || question.title === first?.text ? [] : [oneLine(question.title)]
  return [...head, ...(first === undefined ? [] : choiceLines(first))]
}

const chosen = (answers: ChoiceAnswers): string =>
  Object.values(answers)
    .map(({ selected, text }) => [...selected, ...(text === null ? [] : [text])].join(", "))
    .map(oneLine)
    .join("; ")

const resultWords: Readonly<Record<QuestionResult, string>> = {
  allowed: "allowed",
  answered: "answered",
  denied: "rejected",
  expired: "nobody answered in time",
  withdrawn: "the question was withdrawn",
}

/** One line that says how a question ended. */
export const settledLine = (end: {
  readonly result: QuestionResult
  readonly answer: QuestionAnswer | null
  readonly by: string | null
  readonly reason: string | null
}): string => {
  const { answer, by, reason, result } = end
  const always = typeof answer === "string" && answer.endsWith("_always") ? " for this session" : ""
  const what = answer !== null && typeof answer === "object" ? `: ${chosen(answer)}` : ""
  const who = by === null ? "" : ` by ${oneLine(by)}`
  const why = reason === null ? "" : ` (${oneLine(reason)})`
  return `${resultWords[result]}${always}${who}${what}${why}`
}
