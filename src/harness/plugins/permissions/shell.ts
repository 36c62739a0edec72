/**
 * The command of a call, read once for all plugins that judge it. The parser is loaded with the first command.
 */
import { Effect } from "effect"
import type { ShellScript } from "../../../domain/shell/script.ts"
import { Bounded } from "../../bounded.ts"
import type { ToolCallView } from "../../plugin.ts"

/** Commands kept: those of one response, as a rule. */
const known = new Bounded<string, ShellScript>(32)

/** The command that a call runs, or null where it runs none. */
export const commandOf = ({ args, effects, name }: ToolCallView): string | null => {
  const runs = name === "bash" || effects.length === 0 || effects.includes("exec")
  return runs && typeof args.command === "string" ? args.command : null
}

export const readCommand = (command: string): Effect.Effect<ShellScript> =>
  Effect.suspend(() => {
    const before = known.get(command)
    if (before !== undefined) return Effect.succeed(before)
    return Effect.map(
      Effect.promise(() => import("../../../domain/shell/read.ts")),
      ({ readShell }) => {
        const script = readShell(command)
        known.set(command, script)
        return script
      },
    )
  })
