/**
 * Names of files, the work of `find` and `ls`. Synchronous: it runs in the sandbox.
 */
import { lstatSync, readdirSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { compileGlob } from "./glob.ts"
import { IgnoreRules } from "./ignore-rules.ts"
import type { JobContext } from "./job.ts"
import { byName, walk } from "./walk.ts"

export interface FindInput {
  /** Absolute canonical directory. */
  readonly path: string
  /** Workspace root. */
  readonly top: string
  readonly pattern: string
  readonly type: "file" | "directory" | "any"
  /** Also what git ignores. */
  readonly ignored: boolean
  readonly limit: number
}

export interface FindOutput {
  /** Relative to the search path, in path order; directories end with `/`. */
  readonly paths: ReadonlyArray<string>
  readonly more: boolean
  readonly unreadable: number
}

/** The paths below a directory that match a glob. */
export const find = (input: FindInput, job: JobContext): FindOutput => {
  const glob = compileGlob(input.pattern)
  const paths: Array<string> = []
  let unreadable = 0
  const entries = walk({
    root: input.path,
    top: input.top,
    ignored: input.ignored,
    at: job.at,
    unreadable: () => {
      unreadable++
    },
  })
  for (const entry of entries) {
    const directory = entry.kind === "directory"
    if (input.type === "file" && directory) continue
    if (input.type === "directory" && !directory) continue
    if (!glob.matches(entry.path, directory)) continue
    if (paths.length === input.limit) return { paths, more: true, unreadable }
    paths.push(directory ? `${entry.path}/` : entry.path)
  }
  return { paths, more: false, unreadable }
}

export interface ListInput {
  /** Absolute canonical directory. */
  readonly path: string
  readonly top: string
  readonly ignored: boolean
  readonly limit: number
}

export interface ListedEntry {
  readonly name: string
  readonly kind: "file" | "directory" | "symlink" | "other"
  /** Bytes, for files. */
  readonly size: number | null
  /** Where a symlink points, as it is written. */
  readonly target: string | null
}

export interface ListOutput {
  readonly entries: ReadonlyArray<ListedEntry>
  /** Entries in the directory, shown or not. */
  readonly total: number
  /** Names left out because git ignores them, at most 20. */
  readonly hidden: ReadonlyArray<string>
  readonly hiddenCount: number
}

const describe = (path: string, name: string): ListedEntry => {
  try {
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return { name, kind: "symlink", size: null, target: readlinkSync(path) }
    if (stat.isDirectory()) return { name, kind: "directory", size: null, target: null }
    return stat.isFile()
      ? { name, kind: "file", size: stat.size, target: null }
      : { name, kind: "other", size: null, target: null }
  } catch {
    // Gone or locked since it was listed.
    return { name, kind: "other", size: null, target: null }
  }
}

/** The entries of a directory in name order. */
export const list = (input: ListInput, job: JobContext): ListOutput => {
  job.at(input.path)
  const rules = input.ignored ? undefined : IgnoreRules.of(input.path, input.top)
  const names = readdirSync(input.path).sort(byName)
  const entries: Array<ListedEntry> = []
  const hidden: Array<string> = []
  let hiddenCount = 0
  for (const name of names) {
    const path = join(input.path, name)
    if (rules !== undefined && (name === ".git" || rules.ignores(path, isPlainDirectory(path)))) {
      hiddenCount++
      if (hidden.length < 20) hidden.push(name)
    } else if (entries.length < input.limit) entries.push(describe(path, name))
  }
  return { entries, total: names.length, hidden, hiddenCount }
}

/** A directory that is not reached through a link: git sees a link as a file. */
const isPlainDirectory = (path: string): boolean => {
  try {
    return lstatSync(path).isDirectory()
  } catch {
    return false
  }
}
