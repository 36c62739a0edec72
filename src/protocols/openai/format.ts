/**
 * The wanted form of an answer: words, or JSON (`response_format` of Chat Completions, `text.format` of Responses). Pure.
 */
import type { JsonObject } from "../../domain/json.ts"
import { shown } from "../../domain/shown.ts"
import { asFields, optionalObject } from "./fields.ts"
import { wrong } from "./problems.ts"

/** Any object. */
const anyObject: JsonObject = { type: "object" }

/** The JSON Schema of the answer, or null for words. `path` names the field. */
export const schemaOf = (value: unknown, path: string): JsonObject | null => {
  if (value === undefined || value === null) return null
  const format = asFields(value, path)
  switch (format.type) {
    case "text":
      return null
    case "json_object":
      return anyObject
    case "json_schema": {
      // Chat Completions wraps it in `json_schema`, Responses does not.
      const wrapped = format.json_schema !== undefined
      const at = wrapped ? `${path}.json_schema.schema` : `${path}.schema`
      const given = wrapped ? asFields(format.json_schema, `${path}.json_schema`).schema : format.schema
      return optionalObject(given, at) ?? anyObject
    }
    default:
      throw wrong(`${path}.type`, '"text", "json_object" or "json_schema"', shown(format.type))
  }
}
