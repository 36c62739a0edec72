/**
 * The body of `POST /v1/responses`. Pure. The input is the last message of the user, with those right before it; what comes before that is
 * the history of a new conversation.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { JsonObject } from "../../domain/json.ts"
import type { UserPart } from "../../domain/message.ts"
import { shown } from "../../domain/shown.ts"
import { contentOf, wordsOf } from "./content.ts"
import { asFields, asText, type Fields, optionalFields, optionalFlag, optionalObject, optionalText } from "./fields.ts"
import { schemaOf } from "./format.ts"
import { argumentsOf, History } from "./history.ts"
import { wrong } from "./problems.ts"
import { type Asked, keyOf, modelOf, modeOf, placeOf } from "./request.ts"

export interface ResponseAsked extends Asked {
  /** As it was given, for the answer. */
  readonly previous: string | null
  /** Answered at once; the turn goes on without its client. */
  readonly background: boolean
  readonly metadata: JsonObject
  /** The form as it was given, for the answer. */
  readonly format: JsonObject
}

interface Item {
  readonly kind: "system" | "user" | "assistant" | "call" | "result" | "other"
  readonly fields: Fields
  readonly path: string
}

const kinds: Readonly<Record<string, Item["kind"]>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  function_call: "call",
  function_call_output: "result",
  reasoning: "other",
  mcp_call: "other",
}

const itemOf = (value: unknown, path: string): Item => {
  const fields = asFields(value, path)
  const { role, type = "message" } = fields
  const name = type === "message" ? role : type
  const kind = typeof name === "string" && Object.hasOwn(kinds, name) ? kinds[name] : undefined
  if (kind === undefined) {
    const at = type === "message" ? `${path}.role` : `${path}.type`
    const expected =
      type === "message"
        ? "one of system, developer, user, assistant"
        : "message, function_call or function_call_output"
    throw wrong(at, expected, shown(name))
  }
  return { kind, fields, path }
}

const itemsOf = (input: unknown): ReadonlyArray<Item> => {
  if (typeof input === "string") return [{ kind: "user", fields: { content: input }, path: "input" }]
  if (Array.isArray(input)) return input.map((item, at) => itemOf(item, `input.${at}`))
  throw wrong("input", "a string or an array of items", shown(input))
}

const contentIn = ({ fields, path }: Item): ReadonlyArray<UserPart> =>
  contentOf(fields.content, path === "input" ? path : `${path}.content`)

const historyOf = (items: ReadonlyArray<Item>) => {
  const history = new History()
  for (const item of items) {
    const { fields, kind, path } = item
    if (kind === "user") history.user(contentIn(item))
    else if (kind === "assistant") {
      const text = wordsOf(fields.content, `${path}.content`)
      history.assistant(text === "" ? [] : [{ type: "text", text }])
    } else if (kind === "call") {
      const id = asText(fields.call_id, `${path}.call_id`)
      const name = asText(fields.name, `${path}.name`)
      const args = argumentsOf(asText(fields.arguments, `${path}.arguments`))
      history.assistant([{ type: "toolCall", id, name, arguments: args }])
    } else if (kind === "result") {
      history.result(asText(fields.call_id, `${path}.call_id`), contentOf(fields.output ?? "", `${path}.output`))
    }
  }
  return history.messages
}

/** Throws `InvalidRequest`. */
export const readResponse = (value: unknown, headers: IncomingHttpHeaders): ResponseAsked => {
  const body = asFields(value, "body")
  const model = modelOf(body)
  const items = itemsOf(body.input)
  const last = items.findLastIndex(({ kind }) => kind === "user")
  if (last < 0) throw wrong("input", "a message of the user", items.length === 0 ? "none" : "none of the user")
  let first = last
  while (items[first - 1]?.kind === "user") first--
  const content = items.slice(first, last + 1).flatMap(contentIn)
  if (content.length === 0) throw wrong("input", "some text or an image", shown(body.input))
  const own = optionalText(body.instructions, "instructions") ?? ""
  const system = items
    .filter(({ kind }) => kind === "system")
    .map(({ fields, path }) => wordsOf(fields.content, `${path}.content`))
  const instructions = [own, ...system].filter((words) => words.trim() !== "").join("\n\n")
  const text = optionalFields(body.text, "text") ?? {}
  return {
    model,
    stream: optionalFlag(body.stream, "stream") ?? false,
    place: placeOf(headers, body),
    previous: optionalText(body.previous_response_id, "previous_response_id") ?? null,
    background: optionalFlag(body.background, "background") ?? false,
    metadata: optionalObject(body.metadata, "metadata") ?? {},
    format: optionalObject(text.format, "text.format") ?? { type: "text" },
    mode: modeOf(headers, body),
    content,
    instructions: instructions === "" ? null : instructions,
    instructsEach: true,
    history: () => historyOf(items.slice(0, first)),
    schema: schemaOf(text.format, "text.format"),
    schemaParam: "text.format",
    aside: false,
    key: keyOf(headers),
  }
}
