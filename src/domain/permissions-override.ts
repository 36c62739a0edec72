/**
 * What one session changes of the policy: document `pi.agent`, field `settingsOverride.permissions`. Answers "always" of a person end here;
 * settings.json is never written. Only the process that owns the database may set it, never a remote caller.
 */
import { Schema } from "effect"

/** Where outgoing calls may go: a second axis beside the mode. */
export const NetworkPolicy = Schema.Literal("allow", "allowlist", "deny")
export type NetworkPolicy = typeof NetworkPolicy.Type

/** Patterns of commands or names of tools. */
const list = Schema.Array(Schema.NonEmptyString)

/** The rules that any layer of the policy may state. Lists of the layers add up; of other fields the tightest stated value counts. */
export const ruleFields = {
  /** Commands that `accept-edits` runs without asking; see docs/permissions.md for the grammar. */
  allow: Schema.optional(list),
  /** Commands that no mode runs. */
  deny: Schema.optional(list),
  /** Tools that `accept-edits` allows beyond its defaults; `*` stands for any characters. */
  allowTools: Schema.optional(list),
  /** Tools that no mode allows. */
  denyTools: Schema.optional(list),
  network: Schema.optional(NetworkPolicy),
  /** Hosts for `network: "allowlist"`; an entry means the host and its subdomains. */
  networkAllowHosts: Schema.optional(list),
  /** Whether `plan` allows tools that read from the network. Default true. */
  networkInPlanMode: Schema.optional(Schema.Boolean),
  /** Whether files outside the workspace may be touched. Default false. */
  allowNonWorkspaceAccess: Schema.optional(Schema.Boolean),
  /** Absolute directories outside of the workspace that commands may name as well, for example a cache. */
  additionalDirectories: Schema.optional(list),
  /** Whether a person may be asked at all. Default true. */
  interactivePrompts: Schema.optional(Schema.Boolean),
  /** How long a question waits, in ms. Default 120,000. */
  permissionPromptTimeoutMs: Schema.optional(Schema.Int.pipe(Schema.positive())),
} as const

export const PermissionOverride = Schema.Struct(ruleFields)
export type PermissionOverride = typeof PermissionOverride.Type
