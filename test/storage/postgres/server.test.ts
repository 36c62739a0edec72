/**
 * The PostgreSQL server that tests use: fresh databases, and servers that end and come back.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import pg from "pg"
import { describePostgres, describePostgresServer, postgresDatabase, postgresServer } from "../../support/postgres.ts"

const query = (url: string, sql: string) =>
  Effect.tryPromise(async () => {
    const client = new pg.Client({ connectionString: url })
    client.on("error", () => undefined)
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  })

describePostgres("a database for a test", () => {
  it.scoped("is empty and its own", () =>
    Effect.gen(function* () {
      const [one, other] = yield* Effect.all([postgresDatabase, postgresDatabase], { concurrency: 2 })
      yield* query(one.url, "CREATE TABLE t (id int)")
      const tables = "SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = 'public'"
      expect(yield* query(one.url, tables)).toEqual([{ n: 1 }])
      expect(yield* query(other.url, tables)).toEqual([{ n: 0 }])
    }),
  )

  it.effect("is gone with its scope", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.scoped(postgresDatabase)
      expect((yield* Effect.exit(query(url, "SELECT 1")))._tag).toBe("Failure")
    }),
  )
})

describePostgresServer("a server of one's own", () => {
  it.scoped("keeps what was committed through a stop and through a crash", () =>
    Effect.gen(function* () {
      const server = yield* postgresServer({ durable: true })
      const { url } = yield* server.database
      yield* query(url, "CREATE TABLE t (id int)")
      yield* server.restart
      yield* query(url, "INSERT INTO t VALUES (1)")
      yield* server.crash
      expect(server.pid()).toBeNull()
      expect((yield* Effect.exit(query(url, "SELECT 1")))._tag).toBe("Failure")
      yield* server.start
      expect(yield* query(url, "SELECT id FROM t")).toEqual([{ id: 1 }])
    }),
  )
})
