/**
 * Ownership of a database: one process at a time. Rules:
 * 1. The lease is an exclusive lock on the separate file `<db>.lock`, held by an open transaction. The operating system drops it with
 *    the process, however it dies: there are no stale leases. The lock file itself stays.
 * 2. Order: lock, then write `<db>.owner`; on release remove `<db>.owner`, then unlock. So an owner file whose process lives names the
 *    holder, and one whose process is gone, or none at all while the lock is held, means that somebody is just taking or leaving.
 * 3. Nothing in this process opens `<db>.lock` but the driver: POSIX drops a process's locks on a file when any handle of it closes.
 * 4. Should two owners meet all the same (a deleted lock file), the epoch in the database fences the older one.
 */
import { chmodSync, lstatSync, rmSync } from "node:fs"
import { hostname, userInfo } from "node:os"
import { Clock, Data, Effect, Schedule, Schema, type Scope } from "effect"
import { makeDirectories } from "../directories.ts"
import type { StorageUnavailable } from "../errors.ts"
import { type Database, driver } from "./connection.ts"
import { isBusy, unavailable } from "./failures.ts"
import { mayBeAlive, Owner, readOwner, removeOwner, writeOwner } from "./owner-file.ts"
import { canonicalPath, lockPath, socketDirectory, socketPath } from "./paths.ts"

/** Another process holds the database; attach to it on `socket`, or wait for it with {@link awaitFree}. */
export class OwnedElsewhere extends Schema.TaggedError<OwnedElsewhere>()("OwnedElsewhere", {
  location: Schema.String,
  /** `pid` and `since` are 0 where the holder left no name. */
  ...Owner.fields,
}) {
  override get message() {
    const since = this.since === 0 ? "" : ` since ${new Date(this.since).toISOString()}`
    return `${this.location} is held by ${this.program} (process ${this.pid} on ${this.host})${since}; close it, or give another path with --db`
  }
}

/** The exclusive lease of a database, until its scope closes or the process ends. */
export interface Lease {
  /** The canonical path of the database. */
  readonly path: string
  /** Where this process, as the owner, is to answer. Nothing is there when the lease begins. */
  readonly socket: string
  readonly owner: Owner
}

/** Between two looks at a lock that somebody holds. */
const lookEvery = "50 millis"
/** How often a claim looks again at a lock whose holder is not known yet or just died: about a second. */
const looks = 20

/** Takes the exclusive lock, or returns null when somebody has it. */
const lock = (Driver: Awaited<ReturnType<typeof driver>>, path: string): Database | null => {
  const db = new Driver(lockPath(path), { timeout: 0 })
  try {
    db.exec("BEGIN EXCLUSIVE")
    return db
  } catch (cause) {
    db.close()
    if (isBusy(cause)) return null
    throw cause
  }
}

/** The directory of sockets outside the database's; refused unless it is a real directory of this user alone. */
const secureSocketDirectory = (): void => {
  const directory = socketDirectory()
  makeDirectories(directory, 0o700)
  const stat = lstatSync(directory)
  if (!stat.isDirectory() || stat.uid !== userInfo().uid) {
    throw Object.assign(new Error(`${directory}: expected a directory of this user`), { code: "EACCES" })
  }
  chmodSync(directory, 0o700)
}

const take = (
  Driver: Awaited<ReturnType<typeof driver>>,
  path: string,
  program: string,
  now: number,
): { readonly lease: Lease; readonly db: Database } | null => {
  const db = lock(Driver, path)
  if (db === null) return null
  try {
    const socket = socketPath(path)
    if (socket.startsWith(socketDirectory())) secureSocketDirectory()
    // whoever listened there is gone
    rmSync(socket, { force: true })
    const owner: Owner = { pid: process.pid, host: hostname(), since: now, program, socket }
    writeOwner(path, owner)
    return { lease: { path, socket, owner }, db }
  } catch (cause) {
    db.close()
    throw cause
  }
}

const attempt = <A>(location: string, body: () => A): Effect.Effect<A, StorageUnavailable> =>
  Effect.try({ try: body, catch: (cause) => unavailable(location, cause) })

/**
 * Takes the exclusive lease of the database at `path`, or fails naming the holder. It need not exist yet; its directory is created.
 * Takes at most about a second, and that only while the holder changes.
 */
export const claim = (
  path: string,
  options: { readonly program: string },
): Effect.Effect<Lease, OwnedElsewhere | StorageUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const Driver = yield* Effect.promise(driver)
    const canonical = yield* attempt(path, () => canonicalPath(path))
    const held = (owner: Owner | null) =>
      new OwnedElsewhere({
        location: canonical,
        pid: owner?.pid ?? 0,
        host: owner?.host ?? "an unknown host",
        since: owner?.since ?? 0,
        program: owner?.program ?? "another program",
        socket: owner?.socket ?? socketPath(canonical),
      })
    const look = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const taken = yield* Effect.acquireRelease(
        attempt(canonical, () => take(Driver, canonical, options.program, now)),
        (result) => Effect.sync(() => result !== null && release(result.lease, result.db)),
      )
      if (taken !== null) return taken.lease
      const owner = readOwner(canonical)
      return yield* owner !== null && mayBeAlive(owner) ? held(owner) : new Changing()
    })
    return yield* look.pipe(
      Effect.retry({ schedule: Schedule.spaced(lookEvery), times: looks, while: (error) => error._tag === "Changing" }),
      Effect.catchTag("Changing", () => held(readOwner(canonical))),
    )
  })

/** The lock is held, but its holder is not known: it is just taking or leaving. */
class Changing extends Data.TaggedError("Changing") {}

const release = (lease: Lease, db: Database): void => {
  try {
    removeOwner(lease.path)
  } finally {
    db.close()
  }
}

/** Whether somebody holds the lease; never takes it, so that it cannot stand in the way of a claim. */
const isHeld = (db: Database): boolean => {
  try {
    // a read needs the shared lock for a moment
    db.pragma("schema_version")
    return false
  } catch (cause) {
    if (isBusy(cause)) return true
    throw cause
  }
}

/**
 * Completes once nobody holds the lease of the database at `path`: the holder left or died. Somebody else may still take it first, so
 * follow with {@link claim}.
 */
export const awaitFree = (path: string): Effect.Effect<void, StorageUnavailable> =>
  Effect.scoped(
    Effect.gen(function* () {
      const Driver = yield* Effect.promise(driver)
      const canonical = yield* attempt(path, () => canonicalPath(path))
      const db = yield* Effect.acquireRelease(
        attempt(canonical, () => new Driver(lockPath(canonical), { timeout: 0 })),
        (opened) => Effect.sync(() => opened.close()),
      )
      yield* Effect.repeat(
        attempt(canonical, () => isHeld(db)),
        { schedule: Schedule.spaced(lookEvery), while: (held: boolean) => held },
      )
    }),
  )
