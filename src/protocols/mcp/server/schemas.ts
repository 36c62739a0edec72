/**
 * Arguments of tools and prompts as the official server package takes them: a JSON Schema for the listing, and a check. The arguments of
 * direct calls are not checked here: the conversation does that, with messages that a model can act on.
 */
import type { StandardSchemaWithJSON } from "@modelcontextprotocol/server"
import { isJsonObject, isRecord, type JsonObject } from "../../../domain/json.ts"
import { shown } from "../../../domain/shown.ts"

type Check<A> = (
  value: unknown,
) => { readonly value: A } | { readonly issues: ReadonlyArray<{ readonly message: string }> }

const schemaOf = <A>(json: JsonObject, validate: Check<A>): StandardSchemaWithJSON<A, A> => {
  const schema = () => ({ ...json })
  return { "~standard": { version: 1, vendor: "super-pi", validate, jsonSchema: { input: schema, output: schema } } }
}

/** Any object; what is listed is `parameters`. */
export const anyArguments = (parameters: JsonObject): StandardSchemaWithJSON<JsonObject, JsonObject> =>
  schemaOf(parameters, (value) =>
    isRecord(value) && isJsonObject(value)
      ? { value }
      : { issues: [{ message: `arguments: expected an object, got ${shown(value)}` }] },
  )

/** Texts by name; `required` ones must be there and say something. */
export const textArguments = <Name extends string>(
  fields: Readonly<Record<Name, { readonly description: string; readonly required: boolean }>>,
): StandardSchemaWithJSON<Partial<Record<Name, string>>, Partial<Record<Name, string>>> => {
  const names = Object.keys(fields) as Array<Name>
  const json: JsonObject = {
    type: "object",
    properties: Object.fromEntries(
      names.map((name) => [name, { type: "string", description: fields[name].description }] as const),
    ),
    required: names.filter((name) => fields[name].required),
    additionalProperties: false,
  }
  return schemaOf(json, (value) => {
    if (!isRecord(value)) return { issues: [{ message: `arguments: expected an object, got ${shown(value)}` }] }
    const unknown = Object.keys(value).filter((name) => !(names as ReadonlyArray<string>).includes(name))
    const faults = [
      ...unknown.map((name) => `${name}: expected one of ${names.join(", ")}, got an unknown field`),
      ...names.flatMap((name) => {
        const given = value[name]
        if (given === undefined) return fields[name].required ? [`${name}: expected a text, got nothing`] : []
        if (typeof given !== "string") return [`${name}: expected a text, got ${shown(given)}`]
        return fields[name].required && given.trim() === ""
          ? [`${name}: expected a text that is not empty, got ""`]
          : []
      }),
    ]
    if (faults.length > 0) return { issues: faults.map((message) => ({ message })) }
    return { value: value as Partial<Record<Name, string>> }
  })
}
