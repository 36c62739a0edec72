/**
 * Workspace confinement: which file a path of a call means, and whether the call may touch it. Paths resolve like the file system does,
 * links followed from the deepest ancestor that exists, also for files that do not exist yet.
 *
 * Races: what was checked may be replaced by a link before it is opened. {@link openInside} therefore checks again what was opened, by
 * its descriptor, on Linux; elsewhere by resolving once more, which leaves a window of microseconds. Not covered: hard links, mounts,
 * and commands, which are not confined at all.
 */
import { constants, type Stats } from "node:fs"
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises"
import { homedir } from "node:os"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { Data, Effect } from "effect"
import { errorCode } from "../domain/error-code.ts"
import { isInside } from "./inside.ts"
import type { Workspace } from "./tool.ts"

/** A path of a call, resolved. */
export interface ResolvedPath {
  /** As the call wrote it. */
  readonly given: string
  /** Absolute, without links. */
  readonly canonical: string
  /** For messages: relative to the root when inside, with `/`; `.` for the root. */
  readonly display: string
  /** Null when nothing is there. */
  readonly stat: Stats | null
}

/** The path leaves a confined workspace. */
class OutsideWorkspace extends Data.TaggedError("OutsideWorkspace")<{
  readonly path: string
  readonly canonical: string
  readonly root: string
}> {
  override get message() {
    const through = this.canonical === this.path ? "" : ` (it leads to ${this.canonical})`
    return `${this.path}: expected a path inside the workspace ${this.root}, got one outside${through}`
  }
}

/** The path cannot be resolved: `reason` says why in words. */
class UnusablePath extends Data.TaggedError("UnusablePath")<{ readonly path: string; readonly reason: string }> {
  override get message() {
    return `${this.path}: ${this.reason}`
  }
}

export type PathError = OutsideWorkspace | UnusablePath

/** As many links as the kernel follows. */
const maxLinks = 40

/** The reason of a file system error in words, with what to do where that is known. */
export const reasonOf = (error: unknown): string => {
  switch (errorCode(error)) {
    case "ENOENT":
      return "no such file or directory"
    case "ENOTDIR":
      return "expected a directory on the way, got a file"
    case "EISDIR":
      return "expected a file, got a directory"
    case "EACCES":
    case "EPERM":
      return "permission denied"
    case "ELOOP":
      return "too many symbolic links"
    case "ENAMETOOLONG":
      return "the name is too long"
    case "ENOSPC":
    case "EDQUOT":
      return "the disk is full; free some space and try again"
    case "EROFS":
      return "the file system is read-only"
    case "EMFILE":
    case "ENFILE":
      return "too many open files; try again"
    default:
      return error instanceof Error ? error.message : String(error)
  }
}

/** The canonical form of an absolute path, of which the end need not exist. */
const canonicalize = async (path: string, links: { left: number }): Promise<string> => {
  try {
    return await realpath(path)
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error
  }
  const parent = dirname(path)
  if (parent === path) return path
  const canonicalParent = await canonicalize(parent, links)
  const own = join(canonicalParent, basename(path))
  let target: string
  try {
    target = await readlink(own)
  } catch (error) {
    // Nothing there (ENOENT), or something that is not a link and appeared meanwhile (EINVAL).
    if (errorCode(error) === "ENOENT" || errorCode(error) === "EINVAL") return own
    throw error
  }
  if (--links.left < 0) throw Object.assign(new Error("too many symbolic links"), { code: "ELOOP" })
  return canonicalize(resolve(canonicalParent, target), links)
}

const displayOf = (root: string, canonical: string): string => {
  if (!isInside(root, canonical)) return canonical
  const below = relative(root, canonical).split(sep).join("/")
  return below === "" ? "." : below
}

/** `~` and `~/x` are below the home directory, everything else is below the root unless absolute. */
const absolutize = (root: string, given: string): string => {
  const path = given.startsWith("file://") ? given.slice("file://".length) : given
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1))
  return isAbsolute(path) ? resolve(path) : resolve(root, path)
}

/**
 * Resolves a path of a call. `alsoInside` are canonical paths that may be read although they are outside (saved command output).
 */
export const resolvePath = (
  workspace: Workspace,
  given: string,
  alsoInside: (canonical: string) => boolean = () => false,
): Effect.Effect<ResolvedPath, PathError> =>
  Effect.gen(function* () {
    if (given.includes("\0"))
      return yield* new UnusablePath({ path: given.replace(/\0/g, "\\0"), reason: "a path cannot contain a zero byte" })
    const attempt = <A>(run: () => Promise<A>) =>
      Effect.tryPromise({ try: run, catch: (error) => new UnusablePath({ path: given, reason: reasonOf(error) }) })
    const root = yield* attempt(() => realpath(workspace.root)).pipe(
      Effect.mapError(
        ({ reason }) => new UnusablePath({ path: workspace.root, reason: `the workspace root: ${reason}` }),
      ),
    )
    const canonical = yield* attempt(() => canonicalize(absolutize(root, given), { left: maxLinks }))
    const inside = isInside(root, canonical) || (workspace.also ?? []).some((other) => isInside(other, canonical))
    if (workspace.confined && !inside && !alsoInside(canonical)) {
      return yield* new OutsideWorkspace({ path: given, canonical, root })
    }
    const stat = yield* attempt(() =>
      lstat(canonical).catch((error: unknown) => {
        if (errorCode(error) === "ENOENT") return null
        throw error
      }),
    )
    return { given, canonical, display: displayOf(root, canonical), stat }
  })

/** Where an open descriptor is now, or undefined where the platform does not tell. */
const placeOf = async (handle: FileHandle, canonical: string): Promise<string | undefined> => {
  if (process.platform === "linux") return readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined)
  return realpath(canonical).catch(() => undefined)
}

/** Times that a file is opened anew when another one was put in its place meanwhile, as an atomic write does. */
const openAttempts = 5

/**
 * Opens what {@link resolvePath} resolved and makes sure that this is what was opened. Fails with `ELOOP` when it has become a link, and
 * with `ESTALE` when it is not where it was.
 */
export const openInside = async (canonical: string, flags: number): Promise<FileHandle> => {
  let place: string | undefined
  for (let attempt = 0; attempt < openAttempts; attempt++) {
    const handle = await open(canonical, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    place = await placeOf(handle, canonical)
    if (place === undefined || place === canonical) return handle
    await handle.close()
  }
  throw Object.assign(new Error(`replaced while it was opened (now ${place}); try again`), { code: "ESTALE" })
}
