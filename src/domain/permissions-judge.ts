/**
 * What becomes of one call by the policy. Pure: paths were resolved, and a command was read, before.
 *
 * 1. Never askable: a denied tool or command, the network policy, a mode that does not allow the effects in `plan`, a file tool that leaves
 *    the workspace.
 * 2. Askable: in `accept-edits` a command that is not allowed and a tool that is not allowed by default; a command that names paths outside
 *    of the workspace; what cannot be judged.
 * 3. The verdict never loosens as the mode is tightened, as anything is added to what is denied, or as a command is appended.
 */
import type { ExecutionMode } from "./document.ts"
import type { JsonObject } from "./json.ts"
import type { ToolEffect } from "./permissions.ts"
import { lower, type Policy } from "./permissions-policy.ts"
import { judgeAllowed, judgeDenied, patternsOf } from "./permissions-shell.ts"
import { networkUse } from "./shell/network.ts"
import { wildcard } from "./shell/pattern.ts"
import { programOf, type ShellScript } from "./shell/script.ts"

export interface JudgedCall {
  readonly tool: string
  readonly args: JsonObject
  /** What it states; empty means everything. */
  readonly effects: ReadonlyArray<ToolEffect>
  /** The command of a tool that runs one. */
  readonly script: ShellScript | null
  /** Paths outside of the workspace that the call names, as it writes them. */
  readonly outside: ReadonlyArray<string>
}

/** What `allow_always` and `reject_always` keep. */
interface Remembered {
  readonly commands: ReadonlyArray<string>
  readonly tools: ReadonlyArray<string>
}

export type Judgement =
  | { readonly type: "allow"; readonly rule: string }
  | { readonly type: "block"; readonly rule: string; readonly reason: string }
  | { readonly type: "ask"; readonly rule: string; readonly reason: string; readonly remember: Remembered }

const everything: ReadonlyArray<ToolEffect> = ["read", "fs_write", "exec", "net_read", "net_write", "state_write"]
const reading: ReadonlySet<ToolEffect> = new Set(["read", "net_read"])
const harmless: ReadonlySet<ToolEffect> = new Set(["read", "net_read", "state_write"])
const ofFiles: ReadonlySet<ToolEffect> = new Set(["read", "state_write", "fs_write"])

/** Tools that `accept-edits` allows although they write files. */
const edits: ReadonlySet<string> = new Set(["write", "edit", "artifact_get"])

const keepsNothing: Remembered = { commands: [], tools: [] }

const block = (rule: string, reason: string): Judgement => ({ type: "block", rule, reason: `Blocked: ${reason}` })
const ask = (rule: string, reason: string, remember: Remembered = keepsNothing): Judgement => ({
  type: "ask",
  rule,
  reason: `Blocked: ${reason}`,
  remember,
})

const named = (tool: string, patterns: ReadonlyArray<string>): string | undefined =>
  patterns.find((pattern) => wildcard(pattern).test(tool))

/** The host of a URL as URLs are read, in small letters, or null. */
const hostOf = (url: string): string | null => {
  try {
    return new URL(url).hostname.toLowerCase().replace(/\.$/, "") || null
  } catch {
    return null
  }
}

/** An entry means the host and its subdomains; `*.` in front of it changes nothing. */
const hostAllowed = (host: string, entries: ReadonlyArray<string>): boolean =>
  entries.some((entry) => {
    const name = entry.toLowerCase().replace(/^\*\./, "").replace(/\.$/, "")
    const given = host.toLowerCase().replace(/\.$/, "")
    return given === name || (given.endsWith(`.${name}`) && !/^[\d.]+$/.test(name))
  })

const networkOfTool = (call: JudgedCall, policy: Policy): Judgement | null => {
  const { args, effects, tool } = call
  const states = effects.length === 0 ? everything : effects
  if (policy.network === "allow" || !states.some((one) => one === "net_read" || one === "net_write")) return null
  if (policy.network === "deny")
    return block("permissions.network", `the network policy is "deny", and ${tool} uses the network.`)
  const host = typeof args.url === "string" ? hostOf(args.url) : null
  if (host === null)
    return block(
      "permissions.networkAllowHosts",
      `the network policy is "allowlist", and ${tool} names no URL that could be checked.`,
    )
  if (hostAllowed(host, policy.networkAllowHosts)) return null
  return block(
    "permissions.networkAllowHosts",
    `the network policy is "allowlist", and ${host} is not among its hosts.`,
  )
}

