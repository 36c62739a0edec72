/**
 * Migrates a database to this program's schema version, through the stock SQL client. Loaded only where a file is new or older.
 */
import { Effect } from "effect"
import type { OpenError } from "../errors.ts"
import { type Client, openClient } from "./client.ts"
import { openTimeout } from "./connection.ts"
import { openFailure } from "./failures.ts"
import { identityStatement, recognise } from "./recognise.ts"
import { applicationId, migrations, schemaVersion } from "./schema.ts"

/** The statements of a migration, each as it is written; comments and strings may hold semicolons. */
const statementsOf = (migration: string): ReadonlyArray<string> =>
  (migration.match(/(?:--[^\n]*|'[^']*'|[^;])+/g) ?? []).filter((part) => part.replace(/--[^\n]*/g, "").trim() !== "")

const upwards = ({ rows }: Pick<Client, "rows">, location: string) =>
  Effect.gen(function* () {
    // under the lock: another process may have migrated meanwhile
    const [row] = yield* rows(identityStatement)
    const version = yield* Effect.try({ try: () => recognise(location, row), catch: (cause) => cause })
    if (version === schemaVersion) return
    for (const migration of migrations.slice(version ?? 0))
      yield* Effect.forEach(statementsOf(migration), (statement) => rows(statement))
    yield* rows(`PRAGMA application_id = ${applicationId}`)
    yield* rows(`PRAGMA user_version = ${schemaVersion}`)
  })

/** All in one transaction under the write lock, with the marks of the file; a database that is foreign or newer by now stays as it is. */
export const migrate = (client: Pick<Client, "rows">, location: string): Effect.Effect<void, OpenError> =>
  Effect.gen(function* () {
    const { rows } = client
    yield* rows("BEGIN IMMEDIATE")
    yield* Effect.zipRight(upwards(client, location), rows("COMMIT")).pipe(
      Effect.tapErrorCause(() => Effect.ignore(rows("ROLLBACK"))),
    )
  }).pipe(
    Effect.uninterruptible,
    Effect.mapError((cause) => openFailure(location, cause)),
  )

/** {@link migrate} on a file that was recognised as empty or ours, which from now on keeps a write-ahead log. */
export const migrateFile = (location: string): Effect.Effect<void, OpenError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const client = yield* openClient(location, { readonly: false })
      yield* client.rows(`PRAGMA busy_timeout = ${openTimeout}`)
      yield* client.rows("PRAGMA journal_mode = WAL")
      yield* migrate(client, location)
    }),
  ).pipe(Effect.mapError((cause) => openFailure(location, cause)))
