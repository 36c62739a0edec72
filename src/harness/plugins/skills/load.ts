/**
 * What a loaded skill gives: its instructions with the list of its files, or one of these files.
 */
import { realpath } from "node:fs/promises"
import { isAbsolute, join, normalize, sep } from "node:path"
import { Effect } from "effect"
import { text } from "../../../domain/message.ts"
import { toolFailure } from "../../../tools/define.ts"
import { outputChars } from "../../../tools/limits.ts"
import type { ToolFailure, ToolResult } from "../../../tools/tool.ts"
import { shownPath } from "../../discovery.ts"
import { type DiscoveryFiles, listDirectory } from "../../discovery-files.ts"
import type { Skill } from "./skill.ts"

const maxFiles = 100
const maxDepth = 4

/** Files of a skill beside its `SKILL.md`, relative with `/`; links to directories are followed no deeper than the limit. */
const filesOf = async (directory: string): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  const visit = async (below: string, depth: number): Promise<void> => {
    const { directories, files } = await listDirectory(join(directory, below))
    for (const name of files) {
      const path = below === "" ? name : `${below}/${name}`
      if (path !== "SKILL.md" && found.length < maxFiles) found.push(path)
    }
    if (depth >= maxDepth) return
    for (const name of directories) {
      if (name === ".git" || name === "node_modules" || found.length >= maxFiles) continue
      await visit(below === "" ? name : `${below}/${name}`, depth + 1)
    }
  }
  await visit("", 0)
  return found
}

/** The instructions of a skill as text for a model. */
export const instructionsOf = async (skill: Skill, workspace: string): Promise<string> => {
  const files = skill.directory === null ? [] : await filesOf(skill.directory)
  const facts = [
    ...(skill.directory === null ? [] : [`Directory of the skill: ${shownPath(workspace, skill.directory)}`]),
    ...(files.length === 0 ? [] : [`Its files (get one with the argument "file"): ${files.join(", ")}`]),
    ...(skill.allowedTools.length === 0 ? [] : [`Tools that it is written for: ${skill.allowedTools.join(", ")}`]),
  ]
  const room = outputChars - 2_000
  const body =
    skill.body.length <= room
      ? skill.body
      : `${skill.body.slice(0, room)}\n[cut: the rest is in ${shownPath(workspace, skill.path)}]`
  return `<skill name="${skill.name}">\n${[...facts, "", body].join("\n").trim()}\n</skill>`
}

/** A file of a skill. It stays inside the skill's directory, whatever links there are. */
export const loadFile = (files: DiscoveryFiles, skill: Skill, name: string): Effect.Effect<ToolResult, ToolFailure> =>
  Effect.gen(function* () {
    const { directory } = skill
    const refuse = (message: string) => Effect.fail(toolFailure("skill", message))
    const path = normalize(name)
    const outside = isAbsolute(path) || path === ".." || path.startsWith(`..${sep}`) || name.includes("\0")
    if (directory === null || outside) {
      return yield* refuse(
        `file: expected the relative path of a file of the skill "${skill.name}", got ${JSON.stringify(name)}`,
      )
    }
    const found = yield* Effect.promise(async () =>
      files.read(join(directory, path), await realpath(directory).catch(() => directory)),
    )
    if (found.type === "fault") return yield* refuse(`${name}: ${found.reason}`)
    if (found.type === "missing") {
      const known = yield* Effect.promise(() => filesOf(directory))
      return yield* refuse(`file: expected one of ${known.join(", ") || "no file at all"}, got ${JSON.stringify(name)}`)
    }
    const whole = found.text.length <= outputChars
    const note = `\n[cut: ${found.text.length - outputChars} of ${found.text.length} characters are left out]`
    return { output: [text(whole ? found.text : `${found.text.slice(0, outputChars)}${note}`)] }
  })
