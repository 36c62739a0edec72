/**
 * The body of `POST /v1/chat/completions`. Pure. What it says about sampling, tools and further choices is taken and has no effect
 * (docs/openai.md); what it says about the conversation has to be right.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { AssistantPart, Message } from "../../domain/message.ts"
import { shown } from "../../domain/shown.ts"
import { contentOf, wordsOf } from "./content.ts"
import { asFields, asList, asText, type Fields, optionalFields, optionalFlag } from "./fields.ts"
import { schemaOf } from "./format.ts"
import { argumentsOf, History } from "./history.ts"
import { wrong } from "./problems.ts"
import { type Asked, header, keyOf, modelOf, modeOf, placeOf } from "./request.ts"

export interface ChatAsked extends Asked {
  /** Tokens are wanted at the end of the stream. */
  readonly includeUsage: boolean
}

const systemRoles = new Set(["system", "developer"])
const roles = ["system", "developer", "user", "assistant", "tool", "function"]

const roleOf = (message: Fields, path: string): string => {
  const { role } = message
  if (typeof role === "string" && roles.includes(role)) return role
  throw wrong(`${path}.role`, `one of ${roles.slice(0, -1).join(", ")}`, shown(role))
}

const assistantParts = (message: Fields, path: string): ReadonlyArray<AssistantPart> => {
  const words = wordsOf(message.content, `${path}.content`)
  const calls =
    message.tool_calls === undefined || message.tool_calls === null
      ? []
      : asList(message.tool_calls, `${path}.tool_calls`)
  return [
    ...(words === "" ? [] : [{ type: "text", text: words } as const]),
    ...calls.map((value, at) => {
      const call = asFields(value, `${path}.tool_calls.${at}`)
      const asked = asFields(call.function, `${path}.tool_calls.${at}.function`)
      return {
        type: "toolCall" as const,
        id: asText(call.id, `${path}.tool_calls.${at}.id`),
        name: asText(asked.name, `${path}.tool_calls.${at}.function.name`),
        arguments: argumentsOf(asText(asked.arguments, `${path}.tool_calls.${at}.function.arguments`)),
      }
    }),
  ]
}

/** The messages before the input, those of the system left out: they are the instructions. */
const historyOf = (
  messages: ReadonlyArray<{ readonly role: string; readonly message: Fields; readonly path: string }>,
) => {
  const history = new History()
  for (const { message, path, role } of messages) {
    if (role === "user") history.user(contentOf(message.content, `${path}.content`))
    else if (role === "assistant") history.assistant(assistantParts(message, path))
    else if (role === "tool") {
      history.result(
        asText(message.tool_call_id, `${path}.tool_call_id`),
        contentOf(message.content ?? "", `${path}.content`),
      )
    }
  }
  return history.messages
}

/** OpenCode asks for titles and summaries under the session's id, and only these requests of it offer no tools. */
const isAside = (headers: IncomingHttpHeaders, body: Fields): boolean =>
  (header(headers, "user-agent") ?? "").startsWith("opencode/") && !Array.isArray(body.tools)

/** Throws `InvalidRequest`. */
export const readChat = (value: unknown, headers: IncomingHttpHeaders): ChatAsked => {
  const body = asFields(value, "body")
  const model = modelOf(body)
  const all = asList(body.messages, "messages").map((given, at) => {
    const path = `messages.${at}`
    const message = asFields(given, path)
    return { message, path, role: roleOf(message, path) }
  })
  const last = all.findLastIndex(({ role }) => role === "user")
  const input = all[last]
  if (input === undefined)
    throw wrong("messages", "a message of the user", all.length === 0 ? "none" : "none of the user")
  const content = contentOf(input.message.content, `${input.path}.content`)
  if (content.length === 0) throw wrong(`${input.path}.content`, "some text or an image", shown(input.message.content))
  const system = all
    .filter(({ role }) => systemRoles.has(role))
    .map(({ message, path }) => wordsOf(message.content, `${path}.content`))
    .filter((words) => words.trim() !== "")
  const options = optionalFields(body.stream_options, "stream_options") ?? {}
  const before: () => ReadonlyArray<Message> = () => historyOf(all.slice(0, last))
  return {
    model,
    stream: optionalFlag(body.stream, "stream") ?? false,
    includeUsage: optionalFlag(options.include_usage, "stream_options.include_usage") ?? false,
    aside: isAside(headers, body),
    place: placeOf(headers, body),
    mode: modeOf(headers, body),
    content,
    instructions: system.length === 0 ? null : system.join("\n\n"),
    instructsEach: false,
    history: before,
    schema: schemaOf(body.response_format, "response_format"),
    schemaParam: "response_format",
    key: keyOf(headers),
  }
}