const networkOfCommand = (script: ShellScript, policy: Policy): Judgement | null => {
  if (policy.network === "allow") return null
  for (const command of script.commands) {
    const use = networkUse(command)
    if (use === null) continue
    const program = programOf(command) ?? "the command"
    if (policy.network === "deny")
      return block("permissions.network", `the network policy is "deny", and ${program} uses the network.`)
    const bad =
      use.hosts === null ? "an unknown host" : use.hosts.find((host) => !hostAllowed(host, policy.networkAllowHosts))
    if (bad !== undefined)
      return block("permissions.networkAllowHosts", `the network policy is "allowlist", and ${program} goes to ${bad}.`)
  }
  return null
}

const list = (values: ReadonlyArray<string>): string =>
  values.length > 3 ? `${values.slice(0, 3).join(", ")} and ${values.length - 3} more` : values.join(", ")

/** The effects that the mode does not allow by itself. */
const beyond = (mode: ExecutionMode, effects: ReadonlyArray<ToolEffect>, policy: Policy): ReadonlyArray<ToolEffect> => {
  const states = effects.length === 0 ? everything : effects
  if (mode === "auto") return []
  if (mode === "accept-edits") return states.filter((one) => !harmless.has(one))
  return states.filter((one) => !reading.has(one) || (one === "net_read" && !policy.networkInPlanMode))
}

/** Whether accept-edits allows the tool without a person: an edit of files, or one that is listed. */
const listed = ({ effects, tool }: JudgedCall, policy: Policy): string | null => {
  const isEdit = edits.has(tool) && effects.length > 0 && effects.every((one) => ofFiles.has(one))
  if (isEdit) return "mode accept-edits"
  return named(tool, policy.allowTools) === undefined ? null : "permissions.allowTools"
}

const judgeCommand = (call: JudgedCall, script: ShellScript, mode: ExecutionMode, policy: Policy): Judgement => {
  const denied = judgeDenied(script, policy.deny)
  const keep = (): Remembered => ({ commands: patternsOf(script, policy.allow), tools: [] })
  if (denied !== null) return ask("permissions.deny", `${denied.reason}.`)
  if (call.outside.length > 0)
    return ask("workspace", `the command names paths outside of the workspace: ${list(call.outside)}.`)
  const guarded = policy.deny.length > 0 || !policy.allowNonWorkspaceAccess
  if (script.faults.length > 0 && guarded) return ask("syntax", `the command cannot be judged: ${script.faults[0]}.`)
  const gap = mode === "auto" || listed(call, policy) !== null ? null : judgeAllowed(script, policy.allow)
  if (gap !== null) return ask("permissions.allow", `${gap.reason}.`, keep())
  return { type: "allow", rule: mode === "auto" ? "mode auto" : "permissions.allow" }
}

const judgeTool = (call: JudgedCall, mode: ExecutionMode, policy: Policy): Judgement => {
  const { effects, tool } = call
  const more = beyond(mode, effects, policy)
  if (more.length === 0) return { type: "allow", rule: `mode ${mode}` }
  const rule = listed(call, policy)
  if (rule !== null) return { type: "allow", rule }
  const why = effects.length === 0 ? "it states no effects" : more.join(", ")
  return ask("mode accept-edits", `the mode "accept-edits" does not allow ${tool} by default (${why}).`, {
    commands: [],
    tools: [tool],
  })
}

/** Whether nothing but reading and the conversation's own state is touched. */
const isTame = ({ effects }: JudgedCall): boolean =>
  effects.length > 0 && effects.every((one) => one === "read" || one === "state_write")

/** The verdict. `mode` is the conversation's, under the ceiling of its harness. */
export const judgeCall = (call: JudgedCall, given: ExecutionMode, policy: Policy): Judgement => {
  const { effects, outside, script, tool } = call
  const mode = lower(given, policy.maxExecutionMode)
  const deniedTool = named(tool, policy.denyTools)
  if (deniedTool !== undefined)
    return block("permissions.denyTools", `${tool} matches the denied tool "${deniedTool}".`)
  const denied = script === null ? null : judgeDenied(script, policy.deny)
  if (denied?.level === "block") return block("permissions.deny", `${denied.reason}.`)
  const network = networkOfTool(call, policy) ?? (script === null ? null : networkOfCommand(script, policy))
  if (network !== null) return network
  if (mode === "plan") {
    const more = beyond(mode, effects, policy)
    if (more.length > 0)
      return block(
        "mode plan",
        `the mode "plan" does not allow ${tool} (${effects.length === 0 ? "it states no effects" : more.join(", ")}). Only reading is allowed.`,
      )
  }
  if (script === null && outside.length > 0) return block("workspace", `${list(outside)}: outside of the workspace.`)
  const verdict = script === null ? judgeTool(call, mode, policy) : judgeCommand(call, script, mode, policy)
  if (verdict.type === "allow" && policy.unreadable.length > 0 && !isTame(call))
    return ask(
      "settings",
      `${policy.unreadable[0]} of the settings cannot be read, so that what it forbids is not known.`,
    )
  return verdict
}
