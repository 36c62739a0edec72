/**
 * Migrated PostgreSQL databases and nodes on them, for the storage tests.
 */
import { Effect, Either, type Scope } from "effect"
import pg from "pg"
import { migrate } from "../../src/storage/postgres/migrations.ts"
import { type PostgresSettings, settingsOfUrl } from "../../src/storage/postgres/settings.ts"
import { makePostgresNode, type PostgresStoreOptions } from "../../src/storage/postgres/store.ts"
import { postgresDatabase, type TestDatabase } from "../support/postgres.ts"

export interface MigratedDatabase {
  readonly url: string
  readonly settings: PostgresSettings
}

const migrated = ({ url }: Pick<TestDatabase, "url">): Effect.Effect<MigratedDatabase> =>
  Effect.gen(function* () {
    const settings = Either.getOrThrow(settingsOfUrl(url))
    yield* Effect.orDie(migrate(settings))
    return { url, settings }
  })

/** A fresh database with the schema, on the server of this run. */
export const migratedDatabase: Effect.Effect<MigratedDatabase, never, Scope.Scope> = Effect.flatMap(
  postgresDatabase,
  migrated,
)

/** The same, on a server of one's own. */
export const migratedOn = (
  database: Effect.Effect<TestDatabase, never, Scope.Scope>,
): Effect.Effect<MigratedDatabase, never, Scope.Scope> => Effect.flatMap(database, migrated)

/** A node on it, ended with the scope. */
export const node = ({ settings }: MigratedDatabase, name: string, options: Partial<PostgresStoreOptions> = {}) =>
  makePostgresNode({ settings, node: { name, address: "", version: "test" }, ...options })

/** A superuser's connection, to look at the server and to be rude to it. */
export const observer = ({ url }: { readonly url: string }): Effect.Effect<pg.Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: url })
      client.on("error", () => undefined)
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end().catch(() => undefined)),
  )

const tables =
  "names artifacts jobs document_revisions documents submissions tasks entries conversations adoptions nodes"
const sequences = "fences seqs conversation_ids entry_ids task_ids submission_ids document_ids job_ids"

/** Takes a database back to how it was after its migrations: faster than a new one. */
export const emptied = (client: pg.Client): Effect.Effect<void> =>
  Effect.promise(async () => {
    const emptying = tables.split(" ").map((table) => `DELETE FROM ${table}`)
    const restarting = sequences.split(" ").map((sequence) => `SELECT setval('${sequence}', 1, false)`)
    await client.query([...emptying, ...restarting].join("; "))
  })
