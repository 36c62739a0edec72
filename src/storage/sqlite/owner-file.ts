/**
 * The file `<db>.owner`: who holds the lease of a database, for people and for those who attach. Only the holder of the lease writes
 * it, whole or not at all (a rename); it is a hint, the lock alone decides.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { Either, Schema } from "effect"
import { errorCode } from "../../domain/error-code.ts"
import { ownerPath } from "./paths.ts"

export const Owner = Schema.Struct({
  pid: Schema.Int,
  host: Schema.String,
  /** Milliseconds since the epoch at which the lease was taken. */
  since: Schema.Int,
  /** What it is, for a person: `super-pi chat`. */
  program: Schema.String,
  /** Path of the unix socket on which it answers. */
  socket: Schema.String,
})
export type Owner = typeof Owner.Type

const decode = Schema.decodeUnknownEither(Schema.parseJson(Owner))

/** Who is written down for the database at `path`, or null when nobody is or the file is damaged. */
export const readOwner = (path: string): Owner | null => {
  try {
    return Either.getOrNull(decode(readFileSync(ownerPath(path), "utf8")))
  } catch {
    return null
  }
}

/** Writes it atomically, readable for this user only. */
export const writeOwner = (path: string, owner: Owner): void => {
  const file = ownerPath(path)
  const draft = `${file}.${process.pid}.tmp`
  writeFileSync(draft, `${JSON.stringify(owner, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, file)
}

export const removeOwner = (path: string): void => rmSync(ownerPath(path), { force: true })

/** False when it is certain that the process is gone: it ran on this host and has no such pid any more. */
export const mayBeAlive = (owner: Owner): boolean => {
  if (owner.host !== hostname()) return true
  try {
    process.kill(owner.pid, 0)
    return true
  } catch (cause) {
    return errorCode(cause) !== "ESRCH"
  }
}
