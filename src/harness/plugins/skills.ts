/**
 * Plugin Skills: finds `SKILL.md` files of the project, the person and the program, shows the model an index of them, and gives the whole of
 * one when the model (tool `skill`) or the person (`/skill:name`) asks for it. docs/skills.md has the places and the format.
 */
import { Effect, FiberRef, Schema } from "effect"
import type { UserPart } from "../../domain/message.ts"
import { text } from "../../domain/message.ts"
import { nearest } from "../../domain/nearest.ts"
import { defineTool, toolFailure } from "../../tools/define.ts"
import { definePlugin } from "../define.ts"
import { rootsOf } from "../discovery.ts"
import { DiscoveryFiles } from "../discovery-files.ts"
import { Reports } from "../discovery-report.ts"
import type { HookContext, PluginPlaces } from "../plugin.ts"
import { findSkills, parsedSkills } from "./skills/find.ts"
import { skillIndex } from "./skills/index-section.ts"
import { instructionsOf, loadFile } from "./skills/load.ts"

const SkillsOptions = Schema.Struct({
  /** Tokens that the index may take in the prompt. */
  indexTokens: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 100_000)), { default: () => 4_000 }),
})

const maxBytes = 1024 * 1024
const toolName = "skill"
export const skillsSection = "skills"

/** The places of the conversation whose call is running: a tool's context does not have them. */
const placesOfCall = FiberRef.unsafeMake<PluginPlaces | null>(null)

const Parameters = Schema.Struct({
  name: Schema.NonEmptyString.annotations({ description: "Name of the skill, from the index" }),
  file: Schema.optional(
    Schema.NonEmptyString.annotations({ description: "Gives this file of the skill instead of its instructions" }),
  ),
})

/** `/skill:name` and what follows. */
const invocation = /^\/skill:(\S+)(?:\s+([\s\S]*))?$/

/** One instance remembers the files that it has read. */
export const makeSkills = () => {
  const files = new DiscoveryFiles(maxBytes)
  const parsed = parsedSkills()
  const reports = new Reports()
  const skillsFor = (workspace: string, places: PluginPlaces) =>
    Effect.flatMap(rootsOf(workspace, places), (roots) => Effect.promise(() => findSkills(files, parsed, roots)))
  const found = <O>(context: HookContext<O>) =>
    Effect.tap(skillsFor(context.workspace.root, context.places), (all) => reports.tell(all.reports, context))

  const skillTool = defineTool({
    name: toolName,
    description: "Gives the instructions of a skill and the list of its files, or one of these files.",
    parameters: Parameters,
    effects: ["read"],
    replay: "safe",
    execute: ({ file, name }, { workspace }) =>
      Effect.gen(function* () {
        const places = yield* FiberRef.get(placesOfCall)
        const { skills } = yield* skillsFor(workspace.root, places ?? nowhere)
        const skill = skills.get(name)
        if (skill === undefined || !skill.forModel) {
          const names = [...skills.values()].filter((one) => one.forModel).map((one) => one.name)
          const near = nearest(name, names)
          const instead = near === null ? "there is none" : `one of ${names.join(", ")}; the nearest is "${near}"`
          return yield* Effect.fail(toolFailure(toolName, `name: expected a skill (${instead}), got "${name}"`))
        }
        if (file !== undefined) return yield* loadFile(files, skill, file)
        const body = yield* Effect.promise(() => instructionsOf(skill, workspace.root))
        return { output: [text(body)], structuredOutput: { name, path: skill.path } }
      }),
  })

  return definePlugin({
    name: "skills",
    aliases: ["skill"],
    description:
      "Skills (SKILL.md) of the project, the person and the program: an index in the prompt, loaded when they are needed",
    options: SkillsOptions,
    tools: () => [skillTool],
    hooks: {
      onInput: ({ content }, context) =>
        Effect.gen(function* () {
          const [first, ...rest] = content
          const asked = first?.type === "text" ? invocation.exec(first.text.trim()) : null
          if (asked === null || context.depth > 0) return undefined
          const [, name = "", words = ""] = asked
          const { skills } = yield* found(context)
          const skill = skills.get(name)
          if (skill === undefined) {
            const near = nearest(name, skills.keys())
            const message = `/skill:${name}: expected a skill (the nearest is "${near}"), got "${name}"; the input stays as it is`
            return yield* Effect.as(context.notify("warning", message), undefined)
          }
          const body = yield* Effect.promise(() => instructionsOf(skill, context.workspace.root))
          const request = words.trim() === "" ? "Do what this skill says." : words.trim()
          const parts: ReadonlyArray<UserPart> = [text(`${body}\n\n${request}`), ...rest]
          return { content: parts }
        }),
      beforeRequest: (request, context) =>
        Effect.map(found(context), ({ skills }) => {
          const index = skillIndex(context.workspace.root, skills.values(), context.options.indexTokens)
          const offered = index !== null && request.tools.includes(toolName)
          return {
            sections: { [skillsSection]: offered ? index : null },
            ...(index === null ? { tools: request.tools.filter((name) => name !== toolName) } : {}),
          }
        }),
      wrapTool: (call, run, context) =>
        call.name === toolName ? Effect.locally(run, placesOfCall, context.places) : run,
    },
  })
}

const nowhere: PluginPlaces = { configDir: "", dataDir: "", discoveryRoots: [], env: {} }

export const skills = makeSkills()
