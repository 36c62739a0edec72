/**
 * Every engine of the storage port passes the same suite.
 */
import { join } from "node:path"
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { storageConformance } from "../../src/storage/conformance.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { temporaryDirectory } from "./support.ts"

const kit = { describe, it, expect, fc }

storageConformance(kit, {
  name: "memory",
  database: Effect.sync(() => {
    const database = memoryDatabase()
    return { open: makeMemoryStore(database) }
  }),
})

storageConformance(kit, {
  name: "SQLite",
  database: Effect.map(temporaryDirectory, (directory) => ({
    open: makeSqliteStore({ path: join(directory, "store.db") }),
  })),
})
