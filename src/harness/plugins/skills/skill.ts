/**
 * A skill: instructions for one kind of work, in a directory with a `SKILL.md`. Reading one follows the public Agent Skills format
 * (agentskills.io/specification) and says what is wrong with a file that does not.
 */
import { basename, dirname } from "node:path"
import { nearestNames } from "../../../domain/nearest.ts"
import { frontMatter } from "../../front-matter.ts"

export interface Skill {
  readonly name: string
  readonly description: string
  /** Absolute path of its `SKILL.md`; for a built-in skill a name that is no path. */
  readonly path: string
  /** Its directory; null for a built-in one. */
  readonly directory: string | null
  readonly body: string
  /** Tools that it says it needs. For information: it gives no permission. */
  readonly allowedTools: ReadonlyArray<string>
  /** Whether the model may load it by itself; otherwise only a person does, with `/skill:name`. */
  readonly forModel: boolean
}

export type ReadSkill =
  | { readonly type: "skill"; readonly skill: Skill; readonly warnings: ReadonlyArray<string> }
  | { readonly type: "fault"; readonly reason: string }

const namePattern = /^(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*$/
const descriptionChars = 1_024
const fields = [
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools",
  "disable-model-invocation",
]

const shown = (value: unknown): string => {
  if (value === undefined) return "nothing"
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

const fault = (field: string, expected: string, actual: unknown): ReadSkill => ({
  type: "fault",
  reason: `${field}: expected ${expected}, got ${shown(actual)}`,
})

/** Names separated by blanks or commas outside of brackets, as in `Bash(git add:*) Read`; or a list of names. */
const toolNames = (value: unknown): ReadonlyArray<string> | null => {
  if (value === undefined || value === null) return []
  if (typeof value === "string") return value.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? []
  const names = Array.isArray(value) ? value.filter((one) => typeof one === "string") : null
  return names !== null && Array.isArray(value) && names.length === value.length ? names : null
}

/** What a `SKILL.md` says. */
export const readSkill = async (path: string, text: string): Promise<ReadSkill> => {
  const front = await frontMatter(text)
  if (front.type === "fault") return front
  const { name, description, "allowed-tools": tools, "disable-model-invocation": disabled } = front.fields
  if (typeof name !== "string" || !namePattern.test(name)) {
    return fault("name", "1 to 64 lower-case letters, digits and single dashes between them", name)
  }
  if (typeof description !== "string" || description.trim() === "") return fault("description", "a text", description)
  if (description.length > descriptionChars) {
    return fault("description", `at most ${descriptionChars} characters`, description.length)
  }
  const allowedTools = toolNames(tools)
  if (allowedTools === null) return fault("allowed-tools", "names of tools separated by blanks", tools)
  if (disabled !== undefined && typeof disabled !== "boolean") {
    return fault("disable-model-invocation", "true or false", disabled)
  }
  const warnings: Array<string> = []
  const folder = basename(dirname(path))
  if (folder !== name) warnings.push(`name: expected the name of its directory, ${shown(folder)}, got ${shown(name)}`)
  for (const field of Object.keys(front.fields)) {
    if (fields.includes(field)) continue
    // Other programs have fields of their own; only what is nearly one of ours is a mistake.
    const [near] = nearestNames(field, fields, 1)
    if (near !== undefined) warnings.push(`unknown field ${shown(field)}; did you mean ${shown(near)}?`)
  }
  const skill: Skill = {
    name,
    description: description.trim().replace(/\s+/g, " "),
    path,
    directory: dirname(path),
    body: front.body.trim(),
    allowedTools,
    forModel: disabled !== true,
  }
  return { type: "skill", skill, warnings }
}
