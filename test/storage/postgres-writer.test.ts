/**
 * The writer of a PostgreSQL node when its connection breaks: before, during and after a commit; when the server restarts, and when it stays away.
 */
import { Effect, Either, Exit, Fiber, Schedule, type Scope } from "effect"
import type pg from "pg"
import { expect, it } from "vitest"
import type { ConversationId } from "../../src/domain/ids.ts"
import { conversation, entry, task } from "../../src/storage/conformance/records.ts"
import { openPool } from "../../src/storage/postgres/pool.ts"
import { makeNodeOn } from "../../src/storage/postgres/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { describePostgres, describePostgresServer, postgresServer } from "../support/postgres.ts"
import { proxyTo } from "./postgres-proxy.ts"
import { type MigratedDatabase, migratedDatabase, migratedOn, node, observer } from "./postgres-support.ts"

const run = <A>(body: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(body))

const begin = (store: StoreService) =>
  Effect.gen(function* () {
    const [id] = yield* store.mint("conversation", 1)
    if (id === undefined) return yield* Effect.dieMessage("mint gave no id")
    yield* store.commit({ conversations: [conversation(id)] })
    return id
  })

const note = (store: StoreService, of: ConversationId) =>
  Effect.map(store.mint("entry", 1), ([id]) => {
    if (id === undefined) throw new Error("mint gave no id")
    return entry(id, of)
  })

/** Ends every connection of a writer; gives how many there were. */
const killWriters = (rows: pg.Client): Effect.Effect<number> =>
  Effect.promise(async () => {
    const killed = await rows.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'super-pi writer %'",
    )
    return killed.rowCount ?? 0
  })

/** Waits until a writer of the database waits for a lock. */
const untilBlocked = (rows: pg.Client): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { rows: found } = yield* Effect.promise(() =>
      rows.query(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'super-pi writer %' AND wait_event_type = 'Lock'",
      ),
    )
    if (found.length > 0) return
    yield* Effect.sleep(5)
    yield* untilBlocked(rows)
  })

/** Through a proxy that is between the writer, and only it, and the server. */
const proxied = (database: MigratedDatabase) =>
  Effect.gen(function* () {
    const proxy = yield* proxyTo(database.settings.port)
    const pool = yield* openPool(database.settings, { applicationName: "super-pi reads" })
    const settings = { ...database.settings, host: "127.0.0.1", port: proxy.port }
    const { store } = yield* makeNodeOn(pool, { settings, node: { name: "one", address: "", version: "test" } })
    return { proxy, store }
  })

