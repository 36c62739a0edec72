/**
 * What a harness or a conversation says of plugins, against the plugins that there are: names and options that are wrong become faults
 * that name the nearest valid one.
 */
import { Either, ParseResult, Schema } from "effect"
import type { JsonObject } from "../domain/json.ts"
import { nearest } from "../domain/nearest.ts"
import { type AnyPlugin, alternatives, type DeclarationFault, quoted } from "./define.ts"
import type { PluginSpec } from "./plugin.ts"

/** A plugin with its options decoded. */
export interface ActivePlugin {
  readonly plugin: AnyPlugin
  readonly options: JsonObject
}

/** The plugin of that name or alias. */
export const pluginNamed = (plugins: ReadonlyArray<AnyPlugin>, name: string): AnyPlugin | undefined =>
  plugins.find((one) => one.name === name) ?? plugins.find((one) => one.aliases.includes(name))

export const nameOf = (spec: PluginSpec): string => (typeof spec === "string" ? spec : spec[0])
const optionsOf = (spec: PluginSpec): JsonObject => (typeof spec === "string" ? {} : spec[1])

/** Names of the options of a plugin. */
const optionNames = ({ options }: AnyPlugin): ReadonlyArray<string> => {
  const { ast } = Schema.encodedSchema(options)
  return ast._tag === "TypeLiteral" ? ast.propertySignatures.map(({ name }) => String(name)) : []
}

const dotted = (prefix: string, path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${String(key)}`), prefix)

const valueAt = (value: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (inner, key) => (typeof inner === "object" && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  )

/** `planning_model` means `planningModel`, where there is an option of that name and it is not given besides. */
const respelled = (given: JsonObject, names: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(
    Object.entries(given).map(([key, value]) => {
      const camel = key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
      return [!names.includes(key) && names.includes(camel) && !Object.hasOwn(given, camel) ? camel : key, value]
    }),
  )

/** Options as their plugin decodes them, or what is wrong with them; `prefix` names the place that they stand in. */
const decodeOptions = (
  plugin: AnyPlugin,
  given: JsonObject,
  prefix: string,
): Either.Either<JsonObject, ReadonlyArray<DeclarationFault>> =>
  Either.mapLeft(
    Schema.decodeUnknownEither(plugin.options, { onExcessProperty: "error", errors: "all" })(
      respelled(given, optionNames(plugin)),
    ),
    (error) => {
      const faults = new Map<string, DeclarationFault>()
      for (const issue of ParseResult.ArrayFormatter.formatErrorSync(error)) {
        const path = dotted(prefix, issue.path)
        const actual = quoted(valueAt(given, issue.path))
        if (issue._tag === "Unexpected") {
          const near = nearest(String(issue.path.at(-1)), optionNames(plugin))
          const expected = near === null ? `no options (${plugin.name} has none)` : `the option "${near}"`
          faults.set(path, { path, expected, actual: `an unknown option with ${actual}` })
          continue
        }
        const said = issue.message.replace(/^Expected /, "").replace(/, actual .*$/s, "")
        const before = faults.get(path)
        faults.set(path, { path, expected: alternatives(before?.expected, said), actual })
      }
      return [...faults.values()]
    },
  )

/** The plugins that a list of specs names, in its order, and what is wrong with it. */
export const activate = (
  known: ReadonlyArray<AnyPlugin>,
  specs: ReadonlyArray<PluginSpec>,
  prefix: string,
): { readonly active: ReadonlyArray<ActivePlugin>; readonly faults: ReadonlyArray<DeclarationFault> } => {
  const active: Array<ActivePlugin> = []
  const faults: Array<DeclarationFault> = []
  for (const [at, spec] of specs.entries()) {
    const path = `${prefix}[${at}]`
    const name = nameOf(spec)
    const plugin = pluginNamed(known, name)
    if (plugin === undefined) {
      const near =
        nearest(
          name,
          known.map((one) => one.name),
        ) ?? "none"
      faults.push({ path, expected: `the name of a plugin (the nearest is "${near}")`, actual: quoted(name) })
      continue
    }
    if (active.some((one) => one.plugin.name === plugin.name)) {
      faults.push({ path, expected: "each plugin once", actual: `${quoted(name)} again` })
      continue
    }
    const decoded = decodeOptions(plugin, optionsOf(spec), typeof spec === "string" ? path : `${path}[1]`)
    if (Either.isLeft(decoded)) faults.push(...decoded.left)
    else active.push({ plugin, options: decoded.right })
  }
  return { active, faults }
}
