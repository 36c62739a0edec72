/**
 * The policy in force: what the harness, settings.json and the session state, put together. Lists add up. Of every other field the tightest
 * stated value counts, so that no layer lifts what another one set; a field that none states takes its default.
 */
import { Either, Schema } from "effect"
import { ExecutionMode } from "./document.ts"
import { nearest } from "./nearest.ts"
import { type NetworkPolicy, ruleFields } from "./permissions-override.ts"
import { type CommandPattern, parsePattern } from "./shell/pattern.ts"

/** The section `permissions` of settings.json. */
export const PermissionSettings = Schema.Struct({
  ...ruleFields,
  /** No mode above this one is used on this node. */
  maxExecutionMode: Schema.optional(ExecutionMode),
  /** The mode of remote callers that ask for none. */
  remoteDefaultMode: Schema.optional(ExecutionMode),
  /** The highest mode that remote callers get. */
  remoteMaxMode: Schema.optional(ExecutionMode),
})
export type PermissionSettings = typeof PermissionSettings.Type

export interface Policy {
  readonly allow: ReadonlyArray<CommandPattern>
  readonly deny: ReadonlyArray<CommandPattern>
  readonly allowTools: ReadonlyArray<string>
  readonly denyTools: ReadonlyArray<string>
  readonly network: NetworkPolicy
  readonly networkAllowHosts: ReadonlyArray<string>
  readonly networkInPlanMode: boolean
  readonly allowNonWorkspaceAccess: boolean
  readonly additionalDirectories: ReadonlyArray<string>
  readonly interactivePrompts: boolean
  readonly permissionPromptTimeoutMs: number
  readonly maxExecutionMode: ExecutionMode
  /** Restrictions that are stated and cannot be read: while there are any, what they could restrict asks. */
  readonly unreadable: ReadonlyArray<string>
}

/** A pattern of commands, as options of plugins decode it. */
export const CommandPatternText = Schema.NonEmptyString.pipe(
  Schema.filter((text) => Either.match(parsePattern(text), { onLeft: (expected) => expected, onRight: () => true })),
)

/** One layer: what could be read of it, and its restrictions that could not. */
export interface PolicyLayer {
  readonly rules: PermissionSettings
  readonly unreadable?: ReadonlyArray<string>
}

/** One fault of a section, as people read it. */
export interface SettingsFault {
  /** `permissions.network`. */
  readonly key: string
  readonly expected: string
  readonly actual: string
}

/** Keys that only ever take away: one that cannot be read is not the same as one that is not there. */
const restricting: ReadonlySet<string> = new Set([
  "deny",
  "denyTools",
  "network",
  "networkAllowHosts",
  "networkInPlanMode",
  "allowNonWorkspaceAccess",
  "maxExecutionMode",
])

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

const expectations: Readonly<Record<string, string>> = {
  network: '"allow", "allowlist" or "deny"',
  networkInPlanMode: "true or false",
  allowNonWorkspaceAccess: "true or false",
  interactivePrompts: "true or false",
  permissionPromptTimeoutMs: "a whole number of milliseconds above 0",
  additionalDirectories: "absolute paths",
  maxExecutionMode: '"plan", "accept-edits" or "auto"',
  remoteDefaultMode: '"plan", "accept-edits" or "auto"',
  remoteMaxMode: '"plan", "accept-edits" or "auto"',
}

const host = /^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.?$|^\[?[0-9a-f:.]+\]?$/i

/** What is wrong with one entry of a list, or null. */
const entryFault = (key: string, entry: unknown): string | null => {
  if (typeof entry !== "string" || entry.trim() === "") return "a text that is not empty"
  if (key === "allow" || key === "deny")
    return Either.match(parsePattern(entry), { onLeft: (one) => one, onRight: () => null })
  if (key === "networkAllowHosts") return host.test(entry) ? null : 'a host such as "example.com"'
  if (key === "additionalDirectories") return /^(\/|[A-Za-z]:[\\/])/.test(entry) ? null : "an absolute path"
  return null
}

const lists: ReadonlySet<string> = new Set([
  "allow",
  "deny",
  "allowTools",
  "denyTools",
  "networkAllowHosts",
  "additionalDirectories",
])

/**
 * Reads a section key by key: what is wrong is named and left out, the rest counts. `unreadable` has the restrictions that were left out.
 */
