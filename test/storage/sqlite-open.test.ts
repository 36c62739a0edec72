/**
 * Opening a database file: what is ours, what is not, what is newer, what cannot be opened; and reading beside an owner.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Exit, Scope } from "effect"
import { conversation, entry } from "../../src/storage/conformance/records.ts"
import { claim } from "../../src/storage/sqlite/ownership.ts"
import { applicationId, schemaVersion } from "../../src/storage/sqlite/schema.ts"
import { makeSqliteReader, makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { temporaryDirectory } from "./support.ts"

/** Commits one conversation with `count` entries; returns its id. */
const fill = (store: StoreService, count: number) =>
  Effect.gen(function* () {
    const [id] = yield* store.mint("conversation", 1)
    if (id === undefined) return yield* Effect.dieMessage("no id")
    const entries = yield* store.mint("entry", count)
    yield* store.commit({ conversations: [conversation(id)], entries: entries.map((own) => entry(own, id)) })
    return id
  })

/** A closed database with one conversation of two entries. */
const filled = (path: string) => Effect.scoped(Effect.flatMap(makeSqliteStore({ path }), (store) => fill(store, 2)))

/** Runs `write` on the file with the plain driver. */
const edit = (path: string, write: (db: Database.Database) => void): void => {
  const db = new Database(path)
  write(db)
  db.close()
}

const openEither = { store: makeSqliteStore, reader: makeSqliteReader }

describe("a new database", () => {
  it.scopedLive("is created with its directory, readable for this user only, and marked as ours", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "a", "b", "store.db")
      yield* filled(path)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700)
      edit(path, (db) => {
        expect(db.pragma("application_id", { simple: true })).toBe(applicationId)
        expect(db.pragma("user_version", { simple: true })).toBe(schemaVersion)
        expect(db.pragma("journal_mode", { simple: true })).toBe("wal")
      })
    }),
  )

  it.scopedLive("may be an empty file that is there already", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      writeFileSync(path, "")
      yield* filled(path)
    }),
  )

  it.scopedLive("leaves one file when its last user closes it", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      yield* filled(join(directory, "store.db"))
      expect(readdirSync(directory)).toEqual(["store.db"])
    }),
  )
})

describe.each(["store", "reader"] as const)("a %s", (kind) => {
  const refused = (path: string) => Effect.scoped(Effect.flip(Effect.map(openEither[kind]({ path }), () => undefined)))

  it.scopedLive("refuses a database of another program and leaves every byte of it", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "foreign.db")
      for (const make of [
        (db: Database.Database) => db.exec("CREATE TABLE notes (id INTEGER)"),
        (db: Database.Database) => db.exec("PRAGMA application_id = 77; CREATE TABLE x (y)"),
        (db: Database.Database) => db.exec("PRAGMA journal_mode = WAL; CREATE TABLE x (y); PRAGMA user_version = 3"),
      ]) {
        rmSync(path, { force: true })
        edit(path, make)
        const before = readFileSync(path)
        expect(yield* refused(path)).toMatchObject({ _tag: "ForeignDatabase", location: path })
        expect(readFileSync(path).equals(before)).toBe(true)
      }
    }),
  )

  it.scopedLive("refuses a file that is no database and leaves every byte of it", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "letter.txt")
      const before = "Dear Sir or Madam, this is a letter.\n".repeat(500)
      writeFileSync(path, before)
      expect(yield* refused(path)).toMatchObject({ _tag: "ForeignDatabase" })
      expect(readFileSync(path, "utf8")).toBe(before)
    }),
  )

  it.scopedLive("refuses a database of a newer version and leaves every byte of it", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      yield* filled(path)
      edit(path, (db) => db.pragma(`user_version = ${schemaVersion + 1}`))
      const before = readFileSync(path)
      const error = yield* refused(path)
      expect(error).toMatchObject({ _tag: "NewerDatabase", found: schemaVersion + 1, supported: schemaVersion })
      expect(error.message).toContain("update super-pi")
      expect(readFileSync(path).equals(before)).toBe(true)
    }),
  )

  it.scopedLive("says that a directory is not a file", () =>
    Effect.gen(function* () {
      const path = yield* temporaryDirectory
      const error = yield* refused(path)
      expect(error._tag).toBe("StorageUnavailable")
      expect(error.message).toContain("expected a file, got a directory")
    }),
  )

  it.scopedLive("names the path where a part of it is a file", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      writeFileSync(join(directory, "file"), "")
      const error = yield* refused(join(directory, "file", "store.db"))
      expect(error).toMatchObject({ _tag: "StorageUnavailable", location: join(directory, "file", "store.db") })
    }),
  )
})

