/**
 * Finds rules files: those of the project, of the person, and of directories below the workspace in which work happens.
 */
import { join } from "node:path"
import { projectOf, type Roots, shownPath } from "../../discovery.ts"
import { type Discovered, type DiscoveryFiles, listDirectory } from "../../discovery-files.ts"
import type { Report } from "../../discovery-report.ts"

export interface RulesFile {
  /** As people and the model see it. */
  readonly path: string
  readonly text: string
}

/** `files` has the nearest first. */
export interface FoundRules {
  readonly files: ReadonlyArray<RulesFile>
  readonly reports: ReadonlyArray<Report>
}

interface Search {
  readonly files: DiscoveryFiles
  readonly workspace: string
  /** File names that hold rules, in order. */
  readonly names: ReadonlyArray<string>
}

const reportOf = (found: Extract<Discovered, { readonly type: "fault" }>): Report => ({
  level: "warning",
  message: `rules: ${found.path}: ${found.reason}; the file is skipped`,
  version: found.version,
})

/** Paths of the files in a directory named `*.md`. */
const markdownIn = async (
  directory: string,
): Promise<{ paths: ReadonlyArray<string>; reports: ReadonlyArray<Report> }> => {
  const { fault, files } = await listDirectory(directory)
  const paths = files.filter((name) => name.endsWith(".md")).map((name) => join(directory, name))
  const message = `rules: ${directory}: ${fault}`
  return { paths, reports: fault === null ? [] : [{ level: "warning", message, version: "" }] }
}

/** A file that only says `@AGENTS.md` points to its neighbour, which is read anyway. */
const isPointer = (text: string): boolean => /^@\S+$/.test(text.trim())

/** Reads candidates in their order; the same text twice counts once. */
const readAll = async (
  search: Search,
  candidates: ReadonlyArray<{ readonly path: string; readonly inside: string | null }>,
  before: ReadonlyArray<RulesFile> = [],
): Promise<FoundRules> => {
  const read = await Promise.all(candidates.map(({ inside, path }) => search.files.read(path, inside)))
  const seen = new Set(before.map((file) => file.text))
  const files: Array<RulesFile> = []
  const reports: Array<Report> = []
  for (const found of read) {
    if (found.type === "fault") reports.push(reportOf(found))
    if (found.type !== "text") continue
    const text = found.text.trim()
    if (text === "" || isPointer(text) || seen.has(text)) continue
    seen.add(text)
    files.push({ path: shownPath(search.workspace, found.path), text })
  }
  return { files, reports }
}

/** Rules of the project, from the workspace root up to the repository root, then the person's. */
export const findRules = async (search: Search, { global, project }: Roots): Promise<FoundRules> => {
  const inside = projectOf({ global, project })
  const ofProject = project.map(async (root) => {
    const own = await markdownIn(join(root, ".agents", "rules"))
    const paths = [...search.names.map((name) => join(root, name)), ...own.paths]
    return { candidates: paths.map((path) => ({ path, inside })), reports: own.reports }
  })
  const ofPerson = global.map(async (root) => {
    const own = await markdownIn(join(root, "rules"))
    const paths = [...search.names.map((name) => join(root, name)), ...own.paths]
    return { candidates: paths.map((path) => ({ path, inside: null })), reports: own.reports }
  })
  const found = await Promise.all([...ofProject, ...ofPerson])
  const { files, reports } = await readAll(
    search,
    found.flatMap(({ candidates }) => candidates),
  )
  return { files, reports: [...found.flatMap((one) => one.reports), ...reports] }
}

/** Rules of directories below the workspace root, given as paths relative to it. `known` are rules found elsewhere. */
export const findNestedRules = (
  search: Search,
  directories: ReadonlyArray<string>,
  known: ReadonlyArray<RulesFile>,
): Promise<FoundRules> =>
  readAll(
    search,
    directories.flatMap((directory) =>
      search.names.map((name) => ({ path: join(search.workspace, directory, name), inside: search.workspace })),
    ),
    known,
  )
