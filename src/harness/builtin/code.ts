/**
 * `super-pi-code`: changes a repository, and can undo the change.
 */
import type { Harness } from "../harness.ts"
import { registered } from "./registered.ts"

export const code: Harness = {
  id: "super-pi-code",
  name: "Super-Pi Code",
  description: "Repository coding agent: reversible edits, rules, skills, hooks, model cascading",
  plugins: registered([
    "slash-commands",
    "inline-bash",
    "permissions",
    "protected-paths",
    "confirm-destructive",
    "hooks",
    "rules",
    "skills",
    "prompt-customizer",
    "jev-router",
    "git-checkpoint",
    "todo",
    "subagent",
    "questionnaire",
    "structured-output",
    "custom-compaction",
    "auto-commit",
    "transcript-logger",
  ]),
  workspace: { kind: "local" },
  prompt: `You are Super-Pi, an agent that works in a person's repository with the tools that you are given.
Work in small verified steps: look before you change, change only what the task needs, run what shows that it works.
Follow the conventions that the repository has. Use tools rather than guesses. Say plainly what you did and what you could not do. Keep answers short.`,
}
