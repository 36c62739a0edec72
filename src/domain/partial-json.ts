/**
 * Tool arguments as text: the best-effort view while they stream, and the strict reading at the end.
 */
import { Allow, parse } from "partial-json"
import { isJsonObject, type Json, type JsonObject } from "./json.ts"

/**
 * The value of a JSON text that may stop anywhere: strings are cut, missing fields absent. Null where not even a prefix of JSON
 * is there. For display only; values may be incomplete.
 */
export const parsePartialJson = (text: string): Json | null => {
  if (text.trim() === "") return null
  try {
    return JSON.parse(text) as Json
  } catch {
    // Not whole yet.
  }
  try {
    const value = parse(text, Allow.ALL) as Json
    // The parser takes this key for the prototype; writing and reading again leaves only what an object really holds.
    return text.includes("__proto__") ? (JSON.parse(JSON.stringify(value)) as Json) : value
  } catch {
    return null
  }
}

/** The key under which arguments that are no JSON object travel, with their raw text as the value. */
const unreadable = "__unreadable_arguments"

/** The arguments of a finished call. Text that is no JSON object is kept under one marker key, so that nothing is guessed from it. */
export const parseArguments = (text: string): JsonObject => {
  if (text.trim() === "") return {}
  try {
    const value: unknown = JSON.parse(text)
    // Some services encode the object twice.
    const inner: unknown = typeof value === "string" ? JSON.parse(value) : value
    if (isJsonObject(inner)) return inner
  } catch {
    // Falls through to the marker.
  }
  return { [unreadable]: text }
}

/** The raw text of arguments that were no JSON object, or null for good ones. A call with such arguments must not run. */
export const unreadableArguments = (args: JsonObject): string | null => {
  const text = args[unreadable]
  return typeof text === "string" && Object.keys(args).length === 1 ? text : null
}