describePostgres("a connection that breaks", () => {
  it("while nothing is committed is replaced by the next commit, mint and taking", () =>
    run(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        const rows = yield* observer(database)
        const { store } = yield* node(database, "one")
        const of = yield* begin(store)
        for (const attempt of [
          Effect.flatMap(note(store, of), (row) => store.commit({ entries: [row] })),
          store.mint("conversation", 1),
          store.takeConversation(of),
        ]) {
          expect(yield* killWriters(rows)).toBe(1)
          yield* attempt
        }
        expect((yield* store.entries(of)).length).toBe(1)
      }),
    ))

  it("while commits are being applied lets none of them be lost or written twice", () =>
    run(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        const rows = yield* observer(database)
        const { store } = yield* node(database, "one")
        const of = yield* begin(store)
        yield* Effect.promise(() => rows.query("BEGIN"))
        yield* Effect.promise(() => rows.query("SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE", [of]))
        const notes = yield* Effect.forEach([1, 2, 3], () => note(store, of))
        const commits = yield* Effect.fork(
          Effect.forEach(notes, (row) => store.commit({ entries: [row] }), { concurrency: "unbounded" }),
        )
        yield* untilBlocked(rows)
        expect(yield* killWriters(rows)).toBe(1)
        yield* Effect.promise(() => rows.query("COMMIT"))
        const seqs = yield* Fiber.join(commits)
        expect((yield* store.entries(of)).map((row) => row.seq)).toEqual(seqs)
      }),
    ))

  for (const cut of ["before", "after"] as const) {
    it(`right ${cut} the server got a commit is noticed: the commit is there once, and answered with its number`, () =>
      run(
        Effect.gen(function* () {
          const database = yield* migratedDatabase
          const { proxy, store } = yield* proxied(database)
          const of = yield* begin(store)
          for (let round = 0; round < 5; round++) {
            const row = yield* note(store, of)
            const came = proxy.cutNext(cut)
            const seq = yield* store.commit({ entries: [row] })
            yield* Effect.promise(() => came)
            expect((yield* store.entry(row.id))?.seq).toBe(seq)
          }
          expect((yield* store.entries(of)).length).toBe(5)
        }),
      ))
  }

  it("after a group of which one commit was refused gives each of them its answer", () =>
    run(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        const { proxy, store } = yield* proxied(database)
        const of = yield* begin(store)
        const known = yield* note(store, of)
        yield* store.commit({ entries: [known] })
        const fresh = yield* note(store, of)
        // the first call is refused as a whole; the answer of the second one is lost
        const commits = [{ entries: [known] }, { entries: [fresh] }]
        const first = proxy.cutNext("after")
        const answers = yield* Effect.forEach(commits, (commit) => Effect.either(store.commit(commit)), {
          concurrency: "unbounded",
        })
        yield* Effect.promise(() => first)
        expect(answers.map((answer) => (Either.isLeft(answer) ? answer.left.message : "written"))).toEqual([
          `entry ${known.id}: this id is already used`,
          "written",
        ])
        const second = proxy.cutNext("after")
        const task1 = { tasks: [task((yield* store.mint("task", 1))[0] ?? (0 as never), of)] }
        const more = yield* Effect.forEach(
          [{ entries: [known] }, { entries: [fresh] }, task1],
          (commit) => Effect.either(store.commit(commit)),
          {
            concurrency: "unbounded",
          },
        )
        yield* Effect.promise(() => second)
        expect(more.map(Either.isLeft)).toEqual([true, true, false])
      }),
    ))

  it("of which the server knows nothing cannot commit late what it was sent", () =>
    run(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        const rows = yield* observer(database)
        const watch = yield* observer(database)
        const { proxy, store } = yield* proxied(database)
        const of = yield* begin(store)
        const row = yield* note(store, of)
        yield* Effect.promise(() => rows.query("BEGIN"))
        yield* Effect.promise(() => rows.query("SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE", [of]))
        const came = proxy.cutNext("half")
        const commit = yield* Effect.fork(store.commit({ entries: [row] }))
        yield* Effect.promise(() => came)
        // both wait for the lock: the statement of the lost connection, and the one that was sent again
        const blocked = Effect.promise(() =>
          watch.query(
            "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          ),
        )
        while ((yield* blocked).rows[0]?.n !== 2) yield* Effect.sleep(5)
        yield* Effect.promise(() => rows.query("COMMIT"))
        const seq = yield* Fiber.join(commit)
        expect((yield* store.entries(of)).map((one) => one.seq)).toEqual([seq])
        while ((yield* blocked).rows[0]?.n !== 0) yield* Effect.sleep(5)
        expect((yield* store.entry(row.id))?.seq).toBe(seq)
      }),
    ))

  it("of a node that was fenced off meanwhile tells what was committed before, and then nothing but Fenced", () =>
    run(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        const { cluster } = yield* node(database, "other")
        const { proxy, store } = yield* proxied(database)
        const of = yield* begin(store)
        const row = yield* note(store, of)
        const late = yield* note(store, of)
        const came = proxy.cutNext("after")
        const commit = yield* Effect.fork(store.commit({ entries: [row] }))
        yield* Effect.promise(() => came)
        proxy.refuse(true)
        while ((yield* store.entry(row.id)) === null) yield* Effect.sleep(5)
        yield* cluster.fenceOff(store.epoch)
        proxy.refuse(false)
        expect(yield* Fiber.join(commit)).toBe((yield* store.entry(row.id))?.seq)
        expect((yield* Effect.flip(store.commit({ entries: [late] })))._tag).toBe("Fenced")
        expect((yield* store.entries(of)).length).toBe(1)
      }),
    ))
})

