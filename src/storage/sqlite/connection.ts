/**
 * Opens database files: recognises ours without changing a byte of what is not, migrates, sets the pragmas.
 */
import { closeSync, openSync, readFileSync, statSync } from "node:fs"
import type BetterSqlite3 from "better-sqlite3"
import { errorCode } from "../../domain/error-code.ts"
import { ForeignDatabase, NewerDatabase } from "../errors.ts"
import { applicationId, migrations, schemaVersion } from "./schema.ts"

export type Database = BetterSqlite3.Database

/** The constructor of the driver, loaded when a database is first opened: the native module is not part of a cold start. */
export const driver = async (): Promise<typeof BetterSqlite3> => (await import("better-sqlite3")).default

/** How a commit reaches the disk: `NORMAL` survives the process, `FULL` also a power cut right after the answer. */
export type Synchronous = "NORMAL" | "FULL"

/** Milliseconds that opening waits inside SQLite for a lock, with the thread blocked; so does closing. In between the writer waits without. */
export const openTimeout = 1000

const intPragma = (db: Database, name: string): number => {
  const value = db.pragma(name, { simple: true })
  return typeof value === "number" ? value : 0
}

/**
 * Throws unless the file is ours and of a known version. `empty` means that there is nothing in it yet.
 * Only reads, so a foreign or newer database stays as it is.
 */
const recognise = (db: Database, location: string): "ours" | "empty" => {
  const foreign = (detail: string) => new ForeignDatabase({ location, detail })
  let application: number
  let version: number
  let tables: unknown
  try {
    application = intPragma(db, "application_id")
    version = intPragma(db, "user_version")
    tables = db.prepare("SELECT count(*) FROM sqlite_schema").pluck().get()
  } catch (cause) {
    if (errorCode(cause) === "SQLITE_NOTADB") throw foreign("it is not a SQLite file")
    throw cause
  }
  if (application === applicationId) {
    if (version > schemaVersion) throw new NewerDatabase({ location, found: version, supported: schemaVersion })
    return "ours"
  }
  if (application !== 0) throw foreign(`its application id is 0x${(application >>> 0).toString(16)}`)
  if (tables !== 0 || version !== 0) throw foreign("it holds tables of another program")
  return "empty"
}

const migrate = (db: Database, location: string): void => {
  if (recognise(db, location) === "ours" && intPragma(db, "user_version") === schemaVersion) return
  db.exec("BEGIN IMMEDIATE")
  try {
    // again under the lock: another process may have migrated meanwhile
    const from = recognise(db, location) === "empty" ? 0 : intPragma(db, "user_version")
    for (const sql of migrations.slice(from)) db.exec(sql)
    db.pragma(`application_id = ${applicationId}`)
    db.pragma(`user_version = ${schemaVersion}`)
    db.exec("COMMIT")
  } catch (cause) {
    if (db.inTransaction) db.exec("ROLLBACK")
    throw cause
  }
}

const mustBeFile = (path: string): void => {
  if (statSync(path).isDirectory())
    throw Object.assign(new Error("expected a file, got a directory"), { code: "EISDIR" })
}

/** Opens `path` (canonical) for writing, creating it (mode 0600) where it is missing. Throws storage errors and the driver's. */
export const openWriter = (
  Driver: typeof BetterSqlite3,
  path: string,
  options: { readonly synchronous: Synchronous; readonly maxBytes?: number | undefined },
): Database => {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, "a", 0o600))
  mustBeFile(path)
  const probe = new Driver(path, { readonly: true, timeout: openTimeout })
  try {
    recognise(probe, path)
  } finally {
    probe.close()
  }
  const db = new Driver(path, { fileMustExist: true, timeout: openTimeout })
  try {
    db.pragma("journal_mode = WAL")
    db.pragma(`synchronous = ${options.synchronous}`)
    // pages of 4 KiB: checkpoint every 8 MiB, and give the space back when a burst made the log longer than 16 MiB
    db.pragma("wal_autocheckpoint = 2000")
    db.pragma(`journal_size_limit = ${16 * 1024 * 1024}`)
    migrate(db, path)
    if (options.maxBytes !== undefined) {
      db.pragma(`max_page_count = ${Math.max(1, Math.floor(options.maxBytes / intPragma(db, "page_size")))}`)
    }
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}

/** Opens `path` for reading only, whether or not somebody is writing it. Throws storage errors and the driver's. */
export const openReader = (Driver: typeof BetterSqlite3, path: string): Database => {
  mustBeFile(path)
  try {
    const db = recognised(new Driver(path, { readonly: true, fileMustExist: true, timeout: readerTimeout }), path)
    return isCurrent(db) ? db : migratedImage(Driver, db, path)
  } catch (cause) {
    // in a directory where this user may not write, SQLite cannot make the shared memory of the log; without a log it needs none
    const code = errorCode(cause)
    if (!code.startsWith("SQLITE_CANTOPEN") && !code.startsWith("SQLITE_READONLY")) throw cause
    if (statSync(`${path}-wal`, { throwIfNoEntry: false }) !== undefined) throw cause
    const image = recognised(imageOf(Driver, path), path)
    return isCurrent(image) ? image : migratedImage(Driver, image, path)
  }
}

/** The database read into memory: nobody writes a file that has no log, and an image needs no files beside it. */
const imageOf = (Driver: typeof BetterSqlite3, path: string): Database => {
  return new Driver(withoutLog(readFileSync(path)), { readonly: true })
}

/** Bytes 18 and 19 of the header ask for a log; an image in memory has none. */
const withoutLog = (image: Buffer): Buffer => (image.length > 19 ? image.fill(1, 18, 20) : image)

const isCurrent = (db: Database): boolean => intPragma(db, "user_version") === schemaVersion

/** An older database as it is now, migrated in memory: the file stays as it is until an owner migrates it. Closes `db`. */
const migratedImage = (Driver: typeof BetterSqlite3, db: Database, path: string): Database => {
  let image: Database
  try {
    image = new Driver(withoutLog(db.serialize()))
  } finally {
    db.close()
  }
  try {
    migrate(image, path)
    return image
  } catch (cause) {
    image.close()
    throw cause
  }
}

/** Milliseconds that a reader waits, blocked, while the last owner writes its log back. */
const readerTimeout = 5000

const recognised = (db: Database, path: string): Database => {
  try {
    if (recognise(db, path) === "empty") throw new ForeignDatabase({ location: path, detail: "it is empty" })
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}
