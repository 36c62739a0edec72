/**
 * Checks values against JSON Schema: drafts 2020-12 (the default), 2019-09 and 7. The validator is loaded when it is first needed.
 */
import type { ErrorObject } from "ajv"
import { Data, Effect } from "effect"
import type { Json, JsonObject } from "../../../domain/json.ts"
import { shown } from "../../../domain/shown.ts"

/** A schema that cannot be used: `detail` says what is wrong with it, one fault a line. */
export class InvalidSchema extends Data.TaggedError("InvalidSchema")<{ readonly detail: string }> {
  override get message() {
    return `not a JSON Schema that can be used: ${this.detail}`
  }
}

/** What is wrong with a value, one line a fault: `path: expected X, got Y`. Empty where it fits. */
export type Validate = (value: Json) => ReadonlyArray<string>

/** Faults told of one value at most. */
const maxFaults = 20

/** `/items/0/price` as `items[0].price`; the root as `value`. */
const pathOf = (pointer: string, more?: string): string => {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
  const all = more === undefined ? steps : [...steps, more]
  if (all.length === 0) return "value"
  return all.reduce(
    (path, step) => (/^\d+$/.test(step) ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`),
    "",
  )
}

/** One fault as a line. */
const lineOf = ({ data, instancePath, keyword, message = "fit", params }: ErrorObject): string => {
  const named = (key: string) => String((params as Record<string, unknown>)[key])
  switch (keyword) {
    case "required":
      return `${pathOf(instancePath, named("missingProperty"))}: expected a value, got nothing`
    case "additionalProperties":
      return `${pathOf(instancePath, named("additionalProperty"))}: expected no such field`
    case "unevaluatedProperties":
      return `${pathOf(instancePath, named("unevaluatedProperty"))}: expected no such field`
    case "type":
      return `${pathOf(instancePath)}: expected ${named("type").replaceAll(",", " or ")}, got ${shown(data)}`
    case "enum":
      return `${pathOf(instancePath)}: expected one of ${shown((params as Record<string, unknown>).allowedValues)}, got ${shown(data)}`
    case "const":
      return `${pathOf(instancePath)}: expected ${shown((params as Record<string, unknown>).allowedValue)}, got ${shown(data)}`
    default:
      return `${pathOf(instancePath)}: expected it to ${message.replace(/^must /, "")}, got ${shown(data)}`
  }
}

const linesOf = (errors: ReadonlyArray<ErrorObject>): ReadonlyArray<string> => {
  const lines = [...new Set(errors.map(lineOf))]
  return lines.length <= maxFaults ? lines : [...lines.slice(0, maxFaults), `and ${lines.length - maxFaults} more`]
}

/** `verbose` gives the value with each error. */
const options = { allErrors: true, strict: false, logger: false, verbose: true } as const

/** The validator of a draft, which `$schema` names. A bundled CommonJS module has a default export and no named ones. */
const loaders = {
  "2020-12": () => import("ajv/dist/2020.js").then((loaded) => new loaded.default.Ajv2020(options)),
  "2019-09": () => import("ajv/dist/2019.js").then((loaded) => new loaded.default.Ajv2019(options)),
  "draft-07": () => import("ajv").then((loaded) => new loaded.default.Ajv(options)),
} as const

const draftOf = (schema: JsonObject): keyof typeof loaders | null | undefined => {
  const { $schema } = schema
  if ($schema === undefined) return undefined
  const said = String($schema)
  return (Object.keys(loaders) as Array<keyof typeof loaders>).find((draft) => said.includes(draft)) ?? null
}

const compile = async (draft: keyof typeof loaders, schema: JsonObject): Promise<Validate> => {
  const ajv = await loaders[draft]()
  const { default: formats } = await import("ajv-formats")
  formats.default(ajv)
  const { $id: _, ...anonymous } = schema
  if (ajv.validateSchema(anonymous) !== true) {
    throw new InvalidSchema({
      detail: linesOf(ajv.errors ?? [])
        .map((line) => line.replace(/^value:/, "schema:"))
        .join("\n"),
    })
  }
  const check = ajv.compile(anonymous)
  return (value) => (check(value) ? [] : linesOf(check.errors ?? []))
}

const compiled = new WeakMap<JsonObject, Promise<Validate>>()

const validatorFor = async (schema: JsonObject): Promise<Validate> => {
  const draft = draftOf(schema)
  if (draft === null) {
    throw new InvalidSchema({
      detail: `$schema: expected one of ${Object.keys(loaders).join(", ")}, got ${shown(schema.$schema)}`,
    })
  }
  if (draft !== undefined) return compile(draft, schema)
  // A schema that does not say its draft may be of an older one, whose lists of items are another thing.
  return compile("2020-12", schema).catch((error: unknown) =>
    compile("draft-07", schema).catch(() => Promise.reject(error)),
  )
}

/** The check of a schema. A reference to another document is an error: nothing is loaded from elsewhere. */
export const validator = (schema: JsonObject): Effect.Effect<Validate, InvalidSchema> =>
  Effect.tryPromise({
    try: () => {
      const known = compiled.get(schema) ?? validatorFor(schema)
      compiled.set(schema, known)
      return known
    },
    catch: (error) =>
      error instanceof InvalidSchema
        ? error
        : new InvalidSchema({ detail: error instanceof Error ? error.message : String(error) }),
  })
