/**
 * The settings file, `<config>/settings.json`, decoded once. It is optional. What is wrong in it never stops a command that does not
 * need it: it becomes warnings, each naming the file and the key, and that key counts as not given.
 */
import { readFileSync } from "node:fs"
import { isAbsolute } from "node:path"
import { Either, ParseResult, Schema } from "effect"
import { CompactionSettings } from "../domain/compaction-settings.ts"
import { errorCode } from "../domain/error-code.ts"
import { isRecord } from "../domain/json.ts"
import { jsonFaultAt, lineAndColumn } from "../domain/json-fault.ts"
import { McpServeSettings } from "../domain/mcp-serve-settings.ts"
import { nearest } from "../domain/nearest.ts"
import { PermissionSettings, readPermissions } from "../domain/permissions-policy.ts"
import { shown } from "../domain/shown.ts"
import { ModelSettings } from "../models/settings.ts"
import { messageOf } from "./exit.ts"

const AbsolutePath = Schema.String.pipe(
  Schema.filter((path) => isAbsolute(path), { message: () => "Expected an absolute path" }),
)

const AcpSettings = Schema.Struct({
  /** Whether an editor is asked for the text of a file before the disk: where it was changed and not saved, never, or always. */
  fsDelegation: Schema.optional(Schema.Literal("unsaved_only", "never", "always")),
})

export const Settings = Schema.Struct({
  /** The model of conversations that choose none; `--model` and SUPER_PI_DEFAULT_MODEL come first. */
  defaultModel: Schema.optional(Schema.NonEmptyString),
  models: Schema.optional(ModelSettings),
  /** The harness of conversations that are opened without `--harness`. Default `super-pi-code`. */
  defaultHarness: Schema.optional(Schema.NonEmptyString),
  /** When and how contexts are made short; see docs/compaction.md. */
  compaction: Schema.optional(CompactionSettings),
  /** Concurrency of durable queues by name; see docs/queues.md. */
  queues: Schema.optional(
    Schema.Record({
      key: Schema.String.pipe(Schema.pattern(/^[a-zA-Z0-9_.-]{1,100}$/)),
      value: Schema.Struct({ concurrency: Schema.Int.pipe(Schema.positive()) }),
    }),
  ),
  /** Further directories with rules, skills, commands and hooks of the person; they take the place of SUPER_PI_DISCOVERY_ROOTS. */
  discoveryRoots: Schema.optional(Schema.Array(Schema.NonEmptyString)),
  /** Walls around commands: never, where the host can, or else no commands; see docs/sandbox.md. Default `auto`. */
  sandbox: Schema.optional(Schema.Literal("off", "auto", "required")),
  /** Directories that walled-in commands may write to beside the workspace. */
  sandboxWritable: Schema.optional(Schema.Array(AbsolutePath)),
  /** Roots of workspaces of kind `knowledge`, the first for relative paths. Default: the working directory. */
  knowledgePaths: Schema.optional(Schema.Array(AbsolutePath)),
  /** Where scratch directories are made. Default: the system's directory for temporary files. */
  scratchDir: Schema.optional(AbsolutePath),
  /** Hours after which a scratch directory that nobody used is removed. Default 24. */
  scratchTtlHours: Schema.optional(Schema.Number.pipe(Schema.positive())),
  /** What calls may do; see docs/permissions.md. */
  permissions: Schema.optional(PermissionSettings),
  /** The agent of editors; see docs/acp.md. */
  acp: Schema.optional(AcpSettings),
  /** MCP, served to others; see docs/mcp-server.md. */
  mcp: Schema.optional(McpServeSettings),
  /** Who may call over the network, and how much; see docs/gateway.md. Decoded by who serves, which does not start where it is wrong. */
  gateway: Schema.optional(Schema.Unknown),
  /** Whether MCP servers are ever started; see docs/mcp-client.md. Default true. */
  mcpClients: Schema.optional(Schema.Boolean),
  /** Whether all tools of MCP servers are offered, or those that `tool_search` has found. Default `direct`. */
  mcpToolExposure: Schema.optional(Schema.Literal("direct", "deferred")),
  /** How long the start of an MCP server may take, in ms. Default 10,000. */
  mcpStartupTimeoutMs: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** How long a call of an MCP server may take without a sign of life, in ms. Default 60,000. */
  mcpCallTimeoutMs: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** Seconds between the end of a conversation's work and the check of its transcript. Default 60. */
  verifyAfterSeconds: Schema.optional(Schema.NonNegative),
  /** SQLite's `synchronous`: FULL also survives the loss of power of the whole machine. Default NORMAL. */
  synchronous: Schema.optional(Schema.Literal("NORMAL", "FULL")),
})
export type Settings = typeof Settings.Type

export interface LoadedSettings {
  readonly settings: Settings
  /** One line each, for stderr. */
  readonly warnings: ReadonlyArray<string>
}

