/**
 * The SQLite engines of the storage port: the one writer, and a reader that needs no ownership.
 */
import { Effect, Layer, type Scope } from "effect"
import { claimJobsBy } from "../claim-jobs.ts"
import type { OpenError } from "../errors.ts"
import { Store, StoreReader, type StoreReads, type StoreService } from "../store.ts"
import { clientReading } from "./client-reading.ts"
import { type Database, driver, openWriter, probe, type Synchronous } from "./connection.ts"
import { openFailure } from "./failures.ts"
import { ownerReads } from "./owner-reads.ts"
import { canonicalPath, canonicalPathOf } from "./paths.ts"
import { preparedReading } from "./prepared-reading.ts"
import { storeReads } from "./reads.ts"
import { schemaVersion } from "./schema.ts"
import { secondConnection } from "./second-connection.ts"
import { openWriterOn, type Writer } from "./writer.ts"

export interface SqliteStoreOptions {
  /** The database file; it and its directory are created where they are missing, for this user only. */
  readonly path: string
  /** `NORMAL` (default): an answered commit survives the process. `FULL`: a power cut as well. */
  readonly synchronous?: Synchronous
  /** The file never grows beyond this many bytes; a commit that needs more fails like on a full disk. Default: no limit. */
  readonly maxBytes?: number
}

/** A synchronous step of opening; what it throws becomes an {@link OpenError}. */
const attempt = <A>(location: string, step: () => A): Effect.Effect<A, OpenError> =>
  Effect.try({ try: step, catch: (cause) => openFailure(location, cause) })

interface Owned {
  readonly db: Database
  readonly writer: Writer
  readonly close: () => void
}

const own = (Driver: Awaited<ReturnType<typeof driver>>, location: string, options: SqliteStoreOptions): Owned => {
  const db = openWriter(Driver, location, {
    synchronous: options.synchronous ?? "NORMAL",
    maxBytes: options.maxBytes,
  })
  try {
    const writer = openWriterOn(db, location)
    return {
      db,
      writer,
      // the last connection that closes writes the log back into the file
      close: () => {
        writer.close()
        db.close()
      },
    }
  } catch (cause) {
    db.close()
    throw cause
  }
}

/**
 * Opens the database as its owner: raises the epoch, so that any earlier owner is fenced off. Take the lease first (`claim`); without it
 * two processes would keep fencing each other. Closing the scope writes what is queued and checkpoints.
 */
export const makeSqliteStore = (options: SqliteStoreOptions): Effect.Effect<StoreService, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const Driver = yield* Effect.promise(driver)
    const location = yield* attempt(options.path, () => canonicalPath(options.path))
    if ((yield* attempt(location, () => probe(Driver, location))) !== schemaVersion) {
      const { migrateFile } = yield* Effect.promise(() => import("./migrate.ts"))
      yield* migrateFile(location)
    }
    const second = yield* secondConnection(location)
    const { db, writer } = yield* Effect.acquireRelease(
      attempt(location, () => own(Driver, location, options)),
      ({ close }) => Effect.zipRight(second.close, Effect.sync(close)),
    )
    const reads = ownerReads(preparedReading(db, location), clientReading(second.client, location), location)
    return {
      ...reads,
      location,
      epoch: writer.epoch,
      mint: writer.mint,
      commit: writer.commit,
      takeConversation: () => Effect.succeed(null),
      claimJobs: claimJobsBy({ ...reads, commit: writer.commit }),
    }
  })

/** Opens the database for reading, beside an owner or without one. */
export const makeSqliteReader = (options: {
  readonly path: string
}): Effect.Effect<StoreReads & { readonly location: string }, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const location = canonicalPathOf(options.path)
    const { openReader } = yield* Effect.promise(() => import("./reader.ts"))
    const client = yield* openReader(location)
    return { ...storeReads(clientReading(Effect.succeed(client), location), location), location }
  })

export const SqliteStore = {
  /** {@link makeSqliteStore} as the `Store`. */
  layer: (options: SqliteStoreOptions): Layer.Layer<Store, OpenError> => Layer.scoped(Store, makeSqliteStore(options)),
}

export const SqliteReader = {
  /** {@link makeSqliteReader} as the `StoreReader`. */
  layer: (options: { readonly path: string }): Layer.Layer<StoreReader, OpenError> =>
    Layer.scoped(StoreReader, makeSqliteReader(options)),
}