describe("a database whose directory cannot be made", () => {
  it.scopedLive("is refused with the directory, the reason and what helps, by the owner and by its lease alike", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      writeFileSync(join(directory, "file"), "")
      const path = join(directory, "file", "deep", "store.db")
      const message = `${path}: its directory ${dirname(path)} cannot be made: a part of the path is not a directory (ENOTDIR). Check the path`
      expect((yield* Effect.flip(makeSqliteStore({ path }))).message).toBe(message)
      expect((yield* Effect.flip(claim(path, { program: "test" }))).message).toBe(message)
    }),
  )

  it.runIf(existsSync("/proc/self"))("is not called a missing file where the file system takes none", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const error = yield* Effect.flip(claim("/proc/no-such/store.db", { program: "test" }))
        expect(error.message).toMatch(
          /^\/proc\/no-such\/store\.db: its directory \/proc\/no-such cannot be made: .*\. .*another path with --db$/,
        )
      }).pipe(Effect.scoped),
    ),
  )
})

describe("a reader", () => {
  it.scopedLive("of a missing file says so and creates nothing", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const error = yield* Effect.flip(makeSqliteReader({ path: join(directory, "none.db") }))
      expect(error).toMatchObject({ _tag: "StorageUnavailable" })
      expect(error.message).toContain("there is no such file")
      expect(readdirSync(directory)).toEqual([])
    }),
  )

  it.scopedLive("reads what a closed owner left, when there is neither log nor shared memory", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const id = yield* filled(path)
      expect(existsSync(`${path}-wal`)).toBe(false)
      const reader = yield* makeSqliteReader({ path })
      expect((yield* reader.entries(id)).length).toBe(2)
      expect((yield* reader.conversations({ principal: null, limit: 5 })).length).toBe(1)
    }),
  )

  it.scopedLive("sees each commit of a running owner, and keeps reading when the owner leaves and another comes", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const scope = yield* Scope.make()
      const store = yield* Scope.extend(makeSqliteStore({ path }), scope)
      const first = yield* fill(store, 1)
      const reader = yield* makeSqliteReader({ path })
      expect((yield* reader.entries(first)).length).toBe(1)
      const second = yield* fill(store, 3)
      expect((yield* reader.visibleEntries(second)).length).toBe(3)
      yield* Scope.close(scope, Exit.void)
      expect((yield* reader.entries(second)).length).toBe(3)
      const next = yield* makeSqliteStore({ path })
      const third = yield* fill(next, 2)
      expect((yield* reader.contextEntries(third)).length).toBe(2)
    }),
  )

  it.scopedLive("never keeps an owner from writing or from closing", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      yield* filled(path)
      const reader = yield* makeSqliteReader({ path })
      yield* Effect.scoped(Effect.flatMap(makeSqliteStore({ path }), (store) => fill(store, 5)))
      expect((yield* reader.conversations({ principal: null, limit: 5 })).length).toBe(2)
    }),
  )

  it.scopedLive("works on a file and directory that are read-only", () =>
    Effect.gen(function* () {
      const directory = join(yield* temporaryDirectory, "fixed")
      mkdirSync(directory)
      const path = join(directory, "store.db")
      const id = yield* filled(path)
      chmodSync(path, 0o400)
      chmodSync(directory, 0o500)
      const entries = yield* Effect.scoped(Effect.flatMap(makeSqliteReader({ path }), (reader) => reader.entries(id)))
      chmodSync(directory, 0o700)
      expect(entries.length).toBe(2)
    }),
  )
})

describe("a closed store", () => {
  it.scopedLive("answers commits, ids and reads with a typed error", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const scope = yield* Scope.make()
      const store = yield* Scope.extend(makeSqliteStore({ path }), scope)
      const id = yield* fill(store, 1)
      yield* Scope.close(scope, Exit.void)
      for (const use of [store.commit({}), store.mint("entry", 1), store.entries(id), store.visibleEntries(id)]) {
        expect(yield* Effect.flip(Effect.asVoid<unknown, { _tag: string }, never>(use))).toMatchObject({
          _tag: "StorageUnavailable",
          cause: "the store is closed",
        })
      }
    }),
  )

  it.scopedLive("has written what was queued when it closed", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const scope = yield* Scope.make()
      const store = yield* Scope.extend(makeSqliteStore({ path }), scope)
      const id = yield* fill(store, 1)
      const ids = yield* store.mint("entry", 10)
      const waiting = yield* Effect.forEach(ids, (own) => Effect.fork(store.commit({ entries: [entry(own, id)] })))
      yield* Effect.yieldNow()
      yield* Scope.close(scope, Exit.void)
      const exits = yield* Effect.forEach(waiting, (fiber) => fiber.await)
      const written = exits.filter(Exit.isSuccess).length
      const reader = yield* makeSqliteReader({ path })
      expect((yield* reader.entries(id)).length).toBe(1 + written)
    }),
  )
})
