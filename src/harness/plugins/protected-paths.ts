/**
 * Plugin ProtectedPaths: calls that touch `.env`, `.git/`, private keys or credentials are blocked, in every mode and without asking. Paths
 * are looked at as they are written and where they lead; commands by the paths that they name.
 */
import { join, sep } from "node:path"
import { Effect, Schema } from "effect"
import { type ProtectedRule, protectedBy, protectedGlob, protectedRule } from "../../domain/permissions-protected.ts"
import type { NamedPath } from "../../domain/shell/paths.ts"
import { programOf, type ShellScript } from "../../domain/shell/script.ts"
import { definePlugin } from "../define.ts"
import type { HookContext, ToolCallView, ToolDecision } from "../plugin.ts"
import { canonicalOf, maxPaths, pathsOfCall } from "./permissions/places.ts"
import { readCommand } from "./permissions/shell.ts"

const Options = Schema.Struct({
  /** Tools that are watched. Listing names is not: `ls` and `find` show no contents. */
  tools: Schema.optionalWith(Schema.Array(Schema.NonEmptyString), {
    default: () => ["read", "write", "edit", "grep", "artifact_put", "artifact_get", "bash"],
  }),
  /** Names or paths beside the built-in ones; `*` stands for any characters of one name. */
  paths: Schema.optionalWith(Schema.Array(Schema.NonEmptyString), { default: () => [] }),
})

/** Programs that say that a file is there, not what is in it. */
const lookers = new Set(["ls", "test", "[", "stat", "basename", "dirname", "cd", "pwd", "which", "file", "tree", "du"])
/** Programs that leave out what an option names. */
const leavesOut = /exclude|ignore|prune|skip/i
const findRuns = /^-(exec|execdir|ok|okdir|delete|fprint.*|fls)$/

/** The command without what only says which files are left alone, and without programs that do not open what they name. */
const opening = (script: ShellScript): ShellScript => ({
  ...script,
  commands: script.commands.map((command) => {
    const program = programOf(command)
    if (program !== null && lookers.has(program)) return { ...command, words: command.words.slice(0, 1) }
    const runs = command.words.some((word) => findRuns.test(word.value ?? ""))
    if (program === "find" && !runs) {
      const from = command.words.findIndex((word, at) => at > 0 && /^[-(!]/.test(word.text))
      return { ...command, words: from === -1 ? command.words : command.words.slice(0, from) }
    }
    const words = command.words.filter((word, at) => {
      const before = command.words[at - 1]?.value ?? ""
      const attached = word.value?.startsWith("-") === true && leavesOut.test(word.value)
      const apart = before.startsWith("-") && leavesOut.test(before) && !before.includes("=")
      return !attached && !apart && !word.value?.startsWith("!")
    })
    return { ...command, words }
  }),
})

/** Paths in code of another language: not parsed, so by what looks like one. */
const inCode = (script: ShellScript): ReadonlyArray<string> =>
  script.opaque
    .filter((one) => one.code)
    .flatMap(({ source }) => source.split(/[\s'"`()[\]{},;<>|&]+/).filter((one) => one !== ""))

/** Files of the node in its directories, where a workspace lies inside of these: the rest of them is the workspace's. */
const nodesFiles = ["*.db*", "checkpoints", "settings.json", "hooks.json", "trusted-hooks.json"]

/** The directories of the node, whole; only its files where the workspace itself is in there. */
const nodesOwn = ({ places, workspace }: HookContext<typeof Options.Type>): ReadonlyArray<string> =>
  [places.configDir, places.dataDir]
    .filter((one) => one !== "")
    .flatMap((place) => {
      const around = workspace.root === place || workspace.root.startsWith(join(place, sep))
      return around ? nodesFiles.map((name) => join(place, name)) : [place]
    })

const own = (context: HookContext<typeof Options.Type>): ReadonlyArray<ProtectedRule> => {
  const listed = (context.places.env.PROTECTED_PATHS ?? "").split(/[:,\n]/).map((one) => one.trim())
  return [...context.options.paths, ...listed, ...nodesOwn(context)].filter((one) => one !== "").map(protectedRule)
}

const beforeTool = (
  call: ToolCallView,
  context: HookContext<typeof Options.Type>,
): Effect.Effect<ToolDecision | undefined> =>
  Effect.gen(function* () {
    const { args, name } = call
    if (!context.options.tools.includes(name)) return undefined
    const { workspace } = context
    const rules = own(context)
    const command = name === "bash" && typeof args.command === "string" ? args.command : null
    const script = command === null ? null : opening(yield* readCommand(command))
    const globs = name === "grep" && typeof args.glob === "string" && !args.glob.startsWith("!") ? [args.glob] : []
    const paths: ReadonlyArray<NamedPath> = pathsOfCall(call, script)
    const blocked = (path: string, reason: string): ToolDecision => ({
      type: "block",
      rule: reason,
      reason: `Blocked: ${path} is protected (${reason}). Do without it, or ask the person to do this step.`,
    })
    for (const glob of [...globs, ...paths.flatMap((one) => (one.glob === null ? [] : [one.glob]))]) {
      const reason = protectedGlob(glob, workspace.root, rules)
      if (reason !== null) return blocked(glob, reason)
    }
    for (const text of script === null ? [] : inCode(script)) {
      const reason = protectedBy(text, workspace.root, rules)
      if (reason !== null) return blocked(text, reason)
    }
    const looked: Array<string> = []
    for (const { path, text } of paths) {
      const reason = protectedBy(path, workspace.root, rules)
      if (reason !== null) return blocked(text, reason)
      if (looked.length >= maxPaths || looked.includes(path)) continue
      looked.push(path)
      const led = protectedBy(yield* canonicalOf(workspace, path), workspace.root, rules)
      if (led !== null) return blocked(text, led)
    }
    return undefined
  })

export const protectedPaths = definePlugin({
  name: "protected-paths",
  aliases: ["ProtectedPaths", "protected_paths"],
  description: "Blocks reading and writing .env, .git/, private keys and credentials",
  options: Options,
  hooks: { beforeTool },
})
