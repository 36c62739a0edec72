/**
 * The slash commands that a harness has in a directory, as clients list them: those that come with Super-Pi, custom ones, and skills.
 */
import { Effect } from "effect"
import type { HarnessListing } from "../domain/harness-view.ts"
import { rootsOf } from "../harness/discovery.ts"
import { DiscoveryFiles } from "../harness/discovery-files.ts"
import { frontMatter } from "../harness/front-matter.ts"
import type { PluginPlaces } from "../harness/plugin.ts"
import { findSkills, parsedSkills } from "../harness/plugins/skills/find.ts"
import { builtinNames } from "../harness/plugins/slash-commands/builtin.ts"
import { type CustomCommand, findCommands } from "../harness/plugins/slash-commands/find.ts"
import type { Command } from "../protocols/acp/serve.ts"

const builtin: Readonly<Record<(typeof builtinNames)[number], Omit<Command, "name">>> = {
  plan: { description: "Makes a plan and changes nothing", hint: "what to plan" },
  goal: { description: "What the conversation works towards; clear ends it", hint: "the goal, or clear" },
  boost: { description: "Thinks harder for this prompt", hint: "the prompt" },
  model: { description: "Changes the model", hint: "the model, then the prompt" },
  mode: { description: "Lowers what tools may do", hint: "plan, accept-edits or auto" },
}

/** Commands in one list. */
const commandLimit = 200
const descriptionChars = 200
const maxBytes = 1024 * 1024

const shorten = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length <= descriptionChars ? line : `${line.slice(0, descriptionChars - 1)}…`
}

const custom = async (
  files: DiscoveryFiles,
  { inside, name, path }: CustomCommand,
): Promise<ReadonlyArray<Command>> => {
  const found = await files.read(path, inside)
  if (found.type !== "text") return []
  const front = await frontMatter(found.text)
  if (front.type === "fault") return []
  const { "argument-hint": hint, description } = front.fields
  const [first = ""] = front.body.trim().split("\n", 1)
  return [
    {
      name,
      description: shorten(typeof description === "string" ? description : first),
      hint: typeof hint === "string" && hint !== "" ? shorten(hint) : "arguments",
    },
  ]
}

/** Finds them anew at each call; faults of single files leave those out. */
export const makeCommands =
  (places: PluginPlaces, { harnesses }: HarnessListing) =>
  async (cwd: string, harness: string | null): Promise<ReadonlyArray<Command>> => {
    const plugins = harnesses.find(({ id }) => id === harness)?.plugins ?? []
    const roots = await Effect.runPromise(rootsOf(cwd, places))
    const files = new DiscoveryFiles(maxBytes)
    const commands: Array<Command> = []
    if (plugins.includes("slash-commands")) {
      for (const name of builtinNames) commands.push({ name, ...builtin[name] })
      const found = await findCommands(roots, builtinNames)
      for (const command of found.commands.values()) commands.push(...(await custom(files, command)))
    }
    if (plugins.includes("skills")) {
      const { skills } = await findSkills(files, parsedSkills(), roots)
      for (const { description, name } of skills.values()) {
        commands.push({ name: `skill:${name}`, description: shorten(description), hint: "what to do" })
      }
    }
    return commands.slice(0, commandLimit)
  }
