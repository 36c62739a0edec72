/**
 * The plugins that come with Super-Pi. A harness names them; one line here registers one.
 */
import { type AnyPlugin, anyPlugin } from "../define.ts"
import { autoCommit } from "./auto-commit.ts"
import { confirmDestructive } from "./confirm-destructive.ts"
import { customCompaction } from "./custom-compaction.ts"
import { gitCheckpoint } from "./git-checkpoint.ts"
import { handoff } from "./handoff.ts"
import { hooks } from "./hooks.ts"
import { inlineBash } from "./inline-bash.ts"
import { jevRouter } from "./jev-router.ts"
import { permissions } from "./permissions.ts"
import { promptCustomizer } from "./prompt-customizer.ts"
import { protectedPaths } from "./protected-paths.ts"
import { questionnaire } from "./questionnaire.ts"
import { rules } from "./rules.ts"
import { skills } from "./skills.ts"
import { slashCommands } from "./slash-commands.ts"
import { structuredOutput } from "./structured-output.ts"
import { subagent } from "./subagent.ts"
import { todo } from "./todo.ts"
import { transcriptLogger } from "./transcript-logger.ts"

/** In no particular order: a harness says in which order its plugins run. */
export const builtinPlugins: ReadonlyArray<AnyPlugin> = [
  anyPlugin(permissions),
  anyPlugin(protectedPaths),
  anyPlugin(confirmDestructive),
  anyPlugin(rules),
  anyPlugin(subagent),
  anyPlugin(handoff),
  anyPlugin(skills),
  anyPlugin(gitCheckpoint),
  anyPlugin(autoCommit),
  anyPlugin(customCompaction),
  anyPlugin(inlineBash),
  anyPlugin(jevRouter),
  anyPlugin(promptCustomizer),
  anyPlugin(structuredOutput),
  anyPlugin(todo),
  anyPlugin(questionnaire),
  anyPlugin(hooks),
  anyPlugin(slashCommands),
  anyPlugin(transcriptLogger),
]
