/**
 * Migrations: what they refuse, two processes at once, a process that dies in the middle, up and down again.
 */
import { it } from "@effect/vitest"
import { Deferred, Effect, Either, Fiber } from "effect"
import pg from "pg"
import { expect } from "vitest"
import { lockClass, ownerLock } from "../../../src/storage/postgres/locks.ts"
import { type MigrateOptions, migrate, schemaStatus } from "../../../src/storage/postgres/migrations.ts"
import { type Migration, migrations } from "../../../src/storage/postgres/schema.ts"
import { requireSchema } from "../../../src/storage/postgres/schema-version.ts"
import { settingsOfUrl } from "../../../src/storage/postgres/settings.ts"
import { describePostgres, postgresDatabase } from "../../support/postgres.ts"
import { fakePooler } from "./fake-pooler.ts"

const newest = migrations.length

const settingsAt = (url: string) => Either.getOrThrow(settingsOfUrl(url))

/** A connection to look at the database with. */
const connected = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: url })
      client.on("error", () => undefined)
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end()),
  )

const run = (client: pg.Client, sql: string, values: ReadonlyArray<unknown> = []) =>
  Effect.promise(async () => (await client.query(sql, [...values])).rows)

const fresh = Effect.gen(function* () {
  const { url } = yield* postgresDatabase
  return { url, settings: settingsAt(url), client: yield* connected(url) }
})

/** What a migration or a look fails with. */
const failure = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(
    Effect.flip(Effect.mapBoth(effect, { onFailure: (error) => error.message, onSuccess: () => "it worked" })),
    String,
  )

/** Everything in the database that migrations make. */
const everything = `SELECT kind, name FROM (
    SELECT 'relation' AS kind, relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'function', proname::text || pg_get_function_identity_arguments(oid) FROM pg_proc
      WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'type', typname::text FROM pg_type WHERE typnamespace = 'public'::regnamespace
  ) things ORDER BY 1, 2`

const conversation = `INSERT INTO conversations (id, principal, title, created_at, updated_at, place, seq)
  VALUES (7, 'local', 'kept', 1, 1, 7, 1)`

/** A step that waits for an advisory lock of the test, so that something can happen meanwhile. */
const waiting: Migration = {
  version: newest + 1,
  name: "waits",
  up: "CREATE TABLE later (id int); SELECT pg_advisory_xact_lock(42)",
  down: "DROP TABLE later",
}

const backendsWaiting =
  "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"

