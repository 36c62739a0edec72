/**
 * Everything in a workspace, by absolute path, as far as a command is watched: not in directories that are made anew from others
 * (`node_modules` and the like), not git's objects, not the node's own database and data.
 */
import type { BigIntStats } from "node:fs"
import { readdir } from "node:fs/promises"
import { basename, dirname, join, sep } from "node:path"
import { statOf } from "./image.ts"
import { temporary } from "./leftovers.ts"

/** Names of directories that are not looked into. */
export const defaultSkip: ReadonlyArray<string> = [
  "node_modules",
  ".venv",
  "venv",
  "__pycache__",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  ".tox",
  ".gradle",
  ".next",
  ".turbo",
  ".parcel-cache",
  ".terraform",
  "target",
]

export interface WalkOptions {
  /** Absolute directories; what is in two of them comes once. */
  readonly roots: ReadonlyArray<string>
  readonly skip: ReadonlySet<string>
  /** Absolute path beginnings that are the node's own. */
  readonly own: ReadonlyArray<string>
  /** More entries than this end the walk. */
  readonly maxEntries: number
}

/** Directories read at once. */
const concurrency = 16

const isGitDirectory = (path: string): boolean =>
  path.split(sep).some((name) => name === ".git" || name.endsWith(".git"))

/** Of git's own directory what never changes meaning (objects) or is about to go (locks). */
const isGitInternal = (directory: string, name: string): boolean =>
  name === "objects" ||
  name === "lfs" ||
  name.endsWith(".lock") ||
  (name.startsWith("fsmonitor--daemon") && basename(directory) === ".git")

/** Null when there is more than `maxEntries`. Directories that cannot be read are taken for empty. */
export const walk = async ({
  maxEntries,
  own,
  roots,
  skip,
}: WalkOptions): Promise<ReadonlyMap<string, BigIntStats> | null> => {
  const found = new Map<string, BigIntStats>()
  const queue = [...new Set(roots)]
  const seen = new Set(queue)
  const inGit = new Set(queue.slice(1))
  const visit = async (directory: string): Promise<void> => {
    const names = await readdir(directory).catch(() => [])
    const git = inGit.has(directory) || isGitDirectory(directory)
    for (const name of names) {
      const path = join(directory, name)
      if (found.size > maxEntries || own.some((mine) => path.startsWith(mine))) continue
      if (temporary.test(name) || (git && isGitInternal(directory, name))) continue
      const stat = await statOf(path).catch(() => null)
      if (stat === null) continue
      if (stat.isDirectory()) {
        if (skip.has(name) && !git) continue
        if (git) inGit.add(path)
        if (!seen.has(path)) {
          seen.add(path)
          queue.push(path)
        }
      }
      found.set(path, stat)
    }
  }
  while (queue.length > 0 && found.size <= maxEntries) {
    await Promise.all(queue.splice(0, concurrency).map(visit))
  }
  return found.size > maxEntries ? null : found
}

/** The directories above `path` that do not exist, outermost first. */
export const missingParents = async (path: string): Promise<ReadonlyArray<string>> => {
  const missing: Array<string> = []
  for (let at = dirname(path); at !== dirname(at) && (await statOf(at)) === null; at = dirname(at)) missing.unshift(at)
  return missing
}
