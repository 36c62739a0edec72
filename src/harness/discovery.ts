/**
 * Where files of a project and of its person are looked for: rules, skills, commands and hooks.
 *
 * 1. A project's files lie in the workspace root and in its parents up to the repository root (the directory with `.git`, of the same
 *    owner); without a repository in the workspace root alone. Nearest first.
 * 2. The person's lie in the configuration directory, then in the further discovery roots.
 * 3. What a project names stays inside the project: a link that leads out of it is not followed (`DiscoveryFiles.read`).
 */
import { stat } from "node:fs/promises"
import { dirname, isAbsolute, join, relative, sep } from "node:path"
import { Effect } from "effect"
import type { PluginPlaces } from "./plugin.ts"

export interface Roots {
  /** Absolute; the workspace root first, the repository root last. Empty where there is no file system. */
  readonly project: ReadonlyArray<string>
  /** Absolute; the configuration directory first. */
  readonly global: ReadonlyArray<string>
}

/** Directories between a workspace and its repository's root: more are not looked at. */
const maxLevels = 64

const uidOf = (path: string): Promise<number | null> =>
  stat(path).then(
    ({ uid }) => uid,
    () => null,
  )

/** From `start` up to the first directory with `.git`; `start` alone where there is none, nothing where it is not there itself. */
const upToRepository = async (start: string): Promise<ReadonlyArray<string>> => {
  const owner = await uidOf(start)
  if (owner === null) return []
  const found: Array<string> = []
  for (let at = start; found.length < maxLevels; at = dirname(at)) {
    found.push(at)
    const repository = await uidOf(join(at, ".git"))
    // What somebody else put above the workspace, for example into /tmp, is not its repository.
    if (repository !== null) return repository === owner || repository === process.getuid?.() ? found : [start]
    if (dirname(at) === at) break
  }
  return [start]
}

/** The roots for a workspace. `workspaceRoot` is absolute, or empty where the workspace has no files. */
export const rootsOf = (workspaceRoot: string, places: PluginPlaces): Effect.Effect<Roots> => {
  const global = [...new Set([places.configDir, ...places.discoveryRoots])].filter((root) => isAbsolute(root))
  if (!isAbsolute(workspaceRoot)) return Effect.succeed({ project: [], global })
  return Effect.map(
    Effect.promise(() => upToRepository(workspaceRoot)),
    (project) => ({ project, global }),
  )
}

/** The directory that a project's files stay inside; null where there is no project. */
export const projectOf = ({ project }: Roots): string | null => project.at(-1) ?? null

/** A path for people and models: relative to the workspace where it is below it, with `/`; absolute otherwise. */
export const shownPath = (workspaceRoot: string, path: string): string => {
  const below = relative(workspaceRoot, path)
  return workspaceRoot === "" || below === "" || below.startsWith("..") || isAbsolute(below)
    ? path
    : below.split(sep).join("/")
}