export const readPermissions = (
  section: unknown,
): PolicyLayer & { readonly faults: ReadonlyArray<SettingsFault>; readonly unreadable: ReadonlyArray<string> } => {
  if (typeof section !== "object" || section === null || Array.isArray(section)) {
    const fault = { key: "permissions", expected: "an object", actual: shown(section) }
    return { rules: {}, faults: [fault], unreadable: ["permissions"] }
  }
  const faults: Array<SettingsFault> = []
  const unreadable: Array<string> = []
  const kept: Record<string, unknown> = {}
  const known = Object.keys(PermissionSettings.fields)
  for (const [name, value] of Object.entries(section)) {
    const key = `permissions.${name}`
    if (!known.includes(name)) {
      faults.push({
        key,
        expected: `a known key; did you mean "permissions.${nearest(name, known) ?? ""}"?`,
        actual: "an unknown key",
      })
      if (restricting.has(nearest(name, known) ?? "")) unreadable.push(key)
      continue
    }
    const fails = (expected: string, actual: unknown, at = key) => {
      faults.push({ key: at, expected, actual: shown(actual) })
      if (restricting.has(name)) unreadable.push(at)
    }
    if (lists.has(name)) {
      if (!Array.isArray(value)) {
        fails("a list of texts", value)
        continue
      }
      const entries: ReadonlyArray<unknown> = value
      kept[name] = entries.filter((entry, index) => {
        const expected = entryFault(name, entry)
        if (expected !== null) fails(expected, entry, `${key}[${index}]`)
        return expected === null
      })
    } else if (Either.isLeft(Schema.decodeUnknownEither(PermissionSettings)({ [name]: value }))) {
      const near = typeof value === "string" ? nearest(value, ExecutionMode.literals) : null
      const hint = near !== null && name.endsWith("Mode") ? `; the nearest is "${near}"` : ""
      fails(`${expectations[name] ?? "a valid value"}${hint}`, value)
    } else kept[name] = value
  }
  return { rules: Schema.decodeUnknownSync(PermissionSettings)(kept), faults, unreadable }
}

const tightest = <A extends string | boolean>(
  values: ReadonlyArray<A | undefined>,
  order: ReadonlyArray<A>,
  otherwise: A,
): A => {
  const stated = values.filter((value) => value !== undefined)
  return order.find((value) => stated.includes(value)) ?? otherwise
}

const patterns = (texts: ReadonlyArray<string>): ReadonlyArray<CommandPattern> =>
  [...new Set(texts)].flatMap((text) => {
    const parsed = parsePattern(text)
    return Either.isRight(parsed) ? [parsed.right] : []
  })

/** Puts the layers together. `confined`: whether the workspace itself keeps file tools inside. */
export const policyOf = (layers: ReadonlyArray<PolicyLayer>, confined = true): Policy => {
  const rules = layers.map((layer) => layer.rules)
  const all = (key: "allow" | "deny" | "allowTools" | "denyTools" | "additionalDirectories") => [
    ...new Set(rules.flatMap((one) => one[key] ?? [])),
  ]
  const hosts = rules.flatMap(({ networkAllowHosts }) => (networkAllowHosts === undefined ? [] : [networkAllowHosts]))
  const times = rules.flatMap(({ permissionPromptTimeoutMs: ms }) => (ms === undefined ? [] : [ms]))
  return {
    allow: patterns(all("allow")),
    deny: patterns(all("deny")),
    allowTools: all("allowTools"),
    denyTools: all("denyTools"),
    network: tightest(
      rules.map((one) => one.network),
      ["deny", "allowlist", "allow"],
      "allow",
    ),
    networkAllowHosts: [...new Set(hosts.flat())],
    networkInPlanMode: tightest(
      rules.map((one) => one.networkInPlanMode),
      [false, true],
      true,
    ),
    allowNonWorkspaceAccess: tightest(
      rules.map((one) => one.allowNonWorkspaceAccess),
      [false, true],
      !confined,
    ),
    additionalDirectories: all("additionalDirectories"),
    interactivePrompts: tightest(
      rules.map((one) => one.interactivePrompts),
      [false, true],
      true,
    ),
    permissionPromptTimeoutMs: times.length === 0 ? 120_000 : Math.min(...times),
    maxExecutionMode: tightest(
      rules.map((one) => one.maxExecutionMode),
      ExecutionMode.literals,
      "auto",
    ),
    unreadable: layers.flatMap((layer) => layer.unreadable ?? []),
  }
}

const rank = (mode: ExecutionMode): number => ExecutionMode.literals.indexOf(mode)

/** The lower of two modes. */
export const lower = (a: ExecutionMode, b: ExecutionMode): ExecutionMode => (rank(a) < rank(b) ? a : b)

/**
 * The mode of a remote caller. It may ask for any mode up to `remoteMaxMode`; where nothing is configured a request only ever tightens
 * `own`, the mode that the conversation has anyway.
 */
export const remoteMode = (
  requested: ExecutionMode | undefined,
  own: ExecutionMode,
  { remoteDefaultMode, remoteMaxMode }: Pick<PermissionSettings, "remoteDefaultMode" | "remoteMaxMode">,
): ExecutionMode => {
  const wanted = requested ?? remoteDefaultMode ?? own
  return lower(wanted, remoteMaxMode ?? own)
}
