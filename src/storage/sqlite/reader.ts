/**
 * Opens a database for reading only, beside whoever writes it or without anybody. No byte of the file changes, whosever it is.
 */
import { readFileSync, statSync } from "node:fs"
import { Effect, ExecutionStrategy, Exit, Scope } from "effect"
import { errorCode } from "../../domain/error-code.ts"
import { ForeignDatabase, type OpenError } from "../errors.ts"
import { type Client, openClient } from "./client.ts"
import { mustBeFile } from "./connection.ts"
import { openFailure, reported } from "./failures.ts"
import { migrate } from "./migrate.ts"
import { identityStatement, recognise, unrecognised } from "./recognise.ts"
import { schemaVersion } from "./schema.ts"

export interface ReaderClient extends Client {
  /** The schema version of the file. What is read is of this program's. */
  readonly version: number
}

/** A recognised database, and what closes it before its scope does. Fails with what the driver reported, or a typed error. */
const known = (location: string, source: string | Buffer) =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
    const close = Scope.close(scope, Exit.void)
    return yield* Effect.gen(function* () {
      const client = yield* Scope.extend(openClient(source, { readonly: true }), scope)
      const [row] = yield* client.rows(identityStatement)
      const version = yield* Effect.try({ try: () => recognise(location, row), catch: (cause) => cause })
      if (version === null) return yield* new ForeignDatabase({ location, detail: "it is empty" })
      return { ...client, version, close }
    }).pipe(
      Effect.mapError((cause) => unrecognised(location, cause)),
      Effect.tapError(() => close),
    )
  })

/** Bytes 18 and 19 of the header ask for a log; an image in memory has none. */
const withoutLog = (image: Buffer): Buffer => (image.length > 19 ? image.fill(1, 18, 20) : image)

/**
 * The database in the file. In a directory where this user may not write, SQLite cannot make the shared memory of the log; a file without a
 * log needs none, and nobody writes it: it is read into memory.
 */
const inFile = (location: string) =>
  Effect.catchAll(known(location, location), (cause) => {
    const code = errorCode(reported(cause))
    const unshared = code.startsWith("SQLITE_CANTOPEN") || code.startsWith("SQLITE_READONLY")
    if (!unshared || statSync(`${location}-wal`, { throwIfNoEntry: false }) !== undefined) return Effect.fail(cause)
    return Effect.flatMap(
      Effect.try({ try: () => withoutLog(readFileSync(location)), catch: (failure) => failure }),
      (image) => known(location, image),
    )
  })

/** Opens for the scope. An older database is read as it is now, migrated in memory: its file stays so until an owner migrates it. */
export const openReader = (location: string): Effect.Effect<ReaderClient, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* Effect.try({ try: () => mustBeFile(location), catch: (cause) => cause })
    const { close, ...reader } = yield* inFile(location)
    if (reader.version === schemaVersion) return reader
    const image = withoutLog(Buffer.from(yield* reader.image))
    yield* close
    const migrated = yield* openClient(image, { readonly: false })
    yield* migrate(migrated, location)
    return { ...migrated, version: reader.version }
  }).pipe(Effect.mapError((cause) => openFailure(location, cause)))
