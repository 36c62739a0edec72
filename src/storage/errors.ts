/**
 * What can go wrong with a store. Each failure names what and where, and says what to do; none is told apart by its text.
 */
import { Schema } from "effect"

/** The file, disk or server failed: full disk, I/O error, lost connection. Nothing was written; the same commit may be tried again. */
export class StorageUnavailable extends Schema.TaggedError<StorageUnavailable>()("StorageUnavailable", {
  location: Schema.String,
  cause: Schema.String,
  advice: Schema.String,
}) {
  override get message() {
    return `${this.location}: ${this.cause}. ${this.advice}`
  }
}

/** How another database is named: a file, or a server's. */
const elsewhere = (location: string): string =>
  location.startsWith("postgresql:") ? "another one in DATABASE_URL" : "another path with --db"

/** The file is not a Super-Pi database. It is left untouched. */
export class ForeignDatabase extends Schema.TaggedError<ForeignDatabase>()("ForeignDatabase", {
  location: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `${this.location} is not a Super-Pi database (${this.detail}); give ${elsewhere(this.location)}`
  }
}

/** The database was written by a newer version. It is left untouched. */
export class NewerDatabase extends Schema.TaggedError<NewerDatabase>()("NewerDatabase", {
  location: Schema.String,
  found: Schema.Int,
  supported: Schema.Int,
}) {
  override get message() {
    return `${this.location} has schema version ${this.found}, this program knows up to ${this.supported}; update super-pi or give ${elsewhere(this.location)}`
  }
}

/** A row does not decode: damaged or foreign. Names the table, the row and the path. */
export class CorruptRow extends Schema.TaggedError<CorruptRow>()("CorruptRow", {
  location: Schema.String,
  table: Schema.String,
  row: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `${this.location}: ${this.table} ${this.row} is damaged: ${this.detail}`
  }
}

/** The writer no longer owns the database or the task: a newer owner took over. Nothing was written, and nothing may be retried. */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", {
  what: Schema.String,
  held: Schema.Int,
  current: Schema.Int,
}) {
  override get message() {
    return `${this.what}: fencing token ${this.held} is stale, the current one is ${this.current}`
  }
}

/** A unique rule was broken: a request id admitted twice, a record id used twice. Nothing was written. */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", {
  what: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `${this.what}: ${this.detail}`
  }
}

/** Why a commit did not happen. */
export const CommitError = Schema.Union(StorageUnavailable, CorruptRow, Fenced, Conflict)
export type CommitError = typeof CommitError.Type

/** Why a read did not happen. */
export const ReadError = Schema.Union(StorageUnavailable, CorruptRow)
export type ReadError = typeof ReadError.Type

/** Why a store did not open. */
export const OpenError = Schema.Union(StorageUnavailable, ForeignDatabase, NewerDatabase, CorruptRow)
export type OpenError = typeof OpenError.Type
