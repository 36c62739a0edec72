/**
 * The answer of a run that was to give a value: what its last accepted call gave, else words that are JSON and fit. Pure.
 */
import type { Json } from "../../domain/json.ts"
import { jsonAnswer } from "../../domain/structured-output.ts"

/** Faults of a value against the wanted schema; none where it fits. */
export type Check = (value: Json) => ReadonlyArray<string>

export type Valued =
  | { readonly type: "value"; readonly value: Json }
  | { readonly type: "none"; readonly message: string }

/** `given` is what a call gave (undefined: none did), `answer` the words at the end. */
export const valuedOf = (given: Json | undefined, answer: string, check: Check): Valued => {
  const value = given ?? jsonAnswer(answer)
  if (value === undefined)
    return { type: "none", message: "the model gave no value that fits the schema: it answered in words" }
  const faults = check(value)
  if (faults.length === 0) return { type: "value", value }
  return { type: "none", message: `the model gave no value that fits the schema: ${faults.slice(0, 5).join("; ")}` }
}
