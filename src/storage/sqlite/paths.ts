/**
 * Where the files of a database are. Every spelling of one file (relative, through symbolic links) has one canonical path, so that
 * it has one lock.
 */
import { createHash } from "node:crypto"
import { lstatSync, readlinkSync, realpathSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { basename, dirname, join, resolve } from "node:path"
import { makeDirectories } from "../directories.ts"
import { noDirectory } from "./failures.ts"

/** Longest socket path in bytes that every system takes (macOS allows 103, Linux 107). */
const maxSocketPath = 100

/** The absolute path with every symbolic link resolved, whether the file exists or not; creates its directory (mode 0700). Throws what says why it cannot be made. */
export const canonicalPath = (path: string): string => {
  const absolute = resolve(path)
  const directory = dirname(absolute)
  try {
    makeDirectories(directory, 0o700)
  } catch (cause) {
    throw noDirectory(path, directory, cause)
  }
  return follow(absolute, 0)
}

/** The canonical path without creating anything; a missing directory stays as it was given. */
export const canonicalPathOf = (path: string): string => {
  try {
    return follow(resolve(path), 0)
  } catch {
    return resolve(path)
  }
}

const follow = (path: string, depth: number): string => {
  const there = join(realpathSync(dirname(path)), basename(path))
  const stat = lstatSync(there, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink() !== true) return there
  if (depth === 40) return realpathSync(there)
  return follow(resolve(dirname(there), readlinkSync(there)), depth + 1)
}

/** The lock database whose exclusive lock is the lease. Never open it with `fs`: closing it would drop the lock. */
export const lockPath = (path: string): string => `${path}.lock`

/** Who holds the lease. */
export const ownerPath = (path: string): string => `${path}.owner`

/** A directory of this user for sockets whose path beside the database would be too long. */
export const socketDirectory = (): string => join(tmpdir(), `super-pi-${userInfo().uid}`)

/** The unix socket on which the owner of a database answers: beside it, or a hashed name in {@link socketDirectory}. */
export const socketPath = (path: string): string => {
  const beside = `${path}.sock`
  if (Buffer.byteLength(beside) <= maxSocketPath) return beside
  return join(socketDirectory(), `${createHash("sha256").update(path).digest("hex").slice(0, 24)}.sock`)
}
