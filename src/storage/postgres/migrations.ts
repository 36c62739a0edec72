/**
 * Takes the schema of a database to a version. Rules:
 * 1. One process at a time, under an advisory lock; whoever comes second waits and finds nothing left to do.
 * 2. Each migration is one transaction together with its row in `schema_migrations`: a process that dies leaves whole steps, and the next one
 *    goes on from there.
 * 3. Up may happen under running nodes: published migrations never take anything away from the version before. Down takes tables and
 *    columns away with what they hold, so nobody may work on the database, and where there are conversations somebody must say so.
 */
import { Clock, Data, Effect, type Scope } from "effect"
import type { Client } from "pg"
import type { OpenError } from "../errors.ts"
import { attempt, openClient } from "./client.ts"
import { lockClass, migrationLock, ownerLock } from "./locks.ts"
import { refusePooler } from "./pooler.ts"
import { type Migration, migrations as published } from "./schema.ts"
import { type AppliedMigration, readApplied, versionOf } from "./schema-version.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** A migration that is not done: nothing was changed, or only the whole steps before it. */
export class MigrationRefused extends Data.TaggedError("MigrationRefused")<{
  readonly location: string
  readonly why: string
  readonly advice: string
}> {
  override get message() {
    return `${this.location}: ${this.why}. ${this.advice}`
  }
}

/** One step of a migration, done. */
export interface MigrationStep {
  readonly direction: "up" | "down"
  readonly version: number
  readonly name: string
}

export interface MigrateOptions {
  /** The version to go to, 0 (empty) to the newest; default the newest. */
  readonly to?: number
  /** Goes down although conversations lose what only the newer schema holds. */
  readonly force?: boolean
  /** Somebody else migrates: waiting for them. */
  readonly onWait?: Effect.Effect<void>
  readonly onStep?: (step: MigrationStep) => Effect.Effect<void>
  /** Default: those of this program. */
  readonly migrations?: ReadonlyArray<Migration>
}

export interface SchemaStatus {
  /** The version of the database, 0 where it is empty. */
  readonly version: number
  /** The version of this program. */
  readonly newest: number
  readonly applied: ReadonlyArray<AppliedMigration>
  readonly pending: ReadonlyArray<{ readonly version: number; readonly name: string }>
}

const applicationName = "super-pi migrate"

const createTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version bigint PRIMARY KEY,
  name text NOT NULL,
  applied_at bigint NOT NULL
)`

const tryLock = async (client: Client, lock: number): Promise<boolean> =>
  (await client.query<{ taken: boolean }>("SELECT pg_try_advisory_lock($1, $2) AS taken", [lockClass, lock])).rows[0]
    ?.taken === true

/** One transaction on the connection; rolled back where anything in it fails. */
const transaction = async (client: Client, statements: () => Promise<void>): Promise<void> => {
  await client.query("BEGIN")
  try {
    await statements()
    await client.query("COMMIT")
  } catch (cause) {
    await client.query("ROLLBACK").catch(() => undefined)
    throw cause
  }
}

const stepUp = (client: Client, { name, up, version }: Migration, now: number): Promise<void> =>
  transaction(client, async () => {
    await client.query(createTable)
    await client.query(up)
    await client.query("INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)", [
      version,
      name,
      now,
    ])
  })

const stepDown = (client: Client, { down, version }: Migration): Promise<void> =>
  transaction(client, async () => {
    await client.query(down)
    await client.query("DELETE FROM schema_migrations WHERE version = $1", [version])
    if (version === 1) await client.query("DROP TABLE schema_migrations")
  })

/** A session that stays this connection's, with the lock of whoever changes the schema. */
const lockedClient = (
  settings: PostgresSettings,
  onWait: Effect.Effect<void>,
): Effect.Effect<Client, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const location = locationOf(settings)
    const client = yield* openClient(settings, { applicationName })
    yield* Effect.scoped(
      Effect.flatMap(openClient(settings, { applicationName }), (other) =>
        attempt(location, () => refusePooler(location, client, other)),
      ),
    )
    if (yield* attempt(location, () => tryLock(client, migrationLock))) return client
    yield* onWait
    yield* attempt(location, () => client.query("SELECT pg_advisory_lock($1, $2)", [lockClass, migrationLock]))
    return client
  })

/** Whether anybody would miss something. */
const holdsData = async (client: Client): Promise<boolean> => {
  const { rows } = await client.query<{ there: boolean }>(
    "SELECT EXISTS (SELECT 1 FROM conversations) OR EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM jobs) AS there",
  )
  return rows[0]?.there === true
}

const allowDown = (client: Client, location: string, to: number, force: boolean) =>
  Effect.gen(function* () {
    if (!(yield* attempt(location, () => tryLock(client, ownerLock)))) {
      const advice = "Stop every node first"
      return yield* new MigrationRefused({
        location,
        why: "nodes work on it, and going down takes tables away",
        advice,
      })
    }
    if (!force && (yield* attempt(location, () => holdsData(client)))) {
      return yield* new MigrationRefused({
        location,
        why: `going down to ${to} removes what only the newer schema holds, and there are conversations`,
        advice: to === 0 ? "Version 0 removes everything; --force does it" : "Make a backup, then add --force",
      })
    }
  })

/** Goes to a version; answers with the steps that were taken, in order. */
export const migrate = (
  settings: PostgresSettings,
  options: MigrateOptions = {},
): Effect.Effect<ReadonlyArray<MigrationStep>, OpenError | MigrationRefused> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { force = false, migrations = published, onStep = () => Effect.void, onWait = Effect.void } = options
      const location = locationOf(settings)
      const to = options.to ?? migrations.length
      if (!Number.isInteger(to) || to < 0 || to > migrations.length) {
        const advice = `This program knows versions 0 to ${migrations.length}`
        return yield* new MigrationRefused({ location, why: `there is no schema version ${to}`, advice })
      }
      const client = yield* lockedClient(settings, onWait)
      const version = versionOf(yield* attempt(location, () => readApplied(location, client, migrations)))
      if (to < version) yield* allowDown(client, location, to, force)
      const up = migrations.slice(version, to)
      const down = migrations.slice(to, version).reverse()
      const steps: Array<MigrationStep> = []
      for (const migration of [...up, ...down]) {
        const direction = to > version ? "up" : "down"
        const now = yield* Clock.currentTimeMillis
        yield* attempt(location, () =>
          direction === "up" ? stepUp(client, migration, now) : stepDown(client, migration),
        )
        const step: MigrationStep = { direction, version: migration.version, name: migration.name }
        steps.push(step)
        yield* onStep(step)
      }
      return steps
    }),
  )

/** What is applied and what is not. Changes nothing. */
export const schemaStatus = (settings: PostgresSettings): Effect.Effect<SchemaStatus, OpenError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const location = locationOf(settings)
      const client = yield* openClient(settings, { applicationName })
      const applied = yield* attempt(location, () => readApplied(location, client))
      const version = versionOf(applied)
      const pending = published.slice(version).map(({ name, version: number }) => ({ version: number, name }))
      return { version, newest: published.length, applied, pending }
    }),
  )
