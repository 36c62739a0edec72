/**
 * Plugin Permissions: the policy engine. Every call is judged by the effects of its tool, the mode, and the policy of harness, settings and
 * session; docs/permissions.md has the rules. Whatever is not allowed for sure asks a person, or is blocked where nobody can be asked.
 */
import { Effect, Schema } from "effect"
import { ExecutionMode } from "../../domain/document.ts"
import { judgeCall } from "../../domain/permissions-judge.ts"
import { ruleFields } from "../../domain/permissions-override.ts"
import { CommandPatternText } from "../../domain/permissions-policy.ts"
import { definePlugin } from "../define.ts"
import type { HookContext, ToolCallView, ToolDecision } from "../plugin.ts"
import { policyFor } from "./permissions/layers.ts"
import { outsideOf } from "./permissions/places.ts"
import { commandOf, readCommand } from "./permissions/shell.ts"

const commandPatterns = Schema.optional(Schema.Array(CommandPatternText))

const Options = Schema.Struct({
  ...ruleFields,
  allow: commandPatterns,
  deny: commandPatterns,
  maxExecutionMode: Schema.optional(ExecutionMode),
})

const firstLine = (text: string): string => {
  const [line = ""] = text.trim().split("\n", 1)
  return line.length > 100 || line.length < text.trim().length ? `${line.slice(0, 99)}…` : line
}

const beforeTool = (
  call: ToolCallView,
  context: HookContext<typeof Options.Type>,
): Effect.Effect<ToolDecision | undefined> =>
  Effect.gen(function* () {
    const { mode, workspace } = context
    const policy = yield* policyFor(context)
    const command = commandOf(call)
    const script = command === null ? null : yield* readCommand(command)
    const outside = policy.allowNonWorkspaceAccess
      ? []
      : yield* outsideOf(call, script, workspace, policy.additionalDirectories)
    const { args, effects, name: tool } = call
    const verdict = judgeCall({ tool, args, effects, script, outside }, mode, policy)
    if (verdict.type !== "ask") return verdict
    const { reason, remember, rule } = verdict
    if (!policy.interactivePrompts) return { type: "block", rule, reason }
    const title = command === null ? `Use the tool ${tool}` : `Run: ${firstLine(command)}`
    const keeps = remember.commands.length + remember.tools.length > 0
    const timeoutMs = policy.permissionPromptTimeoutMs
    return { type: "ask", rule, reason, title, timeoutMs, ...(keeps ? { remember } : {}) }
  })

export const permissions = definePlugin({
  name: "permissions",
  aliases: ["Permissions"],
  description: "Policy engine: modes, effects, network, lists of commands and tools, workspace confinement, questions",
  options: Options,
  hooks: { beforeTool },
})
