/**
 * How a plugin is made: {@link definePlugin} fills in what was left out and refuses what cannot work, all of it at once.
 */
import { Data, Schema } from "effect"
import type { JsonObject } from "../domain/json.ts"
import { nearest } from "../domain/nearest.ts"
import type { Tool } from "../tools/tool.ts"
import { hookNames, type Plugin, type PluginHooks } from "./plugin.ts"

/** One thing that is wrong with a declaration; `path` for example `plugins[1].timeoutMs`. */
export interface DeclarationFault {
  readonly path: string
  readonly expected: string
  readonly actual: string
}

/** A plugin or a harness that cannot work as it is declared: every fault of it, one a line. */
export class InvalidDeclaration extends Data.TaggedError("InvalidDeclaration")<{
  readonly what: "plugin" | "harness"
  readonly id: string
  readonly faults: ReadonlyArray<DeclarationFault>
}> {
  override get message() {
    const lines = this.faults.map(({ actual, expected, path }) => `${path}: expected ${expected}, got ${actual}`)
    return `${this.what} ${JSON.stringify(this.id)}: ${lines.join("\n  ")}`
  }
}

/** What {@link definePlugin} takes: a {@link Plugin} of which all but the name and the description may be left out. */
export interface PluginDefinition<O, I, R> {
  readonly name: string
  readonly aliases?: ReadonlyArray<string>
  readonly description: string
  /** A struct whose fields all have defaults. Default: no options. */
  readonly options?: Schema.Schema<O, I>
  readonly deadlineMs?: number
  readonly tools?: (options: O) => ReadonlyArray<Tool<R>>
  readonly hooks?: PluginHooks<O, R>
}

/** A plugin of which it is forgotten what its options are: they only ever come from its own schema. */
export type AnyPlugin<R = unknown> = Plugin<JsonObject, R>

/** For a list of several plugins. */
export const anyPlugin = <O, R>(plugin: Plugin<O, R>): AnyPlugin<R> => plugin as unknown as AnyPlugin<R> // see AnyPlugin

export const namePattern = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/
export const nameExpected = "a name in kebab-case"

export const quoted = (value: unknown): string => JSON.stringify(value) ?? String(value)

/** What was expected at one place, where a schema says it in several messages: every member of a union, without `undefined`. */
export const alternatives = (before: string | undefined, said: string): string => {
  const all = [...(before ?? "").split(" | "), ...said.split(" | ")]
  return [...new Set(all.filter((one) => one !== "" && one !== "undefined"))].join(" | ")
}

const faultsOf = <O, I, R>(definition: PluginDefinition<O, I, R>): ReadonlyArray<DeclarationFault> => {
  const { aliases = [], deadlineMs = 1, description, hooks = {}, name } = definition
  const faults: Array<DeclarationFault> = []
  if (!namePattern.test(name)) faults.push({ path: "name", expected: nameExpected, actual: quoted(name) })
  for (const [at, alias] of aliases.entries()) {
    if (!/^[\w-]+$/.test(alias)) {
      faults.push({ path: `aliases[${at}]`, expected: "letters, digits, _ and -", actual: quoted(alias) })
    }
  }
  if (description.trim() === "") faults.push({ path: "description", expected: "a text", actual: quoted(description) })
  if (!(Number.isFinite(deadlineMs) && deadlineMs > 0)) {
    faults.push({ path: "deadlineMs", expected: "milliseconds above 0", actual: String(deadlineMs) })
  }
  for (const hook of Object.keys(hooks)) {
    if (hookNames.some((known) => known === hook)) continue
    faults.push({
      path: `hooks.${hook}`,
      expected: `the hook "${nearest(hook, hookNames)}"`,
      actual: "an unknown hook",
    })
  }
  return faults
}

/** Milliseconds that a hook may take where the plugin says nothing. */
const defaultDeadlineMs = 10_000

/** Makes a plugin. Throws {@link InvalidDeclaration}. */
export const definePlugin = <O = Record<never, never>, I = Record<never, never>, R = never>(
  definition: PluginDefinition<O, I, R>,
): Plugin<O, R> => {
  const faults = faultsOf(definition)
  if (faults.length > 0) throw new InvalidDeclaration({ what: "plugin", id: definition.name, faults })
  const { aliases = [], deadlineMs = defaultDeadlineMs, description, hooks = {}, name, tools = () => [] } = definition
  // The encoded side of a struct of JSON values is a JSON object; without options O is the empty struct.
  const options = (definition.options ?? Schema.Struct({})) as unknown as Schema.Schema<O, JsonObject> // as above
  return { name, aliases, description, options, deadlineMs, tools, hooks }
}