const none: LoadedSettings = { settings: {}, warnings: [] }

type Fields = Readonly<Record<string, Schema.Schema.All | Schema.PropertySignature.All>>

/** The known, valid keys of one object; a warning for each other one. `prefix` is "" or for example `models.`. */
const pick = (
  value: Readonly<Record<string, unknown>>,
  fields: Fields,
  prefix: string,
  decode: Decode,
  warnings: Array<string>,
  file: string,
) => {
  const kept: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (!Object.hasOwn(fields, key)) {
      warnings.push(
        `${file}: unknown key "${prefix}${key}"; did you mean "${prefix}${nearest(key, Object.keys(fields)) ?? ""}"?`,
      )
      continue
    }
    const fault = decode({ [key]: item })
    if (fault === null) kept[key] = item
    else
      warnings.push(
        `${file}: ${prefix}${fault.path}: expected ${fault.expected}, got ${shown(fault.actual, "…")}; the key is ignored`,
      )
  }
  return kept
}

interface Fault {
  readonly path: string
  readonly expected: string
  readonly actual: unknown
}
type Decode = (value: Readonly<Record<string, unknown>>) => Fault | null

const at = (value: unknown, path: ReadonlyArray<PropertyKey>): unknown => {
  let inner = value
  for (const key of path) inner = isRecord(inner) || Array.isArray(inner) ? Reflect.get(inner, key) : undefined
  return inner
}

/** First fault of decoding, or null. */
const faultOf =
  <A, I>(schema: Schema.Schema<A, I>): Decode =>
  (value) => {
    const result = Schema.decodeUnknownEither(schema)(value)
    if (Either.isRight(result)) return null
    const issues = ParseResult.ArrayFormatter.formatErrorSync(result.left)
    const path = issues[0]?.path ?? []
    // One issue for each member of a union; all of one place together say what was expected there.
    const expected = issues
      .filter((issue) => issue.path.join() === path.join())
      .map((issue) =>
        issue.message
          .replace(/^Expected /, "")
          .replace(/, actual .*$/s, "")
          .replace(/ \| undefined$/, ""),
      )
      .filter((one, index, all) => one !== "undefined" && all.indexOf(one) === index)
    return { path: path.map(String).join("."), expected: expected.join(" | "), actual: at(value, path) }
  }

/** Pure: what the text of a settings file means. */
export const readSettings = (text: string, file: string): LoadedSettings => {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text
  if (source.trim() === "") return none
  const fault = jsonFaultAt(source)
  if (fault !== null) {
    const { line, column } = lineAndColumn(source, fault)
    const found =
      fault >= source.length
        ? "the end of the file"
        : JSON.stringify(String.fromCodePoint(source.codePointAt(fault) ?? 0))
    return {
      settings: {},
      warnings: [`${file}:${line}:${column}: not JSON (unexpected ${found}); the file is skipped until it is repaired`],
    }
  }
  const value: unknown = JSON.parse(source)
  if (!isRecord(value))
    return {
      settings: {},
      warnings: [`${file}: expected a JSON object, got ${shown(value, "…")}; the file is skipped`],
    }
  const warnings: Array<string> = []
  const { compaction, models, permissions, ...rest } = value
  const kept = pick(rest, Settings.fields, "", faultOf(Settings), warnings, file)
  if (models !== undefined) {
    if (isRecord(models))
      kept.models = pick(models, ModelSettings.fields, "models.", faultOf(ModelSettings), warnings, file)
    else warnings.push(`${file}: models: expected an object, got ${shown(models, "…")}; the key is ignored`)
  }
  if (compaction !== undefined) {
    if (isRecord(compaction)) {
      const decode = faultOf(CompactionSettings)
      kept.compaction = pick(compaction, CompactionSettings.fields, "compaction.", decode, warnings, file)
    } else warnings.push(`${file}: compaction: expected an object, got ${shown(compaction, "…")}; the key is ignored`)
  }
  if (permissions !== undefined) {
    const { faults, rules } = readPermissions(permissions)
    kept.permissions = rules
    for (const { actual, expected, key } of faults)
      warnings.push(`${file}: ${key}: expected ${expected}, got ${actual}; it is ignored`)
  }
  return { settings: Schema.decodeUnknownSync(Settings)(kept), warnings }
}

/** Reads the file; a missing one is no settings. */
export const loadSettings = (file: string): LoadedSettings => {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return none
    return { settings: {}, warnings: [`${file}: cannot be read (${messageOf(error)}); it is skipped`] }
  }
  return readSettings(text, file)
}

/** The `models` section with the top-level default model in it. */
export const modelSettings = (settings: Settings): ModelSettings => ({
  ...settings.models,
  ...(settings.defaultModel === undefined ? {} : { defaultModel: settings.defaultModel }),
})
