/**
 * The PostgreSQL engine passes the suite that every engine of the storage port passes. All its tests share one database, emptied for each,
 * and the pool of its reads; opening means a new node with a writer of its own.
 */
import { Effect, Exit, Scope } from "effect"
import * as fc from "fast-check"
import type pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { storageConformance } from "../../src/storage/conformance.ts"
import { openPool, type PostgresPool } from "../../src/storage/postgres/pool.ts"
import { makeNodeOn } from "../../src/storage/postgres/store.ts"
import { describePostgres } from "../support/postgres.ts"
import { emptied, type MigratedDatabase, migratedDatabase, observer } from "./postgres-support.ts"

describePostgres("the PostgreSQL engine", () => {
  const scope = Effect.runSync(Scope.make())
  let shared: { readonly database: MigratedDatabase; readonly pool: PostgresPool; readonly rows: pg.Client }

  beforeAll(async () => {
    const opening = Effect.gen(function* () {
      const database = yield* migratedDatabase
      const pool = yield* openPool(database.settings, { applicationName: "super-pi conformance" })
      return { database, pool, rows: yield* observer(database) }
    })
    shared = await Effect.runPromise(Scope.extend(opening, scope))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const open = Effect.suspend(() =>
    makeNodeOn(shared.pool, {
      settings: shared.database.settings,
      node: { name: "one", address: "", version: "test" },
    }),
  )

  storageConformance(
    { describe, it, expect, fc },
    {
      name: "PostgreSQL",
      // every read is a round trip
      runs: 8,
      database: Effect.suspend(() => Effect.as(emptied(shared.rows), { open: Effect.map(open, ({ store }) => store) })),
    },
  )
})
