/**
 * The SQLite engines of the storage port: the one writer, and a reader that needs no ownership.
 */
import { Effect, Layer, type Scope } from "effect"
import { claimJobsBy } from "../claim-jobs.ts"
import type { OpenError } from "../errors.ts"
import { Store, StoreReader, type StoreReads, type StoreService } from "../store.ts"
import { type Database, driver, openReader, openWriter, type Synchronous } from "./connection.ts"
import { openFailure } from "./failures.ts"
import { canonicalPath, canonicalPathOf } from "./paths.ts"
import { prepareReads } from "./reads.ts"
import { openWriterOn } from "./writer.ts"

export interface SqliteStoreOptions {
  /** The database file; it and its directory are created where they are missing, for this user only. */
  readonly path: string
  /** `NORMAL` (default): an answered commit survives the process. `FULL`: a power cut as well. */
  readonly synchronous?: Synchronous
  /** The file never grows beyond this many bytes; a commit that needs more fails like on a full disk. Default: no limit. */
  readonly maxBytes?: number
}

/** Runs a synchronous opening step with the loaded driver; what it throws becomes an {@link OpenError}. */
const attempt = <A>(
  location: string,
  open: (Driver: Awaited<ReturnType<typeof driver>>) => A,
): Effect.Effect<A, OpenError> =>
  Effect.flatMap(Effect.promise(driver), (Driver) =>
    Effect.try({ try: () => open(Driver), catch: (cause) => openFailure(location, cause) }),
  )

interface Opened extends StoreService {
  readonly close: () => void
}

const openStore =
  (options: SqliteStoreOptions) =>
  (Driver: Awaited<ReturnType<typeof driver>>): Opened => {
    const location = canonicalPath(options.path)
    const db: Database = openWriter(Driver, location, {
      synchronous: options.synchronous ?? "NORMAL",
      maxBytes: options.maxBytes,
    })
    try {
      const writer = openWriterOn(db, location)
      const reads = prepareReads(db, location)
      return {
        ...reads,
        location,
        epoch: writer.epoch,
        mint: writer.mint,
        commit: writer.commit,
        takeConversation: () => Effect.succeed(null),
        claimJobs: claimJobsBy({ ...reads, commit: writer.commit }),
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
  Effect.acquireRelease(attempt(options.path, openStore(options)), (store) => Effect.sync(store.close))

/** Opens the database for reading, beside an owner or without one. */
export const makeSqliteReader = (options: {
  readonly path: string
}): Effect.Effect<StoreReads & { readonly location: string }, OpenError, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(options.path, (Driver) => {
      const location = canonicalPathOf(options.path)
      const db = openReader(Driver, location)
      try {
        return { ...prepareReads(db, location), location, close: () => db.close() }
      } catch (cause) {
        db.close()
        throw cause
      }
    }),
    (reader) => Effect.sync(reader.close),
  )

export const SqliteStore = {
  /** {@link makeSqliteStore} as the `Store`. */
  layer: (options: SqliteStoreOptions): Layer.Layer<Store, OpenError> => Layer.scoped(Store, makeSqliteStore(options)),
}

export const SqliteReader = {
  /** {@link makeSqliteReader} as the `StoreReader`. */
  layer: (options: { readonly path: string }): Layer.Layer<StoreReader, OpenError> =>
    Layer.scoped(StoreReader, makeSqliteReader(options)),
}
