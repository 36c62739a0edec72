/**
 * The PostgreSQL engine passes the suite that every engine of the storage port passes.
 */
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { storageConformance } from "../../src/storage/conformance.ts"
import { makePostgresStore } from "../../src/storage/postgres/store.ts"
import { describePostgres } from "../support/postgres.ts"
import { migratedDatabase } from "./postgres-support.ts"

describePostgres("the PostgreSQL engine", () => {
  storageConformance(
    { describe, it, expect, fc },
    {
      name: "PostgreSQL",
      database: Effect.map(migratedDatabase, ({ settings }) => ({
        open: makePostgresStore({ settings, node: { name: "one", address: "", version: "test" } }),
      })),
    },
  )
})
