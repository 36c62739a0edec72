/**
 * What reads through the stock SQL client: an owner's second connection beside its writer, and readers.
 */
import { readdirSync, renameSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { layer as reactivityLayer } from "@effect/experimental/Reactivity"
import { make } from "@effect/sql-sqlite-node/SqliteClient"
import { beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { vi } from "vitest"
import type { ConversationId } from "../../src/domain/ids.ts"
import { conversation, entry, job } from "../../src/storage/conformance/records.ts"
import type { ReadError } from "../../src/storage/errors.ts"
import { openClient } from "../../src/storage/sqlite/client.ts"
import { unavailable } from "../../src/storage/sqlite/failures.ts"
import { makeSqliteReader, makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreReads, StoreService } from "../../src/storage/store.ts"
import { temporaryDirectory } from "./support.ts"

/** How many connections were opened through the client, by those who load it when they need it. */
const opened = vi.hoisted(() => ({ count: 0 }))
vi.mock(import("../../src/storage/sqlite/client.ts"), async (original) => {
  const module = await original()
  return {
    openClient: (...given: Parameters<typeof openClient>) => {
      opened.count++
      return module.openClient(...given)
    },
  }
})
beforeEach(() => {
  opened.count = 0
})

const database = Effect.map(temporaryDirectory, (directory) => join(directory, "store.db"))

/** A current database that nobody has open, with one conversation of one entry. */
const filled = Effect.gen(function* () {
  const path = yield* database
  const id = yield* Effect.scoped(Effect.flatMap(makeSqliteStore({ path }), add))
  opened.count = 0
  return { path, id }
})

const add = (store: StoreService) =>
  Effect.gen(function* () {
    const [id] = yield* store.mint("conversation", 1)
    const [own] = yield* store.mint("entry", 1)
    if (id === undefined || own === undefined) return yield* Effect.dieMessage("no id")
    yield* store.commit({ conversations: [conversation(id)], entries: [entry(own, id)] })
    return id
  })

const listed = (reads: StoreReads) =>
  Effect.map(reads.conversations({ principal: null, limit: 99 }), (rows) => rows.map((row) => row.conversation.id))

/** What an owner reads beside its writer. */
const beside = (
  reads: StoreReads,
  id: ConversationId,
): ReadonlyArray<Effect.Effect<ReadonlyArray<unknown>, ReadError>> => [
  reads.conversations({ principal: null, limit: 9 }),
  reads.visibleEntries(id),
  reads.ownedConversations(1 as never),
  reads.tasksInDoubt({ limit: 9 }),
  reads.documentsAt(id, 9 as never),
  reads.jobs({ limit: 9 }),
  reads.jobCounts(),
  Effect.map(reads.artifact(id, "a"), (found) => [found]),
  reads.artifacts(id),
  Effect.map(reads.name({ namespace: "acp", principal: "p", name: "n" }), (found) => [found]),
  reads.names({ namespace: "acp", principal: "p", limit: 9 }),
]

describe("an owner", () => {
  it.scopedLive("loads no client to open a database of this version and to take turns with it", () =>
    Effect.gen(function* () {
      const { id, path } = yield* filled
      const store = yield* makeSqliteStore({ path })
      yield* add(store)
      yield* Effect.all([store.conversation(id), store.contextEntries(id), store.entryCount(id), store.documents(id)])
      yield* Effect.all([store.openTasks(), store.openSubmissions(id), store.ownerEpoch, store.endedEpochs([1])])
      yield* store.claimJobs({ queue: "q", limit: 1, now: 1, leaseUntil: 2, node: "n" })
      expect(opened.count).toBe(0)
      yield* Effect.all(beside(store, id), { concurrency: "unbounded" })
      expect(opened.count).toBe(1)
    }),
  )

  it.scopedLive("sees beside its writer every commit that it was answered", () =>
    Effect.gen(function* () {
      const store = yield* makeSqliteStore({ path: yield* database })
      const known: Array<ConversationId> = []
      for (let round = 0; round < 40; round++) {
        known.unshift(yield* add(store))
        expect(yield* listed(store)).toEqual(known)
        const [id] = yield* store.mint("job", 1)
        if (id === undefined) return
        yield* store.commit({ jobs: [job(id)] })
        expect((yield* store.jobs({ limit: 1 })).map((row) => row.id)).toEqual([id])
        expect((yield* store.jobCounts()).map((row) => row.count)).toEqual([round + 1])
      }
    }),
  )

  it.scopedLive(
    "reads through one connection, however many reads need it first, and also where one of them is interrupted",
    () =>
      Effect.gen(function* () {
        const { id, path } = yield* filled
        const store = yield* makeSqliteStore({ path })
        const hasty = yield* Effect.fork(listed(store))
        const patient = yield* Effect.fork(
          Effect.all(
            Array.from({ length: 20 }, () => listed(store)),
            { concurrency: "unbounded" },
          ),
        )
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(hasty)
        expect(yield* Fiber.join(patient)).toEqual(Array.from({ length: 20 }, () => [id]))
        expect(opened.count).toBe(1)
      }),
  )

  it.scopedLive(
    "whose second connection cannot be opened says so with advice, and opens it when the cause is gone",
    () =>
      Effect.gen(function* () {
        const { id, path } = yield* filled
        const store = yield* makeSqliteStore({ path })
        renameSync(path, `${path}.away`)
        const error = yield* Effect.flip(listed(store))
        expect(error).toMatchObject({ _tag: "StorageUnavailable", location: path })
        expect(error.message).toContain("the file cannot be opened (SQLITE_CANTOPEN). Check that the directory exists")
        renameSync(`${path}.away`, path)
        expect(yield* listed(store)).toEqual([id])
      }),
  )

  it.scopedLive.each([true, false])(
    "that is closed answers what it read beside its writer with a typed error (read before: %s)",
    (before) =>
      Effect.gen(function* () {
        const { id, path } = yield* filled
        const scope = yield* Scope.make()
        const store = yield* Scope.extend(makeSqliteStore({ path }), scope)
        if (before) yield* listed(store)
        yield* Scope.close(scope, Exit.void)
        for (const read of beside(store, id)) {
          expect(yield* Effect.flip(read)).toMatchObject({
            _tag: "StorageUnavailable",
            location: path,
            cause: "the store is closed",
          })
        }
      }),
  )

  it.scopedLive("leaves one file, also where it read beside its writer", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      yield* Effect.scoped(
        Effect.flatMap(makeSqliteStore({ path: join(directory, "store.db") }), (store) =>
          Effect.zipRight(add(store), listed(store)),
        ),
      )
      expect(readdirSync(directory)).toEqual(["store.db"])
    }),
  )
})

