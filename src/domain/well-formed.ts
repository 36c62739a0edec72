/**
 * Message parts as every service accepts them: well-formed text, plain JSON, usable names. Each function returns its input, the same
 * reference, where nothing is wrong with it, whatever the input is.
 */
import { isRecord, type Json, type JsonObject } from "./json.ts"
import type { ImagePart, SystemMessage, ToolSpec, UserPart } from "./message.ts"

/** Tells of one repair, as a short line for the log. */
export type Note = (what: string) => void

/** An array's items, or none where it is no array. */
export const itemsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const loneSurrogate = /\p{Cs}/u
const loneSurrogates = /\p{Cs}/gu

/** Text without lone surrogates: each becomes U+FFFD. */
export const wellFormed = (text: string, note: Note): string => {
  if (!loneSurrogate.test(text)) return text
  note("lone surrogate replaced")
  return text.replace(loneSurrogates, "\ufffd")
}

/** Nesting beyond which a value is cut; no service takes more. */
const deepest = 100

/** A value as JSON: lone surrogates replaced, what JSON has no word for becomes null. */
export const cleanJson = (value: unknown, note: Note, depth = 0): Json => {
  if (value === null || typeof value === "boolean") return value
  if (typeof value === "string") return wellFormed(value, note)
  if (typeof value === "number" && Number.isFinite(value)) return value
  if (typeof value === "object" && depth < deepest) {
    if (Array.isArray(value)) {
      const items = value.map((item) => cleanJson(item, note, depth + 1))
      return items.every((item, i) => Object.is(item, value[i])) ? (value as ReadonlyArray<Json>) : items
    }
    const entries = Object.entries(value).map(
      ([key, item]) => [wellFormed(key, note), cleanJson(item, note, depth + 1)] as const,
    )
    const same = Object.entries(value).every(
      ([key, item], i) => entries[i]?.[0] === key && Object.is(entries[i]?.[1], item),
    )
    const plain = Object.getPrototypeOf(value) === Object.prototype
    return same && plain ? (value as JsonObject) : Object.fromEntries(entries)
  }
  note("value that is no JSON replaced by null")
  return null
}

/** The arguments of a call: an object; a string that holds one is read. */
export const cleanArguments = (value: unknown, note: Note): JsonObject => {
  const known = isRecord(value) ? value : parsed(value)
  if (known !== value) note("call arguments made an object")
  const cleaned = cleanJson(known, note)
  return isRecord(cleaned) ? (cleaned as JsonObject) : {}
}

const parsed = (value: unknown): Readonly<Record<string, unknown>> => {
  if (typeof value !== "string") return {}
  try {
    const inner: unknown = JSON.parse(value)
    return isRecord(inner) ? inner : {}
  } catch {
    return {}
  }
}

const image = /^image\/(png|jpeg|gif|webp)$/
const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/** An image that a service can show, or null. */
const cleanImage = (part: Readonly<Record<string, unknown>>): ImagePart | null => {
  const { mediaType, data } = part
  if (typeof mediaType !== "string" || !image.test(mediaType)) return null
  if (typeof data !== "string" || data.length % 4 !== 0 || !base64.test(data)) return null
  return part as unknown as ImagePart // every field was just checked
}

/** The parts of a user message or tool result that can be sent: texts with something to read, and images. */
export const cleanUserParts = (content: unknown, note: Note): ReadonlyArray<UserPart> => {
  const raw: ReadonlyArray<unknown> = typeof content === "string" ? [{ type: "text", text: content }] : itemsOf(content)
  if (raw !== content) note("content made a list of parts")
  const parts = raw.flatMap((part): ReadonlyArray<UserPart> => {
    if (isRecord(part) && part.type === "text" && typeof part.text === "string") {
      const text = wellFormed(part.text, note)
      if (text.trim() === "") {
        note("empty text part dropped")
        return []
      }
      return text === part.text ? [part as UserPart] : [{ type: "text", text }]
    }
    if (isRecord(part) && part.type === "image") {
      const shown = cleanImage(part)
      if (shown !== null) return [shown]
      note("unusable image replaced by a note")
      return [{ type: "text", text: "[image left out: it cannot be shown]" }]
    }
    note("unknown part dropped")
    return []
  })
  return sameItems(parts, content) ? (content as ReadonlyArray<UserPart>) : parts
}

/** Whether a list has exactly the items of another value, which may be anything. */
export const sameItems = (items: ReadonlyArray<unknown>, original: unknown): boolean =>
  Array.isArray(original) && original.length === items.length && items.every((item, i) => item === original[i])

/** A tool name that fits, or one made from it. */
export const cleanName = (name: unknown, valid: RegExp, note: Note): string => {
  if (typeof name === "string" && valid.test(name)) return name
  note("tool name made valid")
  const kept = typeof name === "string" ? name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 60) : ""
  const fitting = /^[a-zA-Z_]/.test(kept) ? kept : `_${kept}`
  return fitting === "_" ? "unknown_tool" : fitting
}

const cleanTool = (tool: unknown, validName: RegExp, note: Note): ReadonlyArray<ToolSpec> => {
  if (!isRecord(tool) || typeof tool.name !== "string" || !validName.test(tool.name) || !isRecord(tool.parameters)) {
    note("unusable tool dropped")
    return []
  }
  const name = tool.name
  const description = wellFormed(typeof tool.description === "string" ? tool.description : "", note)
  const parameters = cleanJson(tool.parameters, note) as JsonObject
  const same = description === tool.description && parameters === tool.parameters
  return same ? [tool as ToolSpec] : [{ name, description, parameters }]
}

/** A system message whose sections and tools can be used. */
export const cleanSystem = (
  message: Readonly<Record<string, unknown>>,
  toolName: RegExp,
  note: Note,
): SystemMessage => {
  const sections = itemsOf(message.sections).flatMap((section): SystemMessage["sections"] => {
    if (!isRecord(section) || typeof section.name !== "string") return []
    const { text } = section
    if (text !== null && typeof text !== "string") return []
    const name = wellFormed(section.name, note)
    const fine = text === null ? null : wellFormed(text, note)
    return name === section.name && fine === text
      ? [section as SystemMessage["sections"][number]]
      : [{ name, text: fine }]
  })
  const addTools = itemsOf(message.addTools).flatMap((tool) => cleanTool(tool, toolName, note))
  const removeTools = itemsOf(message.removeTools).flatMap((name) =>
    typeof name === "string" ? [wellFormed(name, note)] : [],
  )
  if (
    sameItems(sections, message.sections) &&
    sameItems(addTools, message.addTools) &&
    sameItems(removeTools, message.removeTools)
  ) {
    return message as unknown as SystemMessage // its fields were just checked
  }
  note("system message made usable")
  return { role: "system", sections, addTools, removeTools }
}
