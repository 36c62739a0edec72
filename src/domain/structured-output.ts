/**
 * What a run gave as structured output, read off its transcript: the value of the last accepted call, else why there is none. It is there
 * for every reader, also after a crash and from another process: a result has `details.value`, or `details.errors`. Pure.
 */
import type { Entry } from "./entry.ts"
import type { EntryId } from "./ids.ts"
import { isJsonObject, type Json } from "./json.ts"
import { type ToolResultMessage, textOf } from "./message.ts"

export const toolName = "structured_output"

export type OutputOutcome =
  | { readonly type: "value"; readonly value: Json }
  /** The last call was not accepted. */
  | { readonly type: "refused"; readonly errors: ReadonlyArray<string> }
  /** There was no call. `text` is the last answer's, which may be the value as JSON. */
  | { readonly type: "none"; readonly text: string }

const errorsOf = ({ content, details }: ToolResultMessage): ReadonlyArray<string> => {
  const errors = isJsonObject(details) ? details.errors : undefined
  if (Array.isArray(errors)) return errors.map(String)
  return textOf(content).split("\n").slice(0, 20)
}

/** The entries that count: those of the run behind the last input of a person. */
export const entriesOfRun = <E extends Pick<Entry, "kind" | "model">>(
  entries: ReadonlyArray<E>,
  continues: string,
): ReadonlyArray<E> => {
  const input = entries.findLastIndex(
    (entry) => entry.kind !== continues && entry.model.some((message) => message.role === "user"),
  )
  return entries.slice(input + 1)
}

export const outputOutcome = (
  entries: ReadonlyArray<Pick<Entry, "id" | "model">>,
  after: EntryId | null = null,
): OutputOutcome => {
  let refused: ReadonlyArray<string> | null = null
  let value: { readonly value: Json } | null = null
  let text = ""
  for (const { id, model } of entries) {
    if (after !== null && id <= after) continue
    for (const message of model) {
      if (message.role === "assistant") text = textOf(message.content)
      if (message.role !== "tool" || message.toolName !== toolName) continue
      if (message.isError) refused = errorsOf(message)
      else if (isJsonObject(message.details) && message.details.value !== undefined)
        value = { value: message.details.value }
    }
  }
  if (value !== null) return { type: "value", value: value.value }
  return refused === null ? { type: "none", text } : { type: "refused", errors: refused }
}

/** How many calls of these were not accepted. */
export const refusals = (entries: ReadonlyArray<Pick<Entry, "model">>): number =>
  entries
    .flatMap((entry) => entry.model)
    .filter((one) => one.role === "tool" && one.toolName === toolName && one.isError).length

/** An answer that is JSON as it stands, or in one fenced block; undefined where it is not. */
export const jsonAnswer = (text: string): Json | undefined => {
  const fenced = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1]
  try {
    return JSON.parse(fenced ?? text) as Json
  } catch {
    return undefined
  }
}
