/**
 * The plugins that come with Super-Pi. A harness names them; one line here registers one.
 */
import { type AnyPlugin, anyPlugin } from "../define.ts"
import { gitCheckpoint } from "./git-checkpoint.ts"
import { handoff } from "./handoff.ts"
import { rules } from "./rules.ts"
import { skills } from "./skills.ts"
import { subagent } from "./subagent.ts"

/** In no particular order: a harness says in which order its plugins run. */
export const builtinPlugins: ReadonlyArray<AnyPlugin> = [
  anyPlugin(rules),
  anyPlugin(subagent),
  anyPlugin(handoff),
  anyPlugin(skills),
  anyPlugin(gitCheckpoint),
]
