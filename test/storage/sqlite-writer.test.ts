/**
 * The writer: groups, fencing by epoch, a full disk, somebody else's lock, the size of the log.
 */
import { statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Either, Fiber } from "effect"
import { conversation, document, entry } from "../../src/storage/conformance/records.ts"
import { makeSqliteReader, makeSqliteStore, type SqliteStoreOptions } from "../../src/storage/sqlite/store.ts"
import type { Commit, StoreService } from "../../src/storage/store.ts"
import { temporaryDirectory } from "./support.ts"

/** An open store with one conversation. */
const begun = (options: Omit<SqliteStoreOptions, "path"> = {}) =>
  Effect.gen(function* () {
    const path = join(yield* temporaryDirectory, "store.db")
    const store = yield* makeSqliteStore({ path, ...options })
    const [id] = yield* store.mint("conversation", 1)
    if (id === undefined) return yield* Effect.dieMessage("no id")
    yield* store.commit({ conversations: [conversation(id)] })
    const append = (data: string) =>
      Effect.gen(function* () {
        const [own] = yield* store.mint("entry", 1)
        if (own === undefined) return yield* Effect.dieMessage("no id")
        return yield* store.commit({ entries: [entry(own, id, { data })] })
      })
    return { path, store, id, append }
  })

const wal = (path: string): number => statSync(`${path}-wal`).size

/** One turn of the event loop. */
const turn = Effect.async<void>((done) => void setImmediate(() => done(Effect.void)))

describe("commits that arrive together", () => {
  it.scopedLive("share a transaction: the log grows far less than one by one", () =>
    Effect.gen(function* () {
      const { path, store, id } = yield* begun()
      const ids = yield* store.mint("entry", 200)
      const commits = ids.map((own): Commit => ({ entries: [entry(own, id)] }))
      const start = wal(path)
      yield* Effect.forEach(commits.slice(0, 100), (commit) => store.commit(commit))
      const alone = wal(path) - start
      yield* Effect.forEach(commits.slice(100), (commit) => store.commit(commit), { concurrency: "unbounded" })
      const together = wal(path) - start - alone
      expect((yield* store.entries(id)).length).toBe(200)
      expect(together * 5).toBeLessThan(alone)
    }),
  )

  it.scopedLive("more than fit one group are all written, in order", () =>
    Effect.gen(function* () {
      const { store, id } = yield* begun()
      const ids = yield* store.mint("entry", 1000)
      const numbers = yield* Effect.forEach(ids, (own) => store.commit({ entries: [entry(own, id)] }), {
        concurrency: "unbounded",
      })
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
      expect((yield* store.entries(id)).length).toBe(1000)
    }),
  )

  it.scopedLive("with a value that is not JSON fail only their own caller, as a defect", () =>
    Effect.gen(function* () {
      const { store, id } = yield* begun()
      const [a, b] = yield* store.mint("document", 2)
      if (a === undefined || b === undefined) return
      const cycle: Array<never> = []
      cycle.push(cycle as never)
      const [bad, good] = yield* Effect.all(
        [
          Effect.sandbox(Effect.either(store.commit({ documents: [document(a, id, { value: cycle })] }))).pipe(
            Effect.flip,
          ),
          store.commit({ documents: [document(b, id, { key: "b" })] }),
        ],
        { concurrency: "unbounded" },
      )
      expect(bad._tag).toBe("Die")
      expect(good).toBeGreaterThan(0)
      expect((yield* store.documents(id)).map((row) => row.id)).toEqual([b])
    }),
  )
})

describe("a second owner", () => {
  it.scopedLive("fences the first one for good, and loses none of what that one had answered", () =>
    Effect.gen(function* () {
      const { path, store: old, id, append } = yield* begun()
      yield* append("before")
      const store = yield* makeSqliteStore({ path })
      expect(store.epoch).toBe(old.epoch + 1)
      const [own] = yield* store.mint("entry", 1)
      if (own === undefined) return
      const fenced = yield* Effect.flip(append("after"))
      expect(fenced).toMatchObject({ _tag: "Fenced", what: path, held: old.epoch, current: store.epoch })
      expect(yield* Effect.flip(old.mint("entry", 5000))).toMatchObject({ _tag: "Fenced" })
      yield* store.commit({ entries: [entry(own, id, { data: "new owner" })] })
      const together = yield* Effect.forEach([1, 2, 3], () => Effect.flip(old.commit({})), { concurrency: "unbounded" })
      expect(together.map((error) => error._tag)).toEqual(["Fenced", "Fenced", "Fenced"])
      expect((yield* store.entries(id)).map((row) => row.data)).toEqual(["before", "new owner"])
    }),
  )

  it.scopedLive("never mints an id that the first one had minted, even one that was never committed", () =>
    Effect.gen(function* () {
      const { path, store: old } = yield* begun()
      const before = yield* old.mint("task", 10)
      const store = yield* makeSqliteStore({ path })
      const after = yield* store.mint("task", 10)
      const leftover = yield* old.mint("task", 10)
      expect(new Set([...before, ...after, ...leftover]).size).toBe(30)
    }),
  )
})

