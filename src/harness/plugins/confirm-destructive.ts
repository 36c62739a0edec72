/**
 * Plugin ConfirmDestructive: a person confirms commands that destroy what nobody can bring back, in every mode; nobody to ask blocks them.
 */
import { Effect, Either, Schema } from "effect"
import { isJsonObject } from "../../domain/json.ts"
import { destructiveIn } from "../../domain/permissions-destructive.ts"
import { CommandPatternText, policyOf, readPermissions } from "../../domain/permissions-policy.ts"
import { judgeAllowed, patternsOf } from "../../domain/permissions-shell.ts"
import { parsePattern } from "../../domain/shell/pattern.ts"
import { definePlugin } from "../define.ts"
import type { ToolDecision } from "../plugin.ts"
import { readCommand } from "./permissions/shell.ts"

const Options = Schema.Struct({
  /** Tools whose argument `command` is judged. */
  tools: Schema.optionalWith(Schema.Array(Schema.NonEmptyString), { default: () => ["bash"] }),
  /** Patterns beside the built-in ones, as in `permissions.deny`. */
  patterns: Schema.optionalWith(Schema.Array(CommandPatternText), { default: () => [] }),
})

/** Exact commands that a person allowed for the rest of the session. */
const allowedBefore = (override: unknown) =>
  isJsonObject(override)
    ? policyOf([readPermissions(override.permissions ?? {})]).allow.filter((one) => !one.more && !/\*/.test(one.text))
    : []

export const confirmDestructive = definePlugin({
  name: "confirm-destructive",
  aliases: ["ConfirmDestructive", "confirm_destructive"],
  description: "A person confirms rm -rf, DROP TABLE, git reset --hard and the like",
  options: Options,
  hooks: {
    beforeTool: ({ args, name }, { agent, options }) => {
      const { command } = args
      if (!options.tools.includes(name) || typeof command !== "string") return Effect.succeed(undefined)
      return Effect.map(readCommand(command), (script): ToolDecision | undefined => {
        const more = options.patterns.flatMap((text) =>
          Either.match(parsePattern(text), { onLeft: () => [], onRight: (one) => [one] }),
        )
        const found = destructiveIn(script, more)
        if (found === null) return undefined
        const commands = found.keeps ? patternsOf(script, []) : []
        if (commands.length > 0 && judgeAllowed(script, allowedBefore(agent.settingsOverride)) === null)
          return undefined
        return {
          type: "ask",
          rule: found.rule,
          reason: `Blocked: ${found.reason}. It needs a person's confirmation.`,
          title: "Confirm a destructive command",
          ...(commands.length === 0 ? {} : { remember: { commands, tools: [] } }),
        }
      })
    },
  },
})
