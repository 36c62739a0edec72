/**
 * How a harness is made: {@link defineHarness} checks ids, plugins with their options, modes and the rest of a declaration, and refuses one
 * with all its faults at once.
 */
import { ParseResult, Schema } from "effect"
import { Effort, ExecutionMode } from "../domain/document.ts"
import { JsonObject } from "../domain/json.ts"
import { nearest } from "../domain/nearest.ts"
import { WorkspaceSpec } from "../domain/workspace-spec.ts"
import {
  type AnyPlugin,
  alternatives,
  type DeclarationFault,
  InvalidDeclaration,
  nameExpected,
  namePattern,
  quoted,
} from "./define.ts"
import type { Harness } from "./harness.ts"
import { looser } from "./modes.ts"
import { activate } from "./options.ts"
import { builtinPlugins } from "./plugins/index.ts"

const Declaration = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  description: Schema.String,
  plugins: Schema.Array(Schema.Union(Schema.String, Schema.Tuple(Schema.String, JsonObject))),
  model: Schema.optional(Schema.NonEmptyString),
  effort: Schema.optional(Effort),
  mode: Schema.optional(ExecutionMode),
  maxMode: Schema.optional(ExecutionMode),
  workspace: Schema.optional(WorkspaceSpec),
  tools: Schema.optional(
    Schema.Union(
      Schema.Literal("all"),
      Schema.Struct({ only: Schema.Array(Schema.String) }),
      Schema.Struct({ except: Schema.Array(Schema.String) }),
    ),
  ),
  prompt: Schema.String,
})

const decode = Schema.decodeUnknownEither(Declaration, { errors: "all", onExcessProperty: "error" })

/** What is wrong with the shape of a declaration: with values that a program without types may have given. */
const shapeFaults = (declaration: Harness): ReadonlyArray<DeclarationFault> => {
  const decoded = decode(declaration)
  if (decoded._tag === "Right") return []
  const faults = new Map<string, DeclarationFault>()
  for (const issue of ParseResult.ArrayFormatter.formatErrorSync(decoded.left)) {
    const path = issue.path.map(String).join(".") || "harness"
    const key = String(issue.path.at(-1))
    const said =
      issue._tag === "Unexpected"
        ? `the option "${nearest(key, Object.keys(Declaration.fields))}"`
        : issue.message.replace(/^Expected /, "").replace(/, actual .*$/s, "")
    const before = faults.get(path)
    const expected = alternatives(before?.expected, said)
    const value = issue.path.reduce<unknown>(
      (inner, step) => (typeof inner === "object" && inner !== null ? Reflect.get(inner, step) : undefined),
      declaration,
    )
    const actual =
      issue._tag === "Unexpected" ? "an unknown option" : issue._tag === "Missing" ? "nothing" : quoted(value)
    faults.set(path, { path, expected, actual })
  }
  return [...faults.values()]
}

/** Everything that is wrong with a harness, where `known` are the plugins that it may name. */
export const harnessFaults = (harness: Harness, known: ReadonlyArray<AnyPlugin>): ReadonlyArray<DeclarationFault> => {
  const shape = shapeFaults(harness)
  if (shape.length > 0) return shape
  const faults: Array<DeclarationFault> = []
  const { description, id, maxMode, mode, name, plugins, prompt } = harness
  if (!namePattern.test(id)) faults.push({ path: "id", expected: nameExpected, actual: quoted(id) })
  for (const [path, text] of Object.entries({ name, description, prompt })) {
    if (text.trim() === "") faults.push({ path, expected: "a text", actual: quoted(text) })
  }
  if (mode !== undefined && maxMode !== undefined && looser(mode, maxMode)) {
    faults.push({ path: "mode", expected: `a mode up to maxMode "${maxMode}"`, actual: quoted(mode) })
  }
  return [...faults, ...activate(known, plugins, "plugins").faults]
}

/**
 * A harness of an application; `plugins` are those of its own that the harness names beside the built-in ones. Throws
 * {@link InvalidDeclaration}.
 */
export const defineHarness = (
  harness: Harness,
  { plugins = [] }: { readonly plugins?: ReadonlyArray<AnyPlugin> } = {},
): Harness => {
  const faults = harnessFaults(harness, [...builtinPlugins, ...plugins])
  if (faults.length > 0) throw new InvalidDeclaration({ what: "harness", id: String(harness.id), faults })
  return harness
}
