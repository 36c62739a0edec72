/**
 * The JSON Schema side of a tool's arguments: what providers are sent, what a wrong argument is told, and the few repairs that models
 * need. Pure.
 */
import { JSONSchema, type Schema } from "effect"
import { isJsonObject, type Json, type JsonObject } from "../domain/json.ts"

/** Puts `#/$defs/X` in place, one level of siblings winning over the definition; recursive definitions stay references. */
const inline = (node: Json, defs: JsonObject, open: ReadonlyArray<string>): Json => {
  if (Array.isArray(node)) return node.map((item: Json) => inline(item, defs, open))
  if (!isJsonObject(node)) return node
  const reference = node.$ref
  if (typeof reference === "string") {
    const name = reference.slice("#/$defs/".length)
    const target = defs[name]
    if (target === undefined || open.includes(name)) return node
    const { $ref: _, ...siblings } = node
    return inline({ ...(target as JsonObject), ...siblings }, defs, [...open, name])
  }
  const out: Record<string, Json> = {}
  // Titles are the names of Effect's filters ("between(1, 10)"): noise for a model.
  for (const [key, value] of Object.entries(node)) {
    if (key === "title" && typeof value === "string") continue
    out[key] = inline(value, defs, open)
  }
  return out
}

/** The JSON Schema object of an arguments schema, without `$schema` and with definitions inlined. */
export const parametersOf = <A, I>(schema: Schema.Schema<A, I>): JsonObject => {
  const { $schema: _, $defs, ...root } = JSON.parse(JSON.stringify(JSONSchema.make(schema))) as Record<string, Json>
  // Effect describes an empty struct as any object or array.
  if (root.anyOf !== undefined && root.type === undefined)
    return { type: "object", properties: {}, additionalProperties: false }
  const inlined = inline(root, isJsonObject($defs) ? $defs : {}, [])
  if (!isJsonObject(inlined) || inlined.type !== "object") {
    throw new TypeError("tool parameters: expected the schema of an object")
  }
  return JSON.stringify(inlined).includes('"$ref"') && $defs !== undefined ? { ...inlined, $defs } : inlined
}

/** The subschema at a path of property names and array indices. */
const at = (schema: Json | undefined, path: ReadonlyArray<PropertyKey>): Json | undefined => {
  let node = schema
  for (const step of path) {
    if (!isJsonObject(node)) return undefined
    const properties = node.properties
    node = typeof step === "number" ? node.items : isJsonObject(properties) ? properties[String(step)] : undefined
  }
  return node
}

const numeric = (noun: string, schema: JsonObject): string => {
  const from = schema.minimum ?? schema.exclusiveMinimum
  const to = schema.maximum ?? schema.exclusiveMaximum
  if (from !== undefined && to !== undefined) return `${noun} from ${from} to ${to}`
  if (from !== undefined) return `${noun} of at least ${from}`
  return to === undefined ? noun : `${noun} of at most ${to}`
}

/** What a subschema wants, in words: `an integer from 1 to 2000`. */
const describeSchema = (schema: Json | undefined): string => {
  if (!isJsonObject(schema)) return "another value"
  const options = schema.anyOf
  if (Array.isArray(options)) return options.map(describeSchema).join(" or ")
  const values = schema.enum
  if (Array.isArray(values)) {
    const list = values.map((value: Json) => JSON.stringify(value)).join(", ")
    return values.length === 1 ? list : `one of ${list}`
  }
  switch (schema.type) {
    case "string":
      return schema.minLength === undefined ? "a string" : "a non-empty string"
    case "integer":
      return numeric("an integer", schema)
    case "number":
      return numeric("a number", schema)
    case "boolean":
      return "true or false"
    case "array": {
      const least = schema.minItems
      return least === undefined ? "an array" : `an array of at least ${least} item${least === 1 ? "" : "s"}`
    }
    case "object":
      return "an object"
    default:
      return "another value"
  }
}

/** {@link describeSchema} of the field at `path`. */
export const expectedAt = (parameters: JsonObject, path: ReadonlyArray<PropertyKey>): string =>
  describeSchema(at(parameters, path))

/** The property names that an object at `path` may have. */
export const namesAt = (parameters: JsonObject, path: ReadonlyArray<PropertyKey>): ReadonlyArray<string> => {
  const node = at(parameters, path)
  const properties = isJsonObject(node) ? node.properties : undefined
  return isJsonObject(properties) ? Object.keys(properties) : []
}

const repair = (value: Json, schema: Json | undefined): Json => {
  if (!isJsonObject(schema)) return value
  const type = schema.type
  if (typeof value === "string") {
    if ((type === "integer" || type === "number") && /^-?\d+(\.\d+)?$/.test(value)) return Number(value)
    if (type === "boolean" && (value === "true" || value === "false")) return value === "true"
    if ((type === "array" && value.startsWith("[")) || (type === "object" && value.startsWith("{"))) {
      try {
        return repair(JSON.parse(value) as Json, schema)
      } catch {
        return value
      }
    }
    return value
  }
  if (Array.isArray(value)) return value.map((item: Json) => repair(item, schema.items))
  return isJsonObject(value) ? repairArguments(value, schema) : value
}

/**
 * Repairs what models commonly get wrong and nothing else: null for an absent optional field, numbers and booleans as strings, an array
 * or object as its JSON text. A value that no rule fits stays, and validation names it.
 */
export const repairArguments = (args: JsonObject, parameters: JsonObject): JsonObject => {
  const properties = parameters.properties
  if (!isJsonObject(properties)) return args
  const required = Array.isArray(parameters.required) ? parameters.required : []
  const out: Record<string, Json> = {}
  for (const [key, value] of Object.entries(args)) {
    if (value === null && properties[key] !== undefined && !required.includes(key)) continue
    out[key] = repair(value, properties[key])
  }
  return out
}
