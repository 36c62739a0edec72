/**
 * The engine behind the nodes of the integration tests: SQLite in a file, or, where a suite asks for it with {@link onPostgres}, a database on the
 * PostgreSQL server of the run for every file that is named.
 */
import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { Effect, Exit, Layer, Scope } from "effect"
import { afterAll } from "vitest"
import type { OpenError } from "../../src/storage/errors.ts"
import { makeSqliteReader, SqliteStore } from "../../src/storage/sqlite/store.ts"
import type { Store, StoreReads } from "../../src/storage/store.ts"
import type { MigratedDatabase } from "../storage/postgres-support.ts"

let chosen: "sqlite" | "postgres" = "sqlite"
const databases = new Map<string, Promise<MigratedDatabase>>()
const scope = Effect.runSync(Scope.make())

/** From now on, and for the rest of this test file. Databases are dropped at its end. */
export const onPostgres = (): void => {
  chosen = "postgres"
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
}

/** A new one, or one whose file would be gone by now, emptied. */
const freeDatabase = async (): Promise<MigratedDatabase> => {
  const { emptied, migratedDatabase, observer } = await import("../storage/postgres-support.ts")
  const free = [...databases].find(([path]) => !existsSync(dirname(path)))
  if (free === undefined) return Effect.runPromise(Scope.extend(migratedDatabase, scope))
  databases.delete(free[0])
  const database = await free[1]
  await Effect.runPromise(Effect.scoped(Effect.flatMap(observer(database), emptied)))
  return database
}

const databaseOf = (path: string): Effect.Effect<MigratedDatabase> =>
  Effect.promise(() => {
    const known = databases.get(path) ?? freeDatabase()
    databases.set(path, known)
    return known
  })

const onServer = (path: string): Layer.Layer<Store, OpenError> =>
  Layer.unwrapEffect(
    Effect.flatMap(databaseOf(path), ({ settings }) =>
      Effect.promise(async () => {
        const { PostgresStore } = await import("../../src/storage/postgres/store.ts")
        return PostgresStore.layer({ settings, node: { name: "test", address: "", version: "test" }, alone: true })
      }),
    ),
  )

/** The store of the database that `path` stands for: the same each time. */
export const engineAt = (path: string): Layer.Layer<Store, OpenError> =>
  Layer.suspend(() => (chosen === "postgres" ? onServer(path) : SqliteStore.layer({ path })))

/** Its reads, beside whoever writes it. */
export const readsAt = (path: string): Effect.Effect<StoreReads, OpenError, Scope.Scope> =>
  Effect.suspend(() => {
    if (chosen === "sqlite") return makeSqliteReader({ path })
    return Effect.flatMap(databaseOf(path), ({ settings }) =>
      Effect.flatMap(
        Effect.promise(() => import("../../src/storage/postgres/store.ts")),
        ({ makePostgresReader }) => makePostgresReader({ settings }),
      ),
    )
  })
