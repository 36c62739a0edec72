/**
 * A schema of answers as the parameters of a tool. Services want an object there, so any other value travels as the field `value`. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts"

export interface OutputParameters {
  /** JSON Schema of an object, for the model. */
  readonly parameters: JsonObject
  /** The answer that arguments carry; undefined where they carry none. */
  readonly valueOf: (args: JsonObject) => Json | undefined
}

/** Where definitions stand that references name. */
const definitions = ["$defs", "definitions"] as const

const describesObject = (schema: JsonObject): boolean =>
  schema.type === "object" || (schema.type === undefined && isJsonObject(schema.properties))

/** Turns references to the schema's own parts to where they stand in the wrapping one. */
const moved = (node: Json): Json => {
  if (Array.isArray(node)) return node.map(moved)
  if (!isJsonObject(node)) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      const own =
        key === "$ref" &&
        typeof value === "string" &&
        (value === "#" || (value.startsWith("#/") && !definitions.some((name) => value.startsWith(`#/${name}/`))))
      return [key, own ? `#/properties/value${String(value).slice(1)}` : moved(value)]
    }),
  )
}

export const outputParameters = (schema: JsonObject): OutputParameters => {
  const { $schema: _, $id: __, ...root } = schema
  if (describesObject(root)) return { parameters: { ...root, type: "object" }, valueOf: (args) => args }
  const shared: Record<string, Json> = {}
  const own: Record<string, Json> = {}
  for (const [key, value] of Object.entries(root)) {
    const target = definitions.some((name) => name === key) ? shared : own
    target[key] = moved(value)
  }
  return {
    parameters: {
      type: "object",
      properties: { value: own },
      required: ["value"],
      additionalProperties: false,
      ...shared,
    },
    valueOf: (args) => args.value,
  }
}
