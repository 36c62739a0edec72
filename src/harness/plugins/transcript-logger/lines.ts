/**
 * Entries and ends of runs as lines of a transcript. Pure.
 */
import type { Entry } from "../../../domain/entry.ts"
import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts"
import { mapTexts, redactText } from "../../../domain/redact.ts"

export interface LineOptions {
  readonly secrets: ReadonlyArray<string>
  /** Characters of one text; the rest is left out. */
  readonly maxTextChars: number
}

/** Images are named, not kept: they are in the database. */
const withoutImages = (value: Json): Json => {
  if (value === null || typeof value !== "object") return value
  if (Array.isArray(value)) return value.map(withoutImages)
  if (!isJsonObject(value)) return value
  if (value.type === "image" && typeof value.data === "string") {
    return { type: "image", mediaType: value.mediaType ?? null, base64Chars: value.data.length }
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutImages(item)]))
}

const shorten = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most)}[… ${text.length - most} more characters]`

/** One line without its end. Secrets are taken out before a text is cut, so that none is cut in two. */
export const lineOf = (value: JsonObject, { maxTextChars, secrets }: LineOptions): string =>
  JSON.stringify(mapTexts(withoutImages(value), (text) => shorten(redactText(text, secrets), maxTextChars)))

/** An entry; `model` has its messages. */
export const entryLine = (entry: Entry): JsonObject => ({
  type: "entry",
  id: entry.id,
  kind: entry.kind,
  at: new Date(entry.createdAt).toISOString(),
  task: entry.task,
  ...(entry.head === null ? {} : { head: entry.head }),
  // Messages of entries are JSON by their schema.
  model: entry.model as unknown as Json,
  ...(entry.edits.length === 0 ? {} : { edits: entry.edits as unknown as Json }), // as above
  ...(entry.data === null ? {} : { data: entry.data }),
})
