/**
 * The pool: what it refuses at open, what it says when the server is away, and how it sheds load.
 */
import { it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { describe, expect } from "vitest"
import { unavailable } from "../../../src/storage/postgres/failures.ts"
import { openPool } from "../../../src/storage/postgres/pool.ts"
import { type PostgresSettings, settingsOfUrl } from "../../../src/storage/postgres/settings.ts"
import { WaitJudge } from "../../../src/storage/postgres/shedding.ts"
import { describePostgres, describePostgresServer, postgresDatabase, postgresServer } from "../../support/postgres.ts"
import { fakePooler } from "./fake-pooler.ts"

const settingsOf = (url: string, more: Partial<PostgresSettings> = {}): PostgresSettings => ({
  ...Either.getOrThrow(settingsOfUrl(url)),
  ...more,
})

const open = (url: string, more: Partial<PostgresSettings> = {}) =>
  openPool(settingsOf(url, more), { applicationName: "super-pi test" })

/** The message with which opening fails. */
const refusal = (url: string) =>
  Effect.map(Effect.either(Effect.scoped(open(url))), (result) =>
    Either.isLeft(result) ? result.left.message : "opened",
  )

const withPart = (url: string, part: "password" | "pathname" | "port" | "username", value: string): string => {
  const changed = new URL(url)
  changed[part] = value
  return changed.href
}

describePostgres("an open pool", () => {
  it.scopedLive("knows its server and reads bigint as numbers", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const { server, sql } = yield* open(url)
      expect(server).toEqual({ version: expect.stringMatching(/^\d+/), tls: null })
      expect(yield* sql`SELECT 9007199254740991::bigint AS n, current_setting('application_name') AS name`).toEqual([
        { n: 9007199254740991, name: "super-pi test" },
      ])
    }),
  )

  it.scopedLive("goes on after its connections were ended", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const { sql } = yield* open(url)
      yield* sql`SELECT 1`
      const { sql: other } = yield* open(url)
      yield* other`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`
      const again = sql`SELECT 1 AS one`.pipe(Effect.retry({ times: 3 }))
      expect(yield* again).toEqual([{ one: 1 }])
    }),
  )

  it.scopedLive("says what is wrong with how it was to connect", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      expect(yield* refusal(withPart(url, "password", "geheim"))).toMatch(
        /^postgresql:\/\/postgres@127\.0\.0\.1:\d+\/\w+: the password is wrong \(28P01\)\. Check the user and password in DATABASE_URL$/,
      )
      expect(yield* refusal(withPart(url, "password", ""))).toMatch(
        /the server asks for a password|the password is wrong/,
      )
      expect(yield* refusal(withPart(url, "pathname", "/nowhere"))).toContain("there is no such database (3D000)")
      expect(yield* refusal(withPart(url, "port", "1"))).toContain("nobody answers there (ECONNREFUSED)")
      expect(yield* refusal(`${url}?sslmode=require`)).toContain("the server has no encryption")
      expect(yield* refusal(url.replace("127.0.0.1", "nowhere.invalid"))).toMatch(/no such host|cannot be looked up/)
    }),
  )
})

describePostgres("a pooler before the server", () => {
  it.scopedLive("is refused in transaction mode, whichever of its connections is next", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      for (const next of ["last", "first"] as const) {
        const pooled = yield* fakePooler(url, { mode: "transaction", next })
        expect(yield* refusal(pooled)).toMatch(
          /a pooler in transaction mode stands before the server.*pool_mode=session/,
        )
      }
    }),
  )

  it.scopedLive("is refused in statement mode", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      expect(yield* refusal(yield* fakePooler(url, { mode: "statement" }))).toContain("pool_mode=session")
    }),
  )

  it.scopedLive("is welcome in session mode", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const { sql } = yield* open(yield* fakePooler(url, { mode: "session" }))
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }])
    }),
  )
})

describePostgresServer("a server that goes away", () => {
  it.scopedLive("is named, and used again once it is back", () =>
    Effect.gen(function* () {
      const server = yield* postgresServer()
      const { url } = yield* server.database
      const { location, sql } = yield* open(url)
      yield* server.stop
      const failed = yield* Effect.flip(sql`SELECT 1`.pipe(Effect.repeat({ times: 3 })))
      expect(unavailable(location, failed).message).toMatch(/nobody answers there|connection was lost|shutting down/)
      expect(yield* refusal(url)).toContain("nobody answers there")
      yield* server.start
      expect(yield* sql`SELECT 1 AS one`.pipe(Effect.retry({ times: 3 }))).toEqual([{ one: 1 }])
    }),
  )
})

describePostgres("waiting for a connection", () => {
  it.scopedLive("is refused while everybody waits for long, and those who stay are served", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const { location, sql } = yield* open(url, { poolSize: 1, queueTargetMs: 5, queueIntervalMs: 20 })
      const query = Effect.either(sql`SELECT pg_sleep(0.03)`)
      const results = yield* Effect.all(
        Array.from({ length: 60 }, () => query),
        { concurrency: "unbounded" },
      )
      const refused = results.filter(Either.isLeft)
      expect(refused.length).toBeGreaterThan(0)
      expect(refused.length).toBeLessThan(60)
      for (const { left } of refused) {
        expect(unavailable(location, left).message).toMatch(/no connection became free within \d+ ms.*raise POOL_SIZE/i)
      }
      // the burst is over: nobody is refused
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }])
    }),
  )

  it.scopedLive("is no trouble for a burst", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const { sql } = yield* open(url, { poolSize: 2, queueTargetMs: 1_000, queueIntervalMs: 5_000 })
      const rows = yield* Effect.all(
        Array.from({ length: 200 }, () => sql`SELECT 1 AS one`),
        { concurrency: "unbounded" },
      )
      expect(rows).toHaveLength(200)
    }),
  )
})

describe("the judge of waits", () => {
  const times = { targetMs: 50, intervalMs: 1_000 }

  it("lets everybody wait while somebody is served in time", () => {
    const judge = new WaitJudge(times, 0)
    for (let now = 0; now <= 5_000; now += 100) judge.served(now, now % 1_000 === 500 ? 10 : 900)
    expect(judge.limit(5_000)).toBeNull()
  })

  it("refuses whoever waited for twice the target once a whole interval was too slow, until one is not", () => {
    const judge = new WaitJudge(times, 0)
    judge.served(100, 60)
    judge.served(900, 80)
    expect(judge.limit(999)).toBeNull()
    expect(judge.limit(1_000)).toBe(100)
    judge.served(1_500, 20)
    expect(judge.limit(1_999)).toBe(100)
    expect(judge.limit(2_000)).toBeNull()
  })

  it("refuses where nobody is served at all", () => {
    const judge = new WaitJudge(times, 0)
    judge.stuck(1_000, 1_000)
    expect(judge.limit(1_000)).toBe(100)
  })

  it("forgets what was slow when nobody waits any more", () => {
    const judge = new WaitJudge(times, 0)
    judge.served(500, 300)
    expect(judge.limit(1_000)).toBe(100)
    expect(judge.limit(60_000)).toBeNull()
  })
})
