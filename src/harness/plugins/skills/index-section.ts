/**
 * The index of skills in the prompt: name, description and place of each, within a budget of tokens. Pure.
 */
import { estimateText } from "../../../domain/token-estimate.ts"
import { shownPath } from "../../discovery.ts"
import type { Skill } from "./skill.ts"

const intro = `Skills are instructions for kinds of work. Where one fits what you are asked, load it with the tool "skill" before you begin.`

/** Characters that are left of a description where there is little room. */
const shortChars = 120

const shorten = (description: string): string =>
  description.length <= shortChars ? description : `${description.slice(0, shortChars - 1)}…`

/** The section for the skills that the model may load, nearest first; null where there are none. */
export const skillIndex = (workspace: string, skills: Iterable<Skill>, budgetTokens: number): string | null => {
  const offered = [...skills].filter((skill) => skill.forModel)
  if (offered.length === 0) return null
  const line = (skill: Skill, description: string): string =>
    `- ${skill.name}: ${description} (${shownPath(workspace, skill.path)})`
  const whole = offered.map((skill) => line(skill, skill.description))
  const fits = (lines: ReadonlyArray<string>) => estimateText([intro, ...lines].join("\n")) <= budgetTokens
  if (fits(whole)) return [intro, ...whole].join("\n")
  const short = offered.map((skill) => line(skill, shorten(skill.description)))
  if (fits(short)) return [intro, ...short].join("\n")
  const names = (from: number) =>
    `- without room here: ${offered
      .slice(from)
      .map(({ name }) => name)
      .join(", ")}`
  let shown = 0
  while (shown < short.length && fits([...short.slice(0, shown + 1), names(shown + 1)])) shown++
  return [intro, ...short.slice(0, shown), names(shown)].join("\n")
}
