/**
 * A deterministic walk of a directory tree: names in code unit order, ignored paths left out, symbolic links reported but never
 * followed (so that it ends and stays inside), `.git` never entered. Synchronous: it runs in the sandbox.
 */
import { type Dirent, readdirSync } from "node:fs"
import { join } from "node:path"
import { IgnoreRules } from "./ignore-rules.ts"

/** What a walk finds. `path` is relative to its start, with `/`. */
export interface Walked {
  readonly path: string
  readonly absolute: string
  readonly kind: "file" | "directory" | "symlink" | "other"
}

export interface WalkOptions {
  /** Absolute start. */
  readonly root: string
  /** Workspace root: where ignore rules start outside a repository. */
  readonly top: string
  /** Also what git ignores. */
  readonly ignored: boolean
  /** Called with every directory that is entered. */
  readonly at: (path: string) => void
  /** Called with every directory that cannot be read. */
  readonly unreadable?: (path: string) => void
}

const kindOf = (entry: Dirent): Walked["kind"] => {
  if (entry.isFile()) return "file"
  if (entry.isDirectory()) return "directory"
  return entry.isSymbolicLink() ? "symlink" : "other"
}

/** Compares names by code unit, which does not depend on the locale. */
export const byName = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

interface Pending {
  readonly absolute: string
  readonly path: string
  readonly rules: IgnoreRules | undefined
}

/** Everything below `root`, each directory before what is in it. */
export function* walk(options: WalkOptions): Generator<Walked> {
  const first = options.ignored ? undefined : IgnoreRules.of(options.root, options.top)
  yield* visit({ absolute: options.root, path: "", rules: first }, options)
}

function* visit(start: Pending, options: WalkOptions): Generator<Walked> {
  // An explicit stack of iterators: a tree may be deeper than the call stack.
  const stack: Array<Iterator<readonly [Dirent, Pending]>> = [open(start, options)]
  while (true) {
    const top = stack.at(-1)
    if (top === undefined) return
    const next = top.next()
    if (next.done === true) {
      stack.pop()
      continue
    }
    const [entry, parent] = next.value
    const kind = kindOf(entry)
    if (entry.name === ".git") continue
    const absolute = join(parent.absolute, entry.name)
    if (parent.rules?.ignores(absolute, kind === "directory")) continue
    const path = parent.path === "" ? entry.name : `${parent.path}/${entry.name}`
    yield { path, absolute, kind }
    if (kind === "directory") stack.push(open({ absolute, path, rules: parent.rules?.enter(absolute) }, options))
  }
}

function* open(directory: Pending, options: WalkOptions): Generator<readonly [Dirent, Pending]> {
  options.at(directory.absolute)
  let entries: Array<Dirent>
  try {
    entries = readdirSync(directory.absolute, { withFileTypes: true })
  } catch {
    options.unreadable?.(directory.path)
    return
  }
  entries.sort((left, right) => byName(left.name, right.name))
  for (const entry of entries) yield [entry, directory]
}