describe("a full disk", () => {
  const fillUp = (store: StoreService, append: (data: string) => Effect.Effect<unknown, { _tag: string }>) =>
    Effect.gen(function* () {
      let written = 0
      while (true) {
        const result = yield* Effect.either(append("x".repeat(50_000)))
        if (Either.isLeft(result)) return { written, error: result.left, location: store.location }
        written++
      }
    })

  it.scopedLive(
    "is a typed error with advice, loses nothing that was answered, and goes on when there is room again",
    () =>
      Effect.gen(function* () {
        const { path, store, id, append } = yield* begun({ maxBytes: 1_000_000 })
        const [spare] = yield* store.mint("conversation", 1)
        if (spare === undefined) return
        const ballast = yield* store.mint("entry", 5)
        yield* store.commit({
          conversations: [conversation(spare)],
          entries: ballast.map((own) => entry(own, spare, { data: "y".repeat(50_000) })),
        })
        const { written, error } = yield* fillUp(store, append)
        expect(error).toMatchObject({ _tag: "StorageUnavailable", location: path })
        expect(`${error}`).toMatch(/full.*Free some space/s)
        expect(written).toBeGreaterThan(5)
        expect((yield* store.entries(id)).length).toBe(written)
        yield* store.commit({ removeConversations: [spare] })
        yield* append("x".repeat(50_000))
        expect((yield* store.entries(id)).length).toBe(written + 1)
        const reader = yield* makeSqliteReader({ path })
        expect((yield* reader.entries(id)).length).toBe(written + 1)
      }),
  )

  it.scopedLive("refuses the commit that does not fit, not the small ones that came with it", () =>
    Effect.gen(function* () {
      const { store, id } = yield* begun({ maxBytes: 400_000 })
      const ids = yield* store.mint("entry", 9)
      const results = yield* Effect.forEach(
        ids,
        (own, index) =>
          Effect.either(store.commit({ entries: [entry(own, id, { data: "z".repeat(index === 4 ? 900_000 : 100) })] })),
        { concurrency: "unbounded" },
      )
      expect(results.map(Either.isRight)).toEqual(ids.map((_, index) => index !== 4))
      expect((yield* store.entries(id)).map((row) => row.id)).toEqual(ids.filter((_, index) => index !== 4))
    }),
  )
})

describe("a lock of another program", () => {
  it.scopedLive("is waited for; commits and ids come through when it goes", () =>
    Effect.gen(function* () {
      const { path, store, id, append } = yield* begun()
      const other = yield* Effect.acquireRelease(
        Effect.sync(() => new Database(path)),
        (db) => Effect.sync(() => db.close()),
      )
      other.exec("BEGIN IMMEDIATE")
      const waiting = yield* Effect.fork(
        Effect.all([append("a"), append("b"), store.mint("entry", 10_000)], { concurrency: "unbounded" }),
      )
      yield* Effect.repeatN(turn, 5)
      expect((yield* Fiber.poll(waiting))._tag).toBe("None")
      expect(yield* store.entries(id)).toEqual([])
      other.exec("COMMIT")
      yield* Fiber.join(waiting)
      expect((yield* store.entries(id)).map((row) => row.data).sort()).toEqual(["a", "b"])
    }),
  )
})

describe("the log", () => {
  it.scopedLive("stays small however long the store runs, and is gone after a clean close", () =>
    Effect.gen(function* () {
      const { path, store, id } = yield* begun()
      const [doc] = yield* store.mint("document", 1)
      if (doc === undefined) return
      let largest = 0
      for (let round = 0; round < 150; round++) {
        const ids = yield* store.mint("entry", 20)
        yield* Effect.forEach(
          ids,
          (own) =>
            store.commit({
              entries: [entry(own, id, { data: "w".repeat(1500) })],
              documents: [document(doc, id, { value: round })],
            }),
          { concurrency: 2 },
        )
        largest = Math.max(largest, wal(path))
      }
      expect(statSync(path).size).toBeGreaterThan(4_000_000)
      expect(largest).toBeGreaterThan(4_000_000)
      expect(largest).toBeLessThan(10_000_000)
    }),
  )
})
