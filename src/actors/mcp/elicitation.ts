/**
 * What an MCP server asks the person in the middle of a call (`elicitation/create`), as one of our questions, and the answer as the server
 * expects it. Pure.
 */
import { isRecord } from "../../domain/json.ts"
import type { AskOutcome, Choice, ChoiceAnswers } from "../../domain/question.ts"
import type { ToolQuestion } from "../../tools/tool.ts"
import { boundedJson } from "./bounded-json.ts"

/** The answer to the server. */
export type ElicitationAnswer =
  | {
      readonly action: "accept"
      readonly content?: Readonly<Record<string, string | number | boolean | Array<string>>>
    }
  | { readonly action: "decline" | "cancel" }

/** The option of a field that may be left out. */
const leaveOut = "(leave out)"

/** Fields that one question may have. */
const maxFields = 20

const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null)

/** Options of a field: from `enum` with `enumNames`, or from `oneOf`/`anyOf` of constants. */
const optionsOf = (schema: Readonly<Record<string, unknown>>): Choice["options"] => {
  if (schema.type === "boolean") {
    return [
      { id: "true", label: "Yes" },
      { id: "false", label: "No" },
    ]
  }
  const titled = schema.oneOf ?? schema.anyOf
  if (Array.isArray(titled)) {
    return titled.flatMap((one) => {
      const id = isRecord(one) ? textOf(one.const) : null
      return id === null ? [] : [{ id, label: (isRecord(one) ? textOf(one.title) : null) ?? id }]
    })
  }
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : []
  const values = Array.isArray(schema.enum) ? schema.enum : []
  return values.flatMap((value, index) => {
    const id = textOf(value)
    return id === null ? [] : [{ id, label: textOf(names[index]) ?? id }]
  })
}

const fieldsOf = (schema: unknown): ReadonlyArray<readonly [string, Readonly<Record<string, unknown>>]> => {
  const properties = isRecord(schema) && isRecord(schema.properties) ? schema.properties : {}
  return Object.entries(properties).map(([id, field]) => [id, isRecord(field) ? field : {}])
}

const requiredOf = (schema: unknown): ReadonlySet<unknown> =>
  new Set(isRecord(schema) && Array.isArray(schema.required) ? schema.required : [])

const choiceOf = (id: string, field: Readonly<Record<string, unknown>>, required: boolean): Choice => {
  const multiple = field.type === "array"
  const inner = multiple && isRecord(field.items) ? field.items : field
  const options = optionsOf(inner)
  const words = [textOf(field.title) ?? id, textOf(field.description)].filter((one) => one !== null).join(": ")
  const shown = boundedJson(field.default, 200)
  const given = shown === null ? "" : ` (default ${shown})`
  return {
    id,
    text: `${words}${given}`,
    options: required ? options : [...options, { id: leaveOut, label: "Leave out" }],
    multiple,
    freeText: options.length === 0,
  }
}

/** The question of a request, or null where it cannot be asked. */
export const questionOf = (server: string, params: unknown, key: string): ToolQuestion | null => {
  if (!isRecord(params)) return null
  const title = `${server} asks: ${textOf(params.message) ?? ""}`
  if (params.mode === "url") {
    const url = textOf(params.url)
    if (url === null) return null
    const options = [{ id: "accept", label: "I have opened it" }]
    return { key, title, questions: [{ id: "url", text: `Open ${url}`, options, multiple: false, freeText: false }] }
  }
  const fields = fieldsOf(params.requestedSchema)
  if (fields.some(([id]) => id === "") || fields.length > maxFields) return null
  if (fields.length === 0) {
    const options = [{ id: "accept", label: "Accept" }]
    return { key, title, questions: [{ id: "confirm", text: title, options, multiple: false, freeText: false }] }
  }
  const required = requiredOf(params.requestedSchema)
  return { key, title, questions: fields.map(([id, field]) => choiceOf(id, field, required.has(id))) }
}

const valueOf = (
  field: Readonly<Record<string, unknown>>,
  answer: ChoiceAnswers[string] | undefined,
): string | number | boolean | Array<string> | null | undefined => {
  const selected = answer?.selected.filter((id) => id !== leaveOut) ?? []
  const typed = answer?.text?.trim() ?? ""
  if (field.type === "array") return answer?.selected.includes(leaveOut) === true ? undefined : [...selected]
  const [one = typed] = selected
  if (one === "") return undefined
  if (field.type === "boolean") return one === "true"
  if (field.type !== "number" && field.type !== "integer") return one
  const number = Number(one)
  const fits = Number.isFinite(number) && (field.type === "number" || Number.isInteger(number))
  return fits ? number : null
}

/**
 * What the server is told: an answer accepts, a refusal declines, what ended otherwise cancels. Where nobody can be asked, it is declined; an
 * answer that is no number where one is due cancels, so that the server may ask again.
 */
export const answerOf = (params: unknown, outcome: AskOutcome): ElicitationAnswer => {
  if (outcome.type === "denied" || outcome.type === "nobody") return { action: "decline" }
  if (outcome.type !== "answered") return { action: "cancel" }
  if (!isRecord(params) || params.mode === "url") return { action: "accept" }
  const content: Array<[string, string | number | boolean | Array<string>]> = []
  for (const [id, field] of fieldsOf(params.requestedSchema)) {
    // A server may call its fields as what every object has.
    const value = valueOf(field, Object.hasOwn(outcome.answers, id) ? outcome.answers[id] : undefined)
    if (value === null) return { action: "cancel" }
    if (value !== undefined) content.push([id, value])
  }
  return { action: "accept", content: Object.fromEntries(content) }
}
