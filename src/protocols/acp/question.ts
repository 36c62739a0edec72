/**
 * Questions as an editor asks them: a permission, a form, or a choice between options where the editor has no forms. And its answers as
 * answers of a conversation. Pure; the session's id is put in by whoever sends.
 */
import type {
  CreateElicitationResponse,
  ElicitationPropertySchema,
  ElicitationSchema,
  PermissionOption,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk"
import { isJsonObject, isRecord } from "../../domain/json.ts"
import {
  type Choice,
  type ChoiceAnswers,
  PermissionAnswer,
  type QuestionAnswer,
  type QuestionView,
} from "../../domain/question.ts"
import { type Directory, diffsOf, kindOf, locationsOf, titleOf } from "./tool-call.ts"

type PermissionQuestion = Extract<QuestionView, { readonly kind: "permission" }>
type ChoiceQuestion = Extract<QuestionView, { readonly kind: "choice" }>

/** Parameters of `session/request_permission`, but for the session. */
export interface PermissionParams {
  readonly toolCall: ToolCallUpdate
  readonly options: Array<PermissionOption>
}

/** Parameters of `elicitation/create` as a form, but for the session. */
export interface FormParams {
  readonly mode: "form"
  readonly message: string
  readonly requestedSchema: ElicitationSchema
  readonly toolCallId?: string
}

/** How an editor can be asked. `choices`: one after the other, each as a permission. */
export type Ask =
  | { readonly by: "permission"; readonly params: PermissionParams }
  | { readonly by: "form"; readonly params: FormParams }
  | { readonly by: "choices"; readonly params: ReadonlyArray<PermissionParams> }
  /** It takes a text, and the editor has no forms: another client has to answer. */
  | { readonly by: "others" }

const callIdOf = ({ call_id, question_id }: QuestionView): string => call_id ?? `question-${question_id}`

const kindOfAnswer = (id: string): PermissionAnswer =>
  PermissionAnswer.literals.find((literal) => literal === id) ?? "reject_once"

const permissionParams = (question: PermissionQuestion, directory: Directory): PermissionParams => {
  const args = isJsonObject(question.arguments) ? question.arguments : {}
  const content = [
    ...diffsOf(question.tool, args, directory),
    ...(question.reason === ""
      ? []
      : [{ type: "content" as const, content: { type: "text" as const, text: question.reason } }]),
  ]
  return {
    toolCall: {
      toolCallId: callIdOf(question),
      title: question.title === "" ? titleOf(question.tool, args) : question.title,
      kind: kindOf(question.tool),
      status: "pending",
      rawInput: args,
      locations: locationsOf(question.tool, args, directory),
      ...(content.length === 0 ? {} : { content }),
    },
    options: question.options.map(({ id, label }) => ({ optionId: id, name: label, kind: kindOfAnswer(id) })),
  }
}

/** Name of the text field beside the options of a choice. */
const textField = (id: string): string => `${id}:text`

const selectField = ({ multiple, options, text }: Choice): ElicitationPropertySchema => {
  const all = options.map(({ description, id, label }) => ({
    const: id,
    title: label,
    ...(description === undefined ? {} : { description }),
  }))
  return multiple ? { type: "array", title: text, items: { anyOf: all } } : { type: "string", title: text, oneOf: all }
}

const formOf = (question: ChoiceQuestion): FormParams => {
  const properties: Record<string, ElicitationPropertySchema> = {}
  const required: Array<string> = []
  for (const choice of question.questions) {
    const hasOptions = choice.options.length > 0
    if (hasOptions) properties[choice.id] = selectField(choice)
    if (!hasOptions || choice.freeText) {
      const id = hasOptions ? textField(choice.id) : choice.id
      properties[id] = { type: "string", title: hasOptions ? "Or in your own words" : choice.text }
    }
    if (!(hasOptions && choice.freeText)) required.push(choice.id)
  }
  const [first] = question.questions
  return {
    mode: "form",
    message: question.title === "" ? (first?.text ?? "A question") : question.title,
    requestedSchema: { type: "object", properties, required },
    ...(question.call_id === null ? {} : { toolCallId: question.call_id }),
  }
}

const decline = "decline"
const optionId = (id: string): string => `option:${id}`

const choiceParams = (question: ChoiceQuestion, choice: Choice): PermissionParams => ({
  toolCall: { toolCallId: callIdOf(question), title: choice.text, kind: "other", status: "pending" },
  options: [
    ...choice.options.map(({ id, label }) => ({ optionId: optionId(id), name: label, kind: "allow_once" as const })),
    { optionId: decline, name: "Decline", kind: "reject_once" as const },
  ],
})

/** How to put a question to an editor. `forms`: it can show forms. */
export const askOf = (question: QuestionView, directory: Directory, forms: boolean): Ask => {
  if (question.kind === "permission") return { by: "permission", params: permissionParams(question, directory) }
  if (forms) return { by: "form", params: formOf(question) }
  if (question.questions.some(({ options }) => options.length === 0)) return { by: "others" }
  return { by: "choices", params: question.questions.map((choice) => choiceParams(question, choice)) }
}

/** What was chosen among options that {@link askOf} gave, in the order of the questions; null where one was declined or is unknown. */
export const choicesAnswer = (question: ChoiceQuestion, chosen: ReadonlyArray<string>): QuestionAnswer => {
  const answers: Record<string, ChoiceAnswers[string]> = {}
  for (const [index, choice] of question.questions.entries()) {
    const option = choice.options.find(({ id }) => optionId(id) === chosen[index])
    if (option === undefined) return "reject_once"
    answers[choice.id] = { selected: [option.id], text: null }
  }
  return answers
}

/** The answer that an option of a permission stands for, or null where there is no such option. */
export const permissionAnswer = (option: string): PermissionAnswer | null =>
  PermissionAnswer.literals.find((literal) => literal === option) ?? null

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return value === "" ? [] : [value]
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : []
}

/** What a form came back with. Anything but an acceptance declines. */
export const formAnswer = (question: ChoiceQuestion, response: CreateElicitationResponse): QuestionAnswer => {
  const { action, content } = response as { readonly action: unknown; readonly content?: unknown }
  if (action !== "accept" || !isRecord(content)) return "reject_once"
  const answers: Record<string, ChoiceAnswers[string]> = {}
  for (const choice of question.questions) {
    const given = textsOf(content[choice.id])
    const own = choice.options.length === 0 ? given : textsOf(content[textField(choice.id)])
    const text = own[0]?.trim() ?? ""
    answers[choice.id] = { selected: choice.options.length === 0 ? [] : given, text: text === "" ? null : text }
  }
  return answers
}
