/**
 * A direct call: a tool call that a program asks for itself, as an input of a conversation whose model `direct/call` makes exactly that
 * call and says nothing. So it takes the way of every other call: hooks, permissions, a committed intent, undo.
 *
 * The call is carried beside the text of the input, where nothing that rewrites texts (commands, placeholders) reaches it.
 */
import { isJsonObject, type JsonObject } from "./json.ts"
import type { TextPart, ToolCallPart, UserPart } from "./message.ts"

/** Before the name of every model of this kind. */
const directPrefix = "direct/"

/** The model of conversations that take direct calls only. */
export const directModel = `${directPrefix}call`

/** Whether a name means such a model. */
export const isDirectModel = (model: string): boolean => model.startsWith(directPrefix)

const key = "directCall"

/** The input that asks for a call. `call.id` is unique within the conversation. */
export const directInput = (call: Omit<ToolCallPart, "type" | "meta">): TextPart => {
  const { arguments: args, id, name } = call
  return { type: "text", text: `Direct call of ${name}`, meta: { [key]: { id, name, arguments: args } } }
}

/** The call that a part of an input asks for, or null. */
export const directCallOf = (part: UserPart): ToolCallPart | null => {
  const carried = part.type === "text" ? part.meta?.[key] : undefined
  if (carried === undefined || !isJsonObject(carried)) return null
  const { arguments: args, id, name } = carried
  if (typeof id !== "string" || typeof name !== "string") return null
  const given: JsonObject = args !== undefined && isJsonObject(args) ? args : {}
  return { type: "toolCall", id, name, arguments: given }
}