describePostgres("a store that is closed", () => {
  it("writes what is queued, ends its epoch, and refuses what comes later", () =>
    run(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        const { store: other } = yield* node(database, "other")
        const scoped = Effect.scoped(
          Effect.gen(function* () {
            const { store } = yield* node(database, "one")
            const of = yield* begin(store)
            const notes = yield* Effect.forEach([1, 2, 3, 4], () => note(store, of))
            const commits = yield* Effect.forEach(notes, (row) => Effect.forkDaemon(store.commit({ entries: [row] })))
            yield* Effect.yieldNow()
            return { store, of, commits }
          }),
        )
        const { store, of, commits } = yield* scoped
        for (const fiber of commits) expect(Exit.isSuccess(yield* Fiber.await(fiber))).toBe(true)
        expect((yield* other.entries(of)).length).toBe(4)
        expect(yield* other.endedEpochs([store.epoch, other.epoch])).toEqual([store.epoch])
        const refused = yield* Effect.flip(store.commit({ entries: [] }))
        expect(refused.message).toMatch(/the store is closed. Open it again$/)
        expect((yield* Effect.flip(store.mint("entry", 900)))._tag).toBe("StorageUnavailable")
        expect((yield* Effect.flip(store.conversation(of)))._tag).toBe("StorageUnavailable")
      }),
    ))
})

describePostgresServer("a server that goes away", () => {
  it("and comes back under load loses nothing that was answered and answers everything", () =>
    run(
      Effect.gen(function* () {
        const server = yield* postgresServer()
        const database = yield* migratedOn(server.database)
        const { store } = yield* node(database, "one")
        const of = yield* begin(store)
        const writing = yield* Effect.fork(
          Effect.forEach(
            Array.from({ length: 8 }),
            () =>
              Effect.forEach(Array.from({ length: 60 }), () =>
                Effect.flatMap(note(store, of), (row) => store.commit({ entries: [row] })),
              ),
            { concurrency: "unbounded" },
          ),
        )
        while ((yield* store.entryCount(of)) < 20) yield* Effect.sleep(5)
        yield* server.restart
        yield* server.crash
        yield* server.start
        const seqs = (yield* Fiber.join(writing)).flat()
        const stored = (yield* store.entries(of)).map((row) => row.seq)
        expect(stored.toSorted((x, y) => x - y)).toEqual(seqs.toSorted((x, y) => x - y))
        expect(stored.length).toBe(480)
      }),
    ))

  it("and stays away fails what was not sent, with advice and nothing written; work goes on when it is back", () =>
    run(
      Effect.gen(function* () {
        const server = yield* postgresServer()
        const database = yield* migratedOn(server.database)
        const { store } = yield* node(database, "one", { patienceMs: 300 })
        const of = yield* begin(store)
        const [first, second] = [yield* note(store, of), yield* note(store, of)]
        yield* server.stop
        const idle = Effect.suspend(() => store.commit({ entries: [first] }))
        const refusals = [
          yield* Effect.flip(idle),
          yield* Effect.flip(idle),
          yield* Effect.flip(store.mint("conversation", 1)),
          yield* Effect.flip(store.takeConversation(of)),
          yield* Effect.flip(store.conversation(of)),
        ]
        for (const error of refusals) {
          // what it says depends on how far the server was: gone, going, or not answering in time
          expect(error).toMatchObject({ _tag: "StorageUnavailable", advice: expect.stringMatching(/\w/) })
          expect(error.message).not.toMatch("postgres:postgres")
        }
        yield* server.start
        // its patience is short: nothing was written by those that it refused meanwhile
        yield* Effect.retry(store.commit({ entries: [second] }), { schedule: Schedule.spaced("50 millis"), times: 200 })
        expect((yield* store.entries(of)).map((row) => row.id)).toEqual([second.id])
      }),
    ))
})
