/**
 * The writer's connection to a database file: the driver, what is in the file before anything of it is changed, the pragmas.
 */
import { closeSync, openSync, statSync } from "node:fs"
import type BetterSqlite3 from "better-sqlite3"
import type { SqlRow } from "../decode.ts"
import { identityStatement, recognise, unrecognised } from "./recognise.ts"

export type Database = BetterSqlite3.Database

/** The constructor of the driver, loaded when a database is first opened: the native module is not part of a cold start. */
export const driver = async (): Promise<typeof BetterSqlite3> => (await import("better-sqlite3")).default

/** How a commit reaches the disk: `NORMAL` survives the process, `FULL` also a power cut right after the answer. */
export type Synchronous = "NORMAL" | "FULL"

/** Milliseconds that opening waits inside SQLite for a lock, with the thread blocked; so does closing. In between the writer waits without. */
export const openTimeout = 1000

/** Throws where the path is of a directory, or of nothing. */
export const mustBeFile = (path: string): void => {
  if (statSync(path).isDirectory())
    throw Object.assign(new Error("expected a file, got a directory"), { code: "EISDIR" })
}

const versionOf = (db: Database, location: string): number | null => {
  let row: SqlRow | undefined
  try {
    row = db.prepare<[], SqlRow>(identityStatement).get()
  } catch (cause) {
    throw unrecognised(location, cause)
  }
  return recognise(location, row)
}

/**
 * The schema version of the file at `path` (canonical), which is created (mode 0600) where it is missing; null where nothing is in it yet.
 * Throws storage errors and the driver's, and leaves a file that is not ours as it is.
 */
export const probe = (Driver: typeof BetterSqlite3, path: string): number | null => {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, "a", 0o600))
  mustBeFile(path)
  const db = new Driver(path, { readonly: true, timeout: openTimeout })
  try {
    return versionOf(db, path)
  } finally {
    db.close()
  }
}

/** Opens a database that was found to be of this program's version for writing. Throws storage errors and the driver's. */
export const openWriter = (
  Driver: typeof BetterSqlite3,
  path: string,
  options: { readonly synchronous: Synchronous; readonly maxBytes?: number | undefined },
): Database => {
  const db = new Driver(path, { fileMustExist: true, timeout: openTimeout })
  try {
    // another program may have been at it since
    versionOf(db, path)
    db.pragma("journal_mode = WAL")
    db.pragma(`synchronous = ${options.synchronous}`)
    // pages of 4 KiB: checkpoint every 8 MiB, and give the space back when a burst made the log longer than 16 MiB
    db.pragma("wal_autocheckpoint = 2000")
    db.pragma(`journal_size_limit = ${16 * 1024 * 1024}`)
    if (options.maxBytes !== undefined) {
      const pageSize = Number(db.pragma("page_size", { simple: true }))
      db.pragma(`max_page_count = ${Math.max(1, Math.floor(options.maxBytes / pageSize))}`)
    }
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}
