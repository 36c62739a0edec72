/**
 * `--json-schema`: reads and checks the schema, and finds what a run gave as a value that fits it.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { Failure } from "../domain/failure.ts"
import { isJsonObject, type Json, type JsonObject } from "../domain/json.ts"
import { jsonFaultAt, lineAndColumn } from "../domain/json-fault.ts"
import { jsonAnswer, outputOutcome } from "../domain/structured-output.ts"
import { usageFailure } from "./exit.ts"
import type { Outcome } from "./prompt-run.ts"

const flag = "--json-schema"

/** The text of a schema and where it comes from. */
const sourceOf = (given: string): { readonly name: string; readonly text: string } => {
  if (given.trimStart().startsWith("{")) return { name: flag, text: given }
  try {
    return { name: given, text: readFileSync(given, "utf8") }
  } catch (error) {
    const why = error instanceof Error && "code" in error && error.code === "ENOENT" ? "there is none" : String(error)
    throw usageFailure(`${flag}: expected a file with a JSON Schema, or the schema itself as JSON: ${given}: ${why}`)
  }
}

/** The schema that the flag gives: a file, or JSON that begins with `{`. Throws a wrong command line that names the place. */
export const readJsonSchema = async (given: string): Promise<JsonObject> => {
  const { name, text } = sourceOf(given)
  const fault = jsonFaultAt(text)
  if (fault !== null) {
    const { column, line } = lineAndColumn(text, fault)
    throw usageFailure(
      `${name}:${line}:${column}: expected JSON, got ${fault >= text.length ? "its end" : "something else"}`,
    )
  }
  const schema = JSON.parse(text) as Json
  if (!isJsonObject(schema)) {
    throw usageFailure(`${name}: expected a JSON Schema object, got ${JSON.stringify(schema).slice(0, 60)}`)
  }
  const { validator } = await import("../harness/plugins/structured-output/validator.ts")
  const checked = await Effect.runPromise(Effect.either(validator(schema)))
  if (checked._tag === "Left") throw usageFailure(`${name}: ${checked.left.message}`)
  return schema
}

/** What came of a run that was to give a value: the value, or why there is none. */
export type Structured =
  | { readonly value: Json; readonly error: null }
  | { readonly value: null; readonly error: string }

/** Read off the transcript of the run. */
export const structuredOf = (
  sessions: SessionsService,
  schema: JsonObject,
  { settled }: Outcome,
): Effect.Effect<Structured, Failure> =>
  Effect.gen(function* () {
    const entries = yield* sessions.transcript({ conversationId: settled.conversation_id })
    const found = outputOutcome(entries, settled.placed_entry_id)
    const { validator } = yield* Effect.promise(() => import("../harness/plugins/structured-output/validator.ts"))
    const check = yield* Effect.orDie(validator(schema))
    if (found.type === "value") {
      const faults = check(found.value)
      return faults.length === 0 ? { value: found.value, error: null } : refused(faults)
    }
    const value = found.type === "none" ? jsonAnswer(found.text) : undefined
    if (value === undefined) return refused(found.type === "refused" ? found.errors : ["the model answered in words"])
    const faults = check(value)
    return faults.length === 0 ? { value, error: null } : refused(faults)
  })

const refused = (faults: ReadonlyArray<string>): Structured => ({
  value: null,
  error: `the model gave no value that fits the schema: ${faults.join("; ")}`,
})
