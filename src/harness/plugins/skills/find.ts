/**
 * Finds skills: those of the project, nearest first, then the person's, then the built-in ones. Of two with one name the nearest wins.
 */
import { join } from "node:path"
import { Bounded } from "../../bounded.ts"
import { projectOf, type Roots } from "../../discovery.ts"
import { type DiscoveryFiles, listDirectory } from "../../discovery-files.ts"
import type { Report } from "../../discovery-report.ts"
import { builtinSkills } from "./builtin.ts"
import { type ReadSkill, readSkill, type Skill } from "./skill.ts"

export interface FoundSkills {
  /** By name, nearest first. */
  readonly skills: ReadonlyMap<string, Skill>
  readonly reports: ReadonlyArray<Report>
}

/** Places of skills in a directory of a project. */
const inProject = [".agents/skills", ".claude/skills", ".super-pi/skills"]

/** Skills of one conversation; more are not looked at. */
const maxSkills = 500

/** What was parsed, until the file changes. */
export type ParsedSkills = Bounded<string, { readonly version: string; readonly read: ReadSkill }>
export const parsedSkills = (): ParsedSkills => new Bounded(maxSkills * 4)

interface Candidate {
  readonly path: string
  readonly inside: string | null
}

export const findSkills = async (files: DiscoveryFiles, parsed: ParsedSkills, roots: Roots): Promise<FoundSkills> => {
  const inside = projectOf(roots)
  const places = [
    ...roots.project.flatMap((root) => inProject.map((place) => ({ directory: join(root, place), inside }))),
    ...roots.global.map((root) => ({ directory: join(root, "skills"), inside: null })),
  ]
  const listed = await Promise.all(places.map(({ directory }) => listDirectory(directory)))
  const reports: Array<Report> = []
  const warn = (path: string, what: string, version: string) =>
    reports.push({ level: "warning", message: `skills: ${path}: ${what}`, version })
  const candidates: Array<Candidate> = []
  for (const [at, place] of places.entries()) {
    const { directories = [], fault = null } = listed[at] ?? {}
    if (fault !== null) warn(place.directory, fault, "")
    for (const name of directories) {
      candidates.push({ path: join(place.directory, name, "SKILL.md"), inside: place.inside })
    }
  }
  if (candidates.length > maxSkills) {
    warn("discovery", `expected at most ${maxSkills} skills, got ${candidates.length}; the farthest are left out`, "")
  }
  const skills = new Map<string, Skill>()
  const read = await Promise.all(
    candidates.slice(0, maxSkills).map(async ({ inside: boundary, path }) => {
      const found = await files.read(path, boundary)
      if (found.type !== "text") return found
      const before = parsed.get(path)
      if (before?.version === found.version) return { ...before, path }
      const fresh = { version: found.version, read: await readSkill(path, found.text) }
      parsed.set(path, fresh)
      return { ...fresh, path }
    }),
  )
  for (const found of read) {
    if ("type" in found) {
      if (found.type === "fault") warn(found.path, `${found.reason}; the skill is skipped`, found.version)
      continue
    }
    const { path, read: result, version } = found
    if (result.type === "fault") {
      warn(path, `${result.reason}; the skill is skipped`, version)
      continue
    }
    for (const warning of result.warnings) warn(path, warning, version)
    const taken = skills.get(result.skill.name)
    if (taken === undefined) skills.set(result.skill.name, result.skill)
    else
      warn(
        path,
        `the name "${result.skill.name}" is that of ${taken.path}, which is nearer; this one is not used`,
        version,
      )
  }
  for (const skill of builtinSkills) if (!skills.has(skill.name)) skills.set(skill.name, skill)
  return { skills, reports }
}
