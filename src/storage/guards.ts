/**
 * Fast structural checks of what the hot columns hold. A value that passes is valid under its schema and equal to what the schema
 * decodes (a property test says so); one that does not is judged by the schema, slowly, which also words the error.
 */
import type { ContextEdit } from "../domain/entry.ts"
import { isRecord } from "../domain/json.ts"
import type { Message } from "../domain/message.ts"

type Fields = Readonly<Record<string, unknown>>

const isText = (value: unknown): value is string => typeof value === "string"

/** No other keys than these: the schema would drop them. */
const only = (value: Fields, keys: ReadonlySet<string>): boolean => {
  for (const key in value) if (!keys.has(key)) return false
  return true
}

const optional = (value: Fields, key: string, check: (field: unknown) => boolean): boolean =>
  !(key in value) || check(value[key])

const keys = (...names: ReadonlyArray<string>): ReadonlySet<string> => new Set(names)
const textKeys = keys("type", "text")
const imageKeys = keys("type", "mediaType", "data")
const thinkingKeys = keys("type", "text", "signature", "redacted", "meta")
const callKeys = keys("type", "id", "name", "arguments", "meta")
const userKeys = keys("role", "content")
const assistantKeys = keys("role", "content", "model", "stopReason", "usage", "error")
const toolKeys = keys("role", "callId", "toolName", "content", "isError", "details")
const usageKeys = keys("input", "output", "cacheRead", "cacheWrite", "reasoning")
const stopReasons = keys("stop", "length", "tool_calls", "content_filter", "aborted", "error", "deferred")
const omitKeys = keys("type", "entry")

const isUserPart = (part: unknown): boolean => {
  if (!isRecord(part)) return false
  if (part.type === "text") return isText(part.text) && only(part, textKeys)
  if (part.type === "image") return isText(part.mediaType) && isText(part.data) && only(part, imageKeys)
  return false
}

const isAssistantPart = (part: unknown): boolean => {
  if (!isRecord(part)) return false
  switch (part.type) {
    case "text":
      return isText(part.text) && only(part, textKeys)
    case "thinking":
      return (
        isText(part.text) &&
        optional(part, "signature", isText) &&
        optional(part, "redacted", isText) &&
        optional(part, "meta", isRecord) &&
        only(part, thinkingKeys)
      )
    case "toolCall":
      return (
        isText(part.id) &&
        isText(part.name) &&
        isRecord(part.arguments) &&
        optional(part, "meta", isRecord) &&
        only(part, callKeys)
      )
    default:
      return false
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const isUsage = (value: unknown): boolean =>
  isRecord(value) &&
  isCount(value.input) &&
  isCount(value.output) &&
  isCount(value.cacheRead) &&
  isCount(value.cacheWrite) &&
  isCount(value.reasoning) &&
  only(value, usageKeys)

const all = (value: unknown, check: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(check)

/** User, assistant and tool messages; system messages are rare and always go to the schema. */
const isMessage = (value: unknown): boolean => {
  if (!isRecord(value)) return false
  switch (value.role) {
    case "user":
      return all(value.content, isUserPart) && only(value, userKeys)
    case "assistant":
      return (
        all(value.content, isAssistantPart) &&
        isText(value.model) &&
        isText(value.stopReason) &&
        stopReasons.has(value.stopReason) &&
        optional(value, "usage", isUsage) &&
        optional(value, "error", isText) &&
        only(value, assistantKeys)
      )
    case "tool":
      return (
        isText(value.callId) &&
        isText(value.toolName) &&
        all(value.content, isUserPart) &&
        typeof value.isError === "boolean" &&
        only(value, toolKeys)
      )
    default:
      return false
  }
}

/** The parsed `model` column of an entry. */
export const areMessages = (value: unknown): value is ReadonlyArray<Message> => all(value, isMessage)

/** The parsed `edits` column of an entry; only `omit` edits pass. */
export const areEdits = (value: unknown): value is ReadonlyArray<ContextEdit> =>
  all(value, (edit) => isRecord(edit) && edit.type === "omit" && isId(edit.entry) && only(edit, omitKeys))

/** A record id. */
export const isId = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0
