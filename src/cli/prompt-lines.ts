/**
 * Input lines of `--input-format stream-json`: `{"prompt": "…", "conversation_id"?: 12}`. Pure.
 */

import { jsonFaultAt, lineAndColumn } from "../domain/json-fault.ts"
import { shown } from "../domain/shown.ts"

/**
 * `conversation`: a number chooses one, "new" begins one (`"conversation_id": null`), "current" goes on with that of the line before.
 */
export type PromptLine =
  | { readonly ok: true; readonly prompt: string; readonly conversation: number | "new" | "current" }
  | { readonly ok: false; readonly error: string }

const wrong = (path: string, expected: string, actual: unknown): PromptLine => ({
  ok: false,
  error: `${path}: expected ${expected}, got ${shown(actual, "…")}`,
})

export const readPromptLine = (line: string): PromptLine => {
  const fault = jsonFaultAt(line)
  if (fault !== null)
    return { ok: false, error: `not JSON at column ${lineAndColumn(line, fault).column}; expected {"prompt": "…"}` }
  const value: unknown = JSON.parse(line)
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong("line", "an object", value)
  const prompt = "prompt" in value ? value.prompt : undefined
  if (typeof prompt !== "string" || prompt.trim() === "") return wrong("prompt", "a text that is not empty", prompt)
  if (!("conversation_id" in value)) return { ok: true, prompt, conversation: "current" }
  const id = value.conversation_id
  if (id === null) return { ok: true, prompt, conversation: "new" }
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 1)
    return wrong("conversation_id", "a positive integer or null", id)
  return { ok: true, prompt, conversation: id }
}
