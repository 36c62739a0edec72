/**
 * What git ignores, for walks: `.gitignore` of every directory on the way, deeper ones winning, `!` included, and `.git/info/exclude`.
 * A nested repository starts over, as in git. Rules are rewritten to be relative to one base, so that one matcher sees them in order.
 */
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve, sep } from "node:path"
import ignore, { type Ignore } from "ignore"

/** Git folds case where file systems usually do. */
const options = { ignorecase: process.platform === "darwin" || process.platform === "win32" }

/** The matcher remembers every path that it was asked; it starts over after this many, to keep the heap small. */
const forgetAfter = 50_000

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** The rules of one file in directory `prefix` ("" or `a/b/`), as rules of the base directory. */
const rebase = (text: string, prefix: string): Array<string> => {
  const escaped = prefix.replace(/[\\*?[\]!# ]/g, "\\$&")
  const rules: Array<string> = []
  for (const raw of text.replace(/^\uFEFF/, "").split("\n")) {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw
    if (line === "" || line.startsWith("#")) continue
    if (prefix === "") {
      rules.push(line)
      continue
    }
    const negated = line.startsWith("!")
    const body = negated ? line.slice(1) : line
    const trimmed = body.replace(/(?<!\\) +$/, "")
    if (trimmed === "" || trimmed === "/") continue
    const anchored = trimmed.slice(0, -1).includes("/")
    const place = anchored ? trimmed.replace(/^\//, "") : `**/${trimmed}`
    rules.push(`${negated ? "!" : ""}/${escaped}${place}`)
  }
  return rules
}

/** The `info/exclude` of the repository whose `.git` is in `directory`. */
const excludes = (directory: string): string | undefined => {
  const dot = join(directory, ".git")
  let gitDirectory = dot
  const link = readText(dot)?.match(/^gitdir: (.+)$/m)?.[1]
  if (link !== undefined) {
    gitDirectory = resolve(directory, link.trim())
    const common = readText(join(gitDirectory, "commondir"))
    if (common !== undefined) gitDirectory = resolve(gitDirectory, common.trim())
  }
  return readText(join(gitDirectory, "info", "exclude"))
}

/** Whether a directory is the top of a repository. */
const isRepository = (directory: string): boolean => existsSync(join(directory, ".git"))

const posix = (path: string): string => (sep === "/" ? path : path.split(sep).join("/"))

/** The rules that hold in one directory. Immutable but for the matcher's memory. */
export class IgnoreRules {
  readonly #base: string
  #matcher: Ignore
  #asked = 0

  private constructor(base: string, matcher: Ignore) {
    this.#base = base
    this.#matcher = matcher
  }

  /**
   * The rules that hold in `directory`: those from the top of its repository down to it; outside a repository, those from `top` (an
   * ancestor, for example the workspace root) down. A directory that is itself ignored was asked for by name: only rules below it count.
   */
  static of(directory: string, top: string): IgnoreRules {
    let base = directory
    for (let at = directory; ; at = dirname(at)) {
      if (isRepository(at)) {
        base = at
        break
      }
      if (dirname(at) === at) {
        const inside = directory === top || directory.startsWith(top.endsWith(sep) ? top : top + sep)
        base = inside ? top : directory
        break
      }
    }
    let rules = IgnoreRules.#start(base)
    const steps = relative(base, directory)
      .split(sep)
      .filter((step) => step !== "")
    let at = base
    for (const step of steps) {
      at = join(at, step)
      if (rules.ignores(at, true)) return IgnoreRules.#start(directory)
      rules = rules.enter(at)
    }
    return rules
  }

  static #start(base: string): IgnoreRules {
    const matcher = ignore(options)
    const exclude = isRepository(base) ? excludes(base) : undefined
    if (exclude !== undefined) matcher.add(rebase(exclude, ""))
    const own = readText(join(base, ".gitignore"))
    if (own !== undefined) matcher.add(rebase(own, ""))
    return new IgnoreRules(base, matcher)
  }

  /** The rules in a directory directly below one where these hold. */
  enter(directory: string): IgnoreRules {
    if (isRepository(directory)) return IgnoreRules.#start(directory)
    const own = readText(join(directory, ".gitignore"))
    if (own === undefined) return this
    const prefix = `${posix(relative(this.#base, directory))}/`
    return new IgnoreRules(this.#base, ignore(options).add(this.#matcher).add(rebase(own, prefix)))
  }

  /** Whether git ignores this path, an absolute one below the base. */
  ignores(path: string, isDirectory: boolean): boolean {
    const below = posix(relative(this.#base, path))
    if (below === "" || below.startsWith("../")) return false
    if (++this.#asked > forgetAfter) {
      this.#asked = 0
      this.#matcher = ignore(options).add(this.#matcher)
    }
    return this.#matcher.ignores(isDirectory ? `${below}/` : below)
  }
}
