/**
 * What SQLite and the file system report, as the storage errors with advice. The one place that knows their codes.
 */
import { errorCode } from "../../domain/error-code.ts"
import {
  Conflict,
  CorruptRow,
  Fenced,
  ForeignDatabase,
  NewerDatabase,
  type OpenError,
  StorageUnavailable,
} from "../errors.ts"

/** Somebody else holds a lock that the statement needs; it may succeed a moment later. */
export const isBusy = (cause: unknown): boolean => {
  const code = errorCode(cause)
  return code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")
}

/** What the driver itself reported: the errors of `@effect/sql` carry it as their cause. */
export const reported = (cause: unknown): unknown => {
  let found = cause
  while (errorCode(found) === "" && found instanceof Error && found.cause !== undefined) found = found.cause
  return found
}

const known: ReadonlyArray<readonly [prefix: string, cause: string, advice: string]> = [
  [
    "SQLITE_FULL",
    "the disk or the quota of this user is full",
    "Free some space; nothing was written and work goes on then",
  ],
  ["ENOSPC", "the disk is full", "Free some space and try again"],
  ["EDQUOT", "the quota of this user is full", "Free some space and try again"],
  [
    "SQLITE_READONLY",
    "the file or its directory is read-only",
    "Make both writable for this user, or give another path with --db",
  ],
  ["EROFS", "the file system is read-only", "Give another path with --db"],
  ["SQLITE_PERM", "access is denied", "Make the file readable and writable for this user"],
  [
    "EACCES",
    "access is denied",
    "Make the file and its directory accessible for this user, or give another path with --db",
  ],
  [
    "EPERM",
    "access is denied",
    "Make the file and its directory accessible for this user, or give another path with --db",
  ],
  ["SQLITE_AUTH", "access is denied", "Make the file readable and writable for this user"],
  [
    "SQLITE_CANTOPEN",
    "the file cannot be opened",
    "Check that the directory exists and that this user may write in it",
  ],
  ["ENOENT", "there is no such file", "Check the path; a first prompt creates the database"],
  ["ENOTDIR", "a part of the path is not a directory", "Check the path"],
  ["EISDIR", "expected a file, got a directory", "Give the path of a file with --db"],
  [
    "SQLITE_IOERR",
    "the disk reported an input/output error",
    "Check the disk and its cables or mount; nothing was written",
  ],
  ["SQLITE_BUSY", "another program is holding the file", "Close the program that has a transaction open on it"],
  ["SQLITE_LOCKED", "another program is holding the file", "Close the program that has a transaction open on it"],
  ["SQLITE_CORRUPT", "the file is damaged", "Restore a backup, or save what is readable with `sqlite3 FILE .recover`"],
  ["SQLITE_NOTADB", "the file is damaged: its header is not a database's", "Restore a backup"],
  ["SQLITE_TOOBIG", "a value is larger than SQLite stores (about 1 GB)", "Split it"],
  ["SQLITE_NOMEM", "memory ran out", "Close other programs and try again"],
]

/** Any failure of SQLite or the file system as {@link StorageUnavailable}; never SQLite's own wording where a clear one is known. */
export const unavailable = (location: string, cause: unknown): StorageUnavailable => {
  if (cause instanceof StorageUnavailable) return cause
  const found = reported(cause)
  const code = errorCode(found)
  const hit = known.find(([prefix]) => code.startsWith(prefix))
  const text = found instanceof Error ? found.message : String(found)
  return hit === undefined
    ? new StorageUnavailable({
        location,
        cause: code === "" ? text : `${text} (${code})`,
        advice: "Check the file and its disk",
      })
    : new StorageUnavailable({ location, cause: `${hit[1]} (${code})`, advice: hit[2] })
}

/** The directory of a database could not be made. */
export const noDirectory = (location: string, directory: string, cause: unknown): StorageUnavailable => {
  // A file system that takes no files (/proc) says that a child of a directory that is there does not exist.
  const takesNone = { cause: "the file system takes none there (ENOENT)", advice: "Give another path with --db" }
  const why = errorCode(cause) === "ENOENT" ? takesNone : unavailable(location, cause)
  return new StorageUnavailable({
    location,
    cause: `its directory ${directory} cannot be made: ${why.cause}`,
    advice: why.advice,
  })
}

/** A primary key or unique rule was broken. */
export const isDuplicate = (cause: unknown): boolean => {
  const code = errorCode(cause)
  return (
    code === "SQLITE_CONSTRAINT_PRIMARYKEY" || code === "SQLITE_CONSTRAINT_UNIQUE" || code === "SQLITE_CONSTRAINT_ROWID"
  )
}

/** The store was closed while, or before, the commit came. */
export const closed = (location: string): StorageUnavailable =>
  new StorageUnavailable({ location, cause: "the store is closed", advice: "Open it again" })

/** A failure that one commit owns: it alone fails, the others of its group go on. */
export type Rejection = Conflict | Fenced | CorruptRow

/** True for what a single commit is refused for. */
export const isRejection = (cause: unknown): cause is Rejection =>
  cause instanceof Conflict || cause instanceof Fenced || cause instanceof CorruptRow

/** Keeps typed storage errors and turns everything else into {@link StorageUnavailable}. */
export const openFailure = (location: string, cause: unknown): OpenError =>
  cause instanceof ForeignDatabase || cause instanceof NewerDatabase || cause instanceof CorruptRow
    ? cause
    : unavailable(location, cause)
