/**
 * Who may work on a database: one node alone, or the nodes of a cluster together.
 */
import { hostname } from "node:os"
import { it } from "@effect/vitest"
import { Deferred, Effect, Either, Exit, Fiber, Scope } from "effect"
import pg from "pg"
import { expect } from "vitest"
import { type Ownership, ownDatabase } from "../../../src/storage/postgres/ownership.ts"
import { type PostgresSettings, settingsOfUrl } from "../../../src/storage/postgres/settings.ts"
import { describePostgres, describePostgresServer, postgresDatabase, postgresServer } from "../../support/postgres.ts"

const settingsAt = (url: string): PostgresSettings => Either.getOrThrow(settingsOfUrl(url))

/** What a second one is told, or `owned`. */
const second = (settings: PostgresSettings, as: Ownership) =>
  Effect.scoped(ownDatabase(settings, { program: "super-pi other", as })).pipe(
    Effect.match({ onFailure: (error) => error.message, onSuccess: () => "owned" }),
  )

const query = (url: string, sql: string) =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: url })
    client.on("error", () => undefined)
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  })

const endOwners = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'super-pi%'`

const lockHeld = `SELECT count(*)::int AS held FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

const held = (url: string) =>
  query(url, lockHeld).pipe(Effect.repeat({ until: ([row]) => row?.held === 1, times: 500 }))

describePostgres("the owner of a database", () => {
  it.scopedLive("keeps others out, who are told its program, process and host", () =>
    Effect.gen(function* () {
      const settings = settingsAt((yield* postgresDatabase).url)
      yield* ownDatabase(settings, { program: "super-pi chat", as: "alone" })
      const said = yield* second(settings, "alone")
      expect(said).toContain(`is in use by super-pi chat (process ${process.pid} on ${hostname()}`.slice(0, 60))
      expect(said).toMatch(/since \d{4}-\d\d-\d\dT.*close it, use its gateway.*attaching works with SQLite only/)
    }),
  )

  it.scopedLive("leaves it to the next one when it ends", () =>
    Effect.gen(function* () {
      const settings = settingsAt((yield* postgresDatabase).url)
      const scope = yield* Scope.make()
      yield* Scope.extend(ownDatabase(settings, { program: "super-pi chat", as: "alone" }), scope)
      expect(yield* second(settings, "alone")).toContain("is in use")
      yield* Scope.close(scope, Exit.void)
      expect(yield* second(settings, "alone")).toBe("owned")
    }),
  )

  it.scopedLive("may be many nodes of a cluster, and then nobody alone", () =>
    Effect.gen(function* () {
      const settings = settingsAt((yield* postgresDatabase).url)
      yield* ownDatabase(settings, { program: "super-pi node", as: "clustered" })
      expect(yield* second(settings, "clustered")).toBe("owned")
      expect(yield* second(settings, "alone")).toContain("is in use by super-pi node")
    }),
  )

  it.scopedLive("alone keeps nodes of a cluster out", () =>
    Effect.gen(function* () {
      const settings = settingsAt((yield* postgresDatabase).url)
      yield* ownDatabase(settings, { program: "super-pi run", as: "alone" })
      expect(yield* second(settings, "clustered")).toMatch(
        /is in use by super-pi run.*run it as a node of the cluster too/,
      )
    }),
  )

  it.scopedLive("takes its lock again when its connection is ended", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const settings = settingsAt(url)
      yield* ownDatabase(settings, { program: "super-pi chat", as: "alone" })
      yield* query(url, endOwners)
      yield* held(url)
      expect(yield* second(settings, "alone")).toContain("is in use by super-pi chat")
    }),
  )

  it.scopedLive("of another database of the same server is nobody's business", () =>
    Effect.gen(function* () {
      yield* ownDatabase(settingsAt((yield* postgresDatabase).url), { program: "super-pi chat", as: "alone" })
      expect(yield* second(settingsAt((yield* postgresDatabase).url), "alone")).toBe("owned")
    }),
  )

  it.scopedLive("of many that come at once is exactly one", () =>
    Effect.gen(function* () {
      const settings = settingsAt((yield* postgresDatabase).url)
      const end = yield* Deferred.make<void>()
      const tries = yield* Effect.all(
        Array.from({ length: 5 }, () =>
          Effect.gen(function* () {
            const scope = yield* Scope.make()
            const result = yield* Effect.either(
              Scope.extend(ownDatabase(settings, { program: "super-pi chat", as: "alone" }), scope),
            )
            yield* Effect.fork(Effect.zipRight(Deferred.await(end), Scope.close(scope, Exit.void)))
            return Either.isRight(result)
          }),
        ),
        { concurrency: "unbounded" },
      )
      yield* Deferred.succeed(end, undefined)
      expect(tries.filter((owns) => owns)).toHaveLength(1)
    }),
  )
})

describePostgresServer("the owner of a database whose server restarts", () => {
  it.scopedLive("is the owner again", () =>
    Effect.gen(function* () {
      const server = yield* postgresServer()
      const { url } = yield* server.database
      const settings = settingsAt(url)
      const owner = yield* Effect.fork(
        Effect.scoped(Effect.zipRight(ownDatabase(settings, { program: "super-pi chat", as: "alone" }), Effect.never)),
      )
      yield* held(url)
      yield* server.restart
      yield* held(url)
      expect(yield* second(settings, "alone")).toContain("is in use by super-pi chat")
      yield* Fiber.interrupt(owner)
      expect(yield* second(settings, "alone")).toBe("owned")
    }),
  )
})