describePostgres("migrations", () => {
  it.scopedLive("take an empty database to the newest version, and then find nothing to do", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      expect(yield* schemaStatus(settings)).toMatchObject({ version: 0, newest, applied: [] })
      const steps = yield* migrate(settings)
      expect(steps).toEqual(migrations.map(({ name, version }) => ({ direction: "up", version, name })))
      const { applied, pending, version } = yield* schemaStatus(settings)
      expect({ version, pending }).toEqual({ version: newest, pending: [] })
      expect(applied.map(({ name }) => name)).toEqual(migrations.map(({ name }) => name))
      expect(yield* migrate(settings)).toEqual([])
      yield* Effect.promise(() => requireSchema("here", client))
    }),
  )

  it.scopedLive("are named to whoever opens a database that lacks them", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      const open = Effect.tryPromise({
        try: () => requireSchema("here", client),
        catch: (error) => (error instanceof Error ? error : new Error(String(error))),
      })
      expect(yield* failure(open)).toContain(`has version 0, this program needs ${newest}. Run \`super-pi migrate\``)
      yield* migrate(settings, { to: 1 })
      expect(yield* failure(open)).toContain("has version 1")
    }),
  )

  it.scopedLive("by many processes at once happen once", () =>
    Effect.gen(function* () {
      const { settings } = yield* fresh
      const reports = yield* Effect.all(
        Array.from({ length: 5 }, () => migrate(settings)),
        { concurrency: "unbounded" },
      )
      expect(reports.flat().map(({ version }) => version)).toEqual(migrations.map(({ version }) => version))
      expect((yield* schemaStatus(settings)).version).toBe(newest)
    }),
  )

  it.scopedLive("say that they wait for somebody else's", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      yield* run(client, "SELECT pg_advisory_lock(42)")
      const first = yield* Effect.fork(migrate(settings, { migrations: [...migrations, waiting] }))
      const waits = yield* Deferred.make<void>()
      yield* until(client, 1)
      const second = yield* Effect.fork(
        migrate(settings, {
          migrations: [...migrations, waiting],
          onWait: Effect.asVoid(Deferred.succeed(waits, undefined)),
        }),
      )
      yield* Deferred.await(waits)
      yield* run(client, "SELECT pg_advisory_unlock(42)")
      expect(yield* Fiber.join(first)).toHaveLength(newest + 1)
      expect(yield* Fiber.join(second)).toEqual([])
    }),
  )

  it.scopedLive("whose process dies in the middle leave whole steps, and the next one goes on", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      const all: MigrateOptions = { migrations: [...migrations, waiting] }
      yield* run(client, "SELECT pg_advisory_lock(42)")
      const dying = yield* Effect.fork(Effect.either(migrate(settings, all)))
      const [backend] = yield* until(client, 1)
      yield* run(client, "SELECT pg_terminate_backend($1, 5000)", [backend?.pid])
      expect(Either.isLeft(yield* Fiber.join(dying))).toBe(true)
      expect(yield* run(client, "SELECT to_regclass('later') AS later")).toEqual([{ later: null }])
      expect((yield* schemaStatus(settings)).version).toBe(newest)
      yield* run(client, "SELECT pg_advisory_unlock(42)")
      expect(yield* migrate(settings, all)).toEqual([{ direction: "up", version: newest + 1, name: "waits" }])
    }),
  )

  it.scopedLive("that fail change nothing, and say what the server said", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      const broken: Migration = {
        version: newest + 1,
        name: "broken",
        up: "CREATE TABLE a (id int); SELECT 1/0",
        down: "",
      }
      expect(yield* failure(migrate(settings, { migrations: [...migrations, broken] }))).toContain("division by zero")
      expect(yield* run(client, "SELECT to_regclass('a') AS a")).toEqual([{ a: null }])
      expect((yield* schemaStatus(settings)).version).toBe(newest)
    }),
  )

  it.scopedLive("go down step by step and leave nothing behind at version 0", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      const empty = yield* run(client, everything)
      const stages: Array<ReadonlyArray<unknown>> = []
      for (let version = 1; version <= newest; version++) {
        yield* migrate(settings, { to: version })
        stages.push(yield* run(client, everything))
      }
      for (let version = newest - 1; version >= 1; version--) {
        expect(yield* migrate(settings, { to: version })).toMatchObject([{ direction: "down", version: version + 1 }])
        expect(yield* run(client, everything)).toEqual(stages[version - 1])
      }
      yield* migrate(settings, { to: 0 })
      expect(yield* run(client, everything)).toEqual(empty)
      yield* migrate(settings)
      expect(yield* run(client, everything)).toEqual(stages.at(-1))
    }),
  )

  it.scopedLive("keep the conversations that both versions hold, and take none away without being told", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      yield* migrate(settings)
      yield* run(client, conversation)
      expect(yield* failure(migrate(settings, { to: newest - 1 }))).toContain("Make a backup, then add --force")
      expect((yield* schemaStatus(settings)).version).toBe(newest)
      yield* migrate(settings, { to: newest - 1, force: true })
      yield* migrate(settings)
      expect(yield* run(client, "SELECT id, title FROM conversations")).toEqual([{ id: "7", title: "kept" }])
    }),
  )

  it.scopedLive("do not go down while a node works on the database, and go up beside it", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      yield* migrate(settings, { to: 1 })
      yield* run(client, `SELECT pg_advisory_lock_shared(${lockClass}, ${ownerLock})`)
      expect(yield* failure(migrate(settings, { to: 0 }))).toContain("Stop every node first")
      expect(yield* migrate(settings)).toHaveLength(newest - 1)
    }),
  )

  it.scopedLive("refuse versions that there are not", () =>
    Effect.gen(function* () {
      const { settings } = yield* fresh
      for (const to of [-1, newest + 1, 1.5]) {
        expect(yield* failure(migrate(settings, { to }))).toContain(`This program knows versions 0 to ${newest}`)
      }
    }),
  )

  it.scopedLive("refuse a database of others", () =>
    Effect.gen(function* () {
      const one = yield* fresh
      yield* run(one.client, "CREATE TABLE customers (id int)")
      const said = yield* failure(migrate(one.settings))
      expect(said).toContain("it has tables of others, like customers")
      expect(said).toContain("DATABASE_URL")
      const other = yield* fresh
      yield* run(other.client, "CREATE TABLE schema_migrations (version bigint, inserted_at timestamp)")
      expect(yield* failure(migrate(other.settings))).toContain("belongs to another program")
      expect(yield* failure(schemaStatus(other.settings))).toContain("belongs to another program")
    }),
  )

  it.scopedLive("refuse a database of a newer program", () =>
    Effect.gen(function* () {
      const { client, settings } = yield* fresh
      yield* migrate(settings)
      yield* run(client, "INSERT INTO schema_migrations VALUES ($1, 'newer', 1)", [newest + 1])
      expect(yield* failure(migrate(settings))).toContain(`has schema version ${newest + 1}`)
    }),
  )

  it.scopedLive("refuse a pooler in transaction mode", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const pooled = settingsAt(yield* fakePooler(url, { mode: "transaction" }))
      expect(yield* failure(migrate(pooled))).toContain("pool_mode=session")
    }),
  )
})

/** Looks until that many backends wait for an advisory lock. */
const until = (client: pg.Client, count: number) =>
  run(client, backendsWaiting).pipe(
    Effect.repeat({ until: (rows) => rows.length >= count, times: 2_000 }),
    Effect.tap((rows) => Effect.sync(() => expect(rows.length).toBeGreaterThanOrEqual(count))),
  )
