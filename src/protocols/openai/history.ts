/**
 * What a client says came before, as messages of ours: the history that the first request of a session brings. Whatever no model would
 * accept is mended or left out, as clients send what they have. Pure.
 */
import { cleanAssistant, cleanMessage } from "../../domain/clean-message.ts"
import { isJsonObject, type Json, type JsonObject } from "../../domain/json.ts"
import type { AssistantPart, Message, UserPart } from "../../domain/message.ts"
import { validityRules } from "../../domain/validity.ts"

/** Who wrote the answers of a history: no model of ours. */
const author = "client"

const { toolName } = validityRules.strict
const ignore = (): void => undefined

/** The arguments of a call, as the wire carries them: JSON of an object. Anything else is kept as the one argument `input`. */
export const argumentsOf = (text: string): JsonObject => {
  try {
    const value = JSON.parse(text) as Json
    if (isJsonObject(value)) return value
  } catch {
    // Kept as text, below.
  }
  return text.trim() === "" ? {} : { input: text }
}

/** Collects messages in order. */
export class History {
  readonly messages: Array<Message> = []
  private readonly ids = new Set<string>()
  /** The id and name under which a call is kept, by the id that the client gave it. */
  private readonly calls = new Map<string, { readonly id: string; readonly name: string }>()

  user(content: ReadonlyArray<UserPart>): void {
    const message = cleanMessage({ role: "user", content }, toolName, ignore)
    if (message !== null) this.messages.push(message)
  }

  assistant(content: ReadonlyArray<AssistantPart>): void {
    const calling = content.some((part) => part.type === "toolCall")
    const stopReason = calling ? "tool_calls" : "stop"
    const cleaned = cleanAssistant(
      { role: "assistant", content, model: author, stopReason },
      toolName,
      this.ids,
      ignore,
    )
    if (cleaned === null) return
    for (const { call, stored } of cleaned.calls) this.calls.set(stored, { id: call.id, name: call.name })
    this.messages.push(cleaned.message)
  }

  /** The result of a call; one of a call that is not there is left out. */
  result(callId: string, content: ReadonlyArray<UserPart>): void {
    const call = this.calls.get(callId)
    if (call === undefined) return
    this.calls.delete(callId)
    const message = { role: "tool", callId: call.id, toolName: call.name, content, isError: false }
    const cleaned = cleanMessage(message, toolName, ignore)
    if (cleaned !== null) this.messages.push(cleaned)
  }
}