describe("a connection of the client", () => {
  it.scopedLive("that cannot be opened fails with what the driver reported, and is no defect", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const missing = yield* Effect.flip(openClient(join(directory, "none.db"), { readonly: true }))
      expect(missing._tag).toBe("SqlError")
      expect(unavailable("x.db", missing).message).toMatch(/^x\.db: the file cannot be opened \(SQLITE_CANTOPEN\)/)
      const nowhere = yield* Effect.flip(openClient(join(directory, "none", "none.db"), { readonly: true }))
      expect(unavailable("x.db", nowhere).message).toMatch(
        /^x\.db: Cannot open database because the directory does not/,
      )
      expect(readdirSync(directory)).toEqual([])
    }),
  )

  it.scopedLive("forgets that a statement could not be prepared once it can be", () =>
    Effect.gen(function* () {
      const client = yield* openClient(yield* database, { readonly: false })
      const error = yield* Effect.flip(client.rows("SELECT a FROM later"))
      expect(unavailable("x.db", error).cause).toBe("no such table: later (SQLITE_ERROR)")
      yield* client.rows("CREATE TABLE later (a)")
      expect(yield* client.rows("SELECT a FROM later")).toEqual([])
    }),
  )

  it.scopedLive("reads its own database within a transaction that the caller has open on another one", () =>
    Effect.gen(function* () {
      const { id, path } = yield* filled
      const other = yield* make({ filename: yield* database }).pipe(Effect.provide(reactivityLayer))
      const reader = yield* makeSqliteReader({ path })
      const store = yield* makeSqliteStore({ path })
      yield* other.withTransaction(
        Effect.gen(function* () {
          expect(yield* listed(reader)).toEqual([id])
          expect(yield* listed(store)).toEqual([id])
        }),
      )
    }),
  )

  it("uses the driver that the writer uses: two copies in one process would drop each other's locks", () => {
    const ours = createRequire(import.meta.url)
    const clients = createRequire(ours.resolve("@effect/sql-sqlite-node/package.json"))
    expect(clients.resolve("better-sqlite3")).toBe(ours.resolve("better-sqlite3"))
  })
})

describe("a closed reader", () => {
  it.scopedLive("answers with a typed error", () =>
    Effect.gen(function* () {
      const { id, path } = yield* filled
      const scope = yield* Scope.make()
      const reader = yield* Scope.extend(makeSqliteReader({ path }), scope)
      expect(yield* listed(reader)).toEqual([id])
      yield* Scope.close(scope, Exit.void)
      for (const read of [...beside(reader, id), reader.entries(id)]) {
        expect(yield* Effect.flip(read)).toMatchObject({ _tag: "StorageUnavailable", cause: "the store is closed" })
      }
    }),
  )
})
