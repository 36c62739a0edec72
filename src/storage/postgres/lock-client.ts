/**
 * The connections of a node's shard locks. They are named after its epoch, so that everybody sees in `pg_stat_activity` whether the node is
 * alive; the server ends them with their locks when nothing comes from them any more. Nothing else may use them.
 */
import { layer as reactivityLayer } from "@effect/experimental/Reactivity"
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { fromPool } from "@effect/sql-pg/PgClient"
import { Effect, type Scope } from "effect"
import { Pool } from "pg"
import { clientConfig } from "./client-config.ts"
import { lockConnectionName } from "./roster.ts"
import type { PostgresSettings } from "./settings.ts"

/** One holds the locks, the others look and register. */
const connections = 3
/** For one statement, in ms: on a network that was cut nothing else would end it. */
const statementMs = 4_000

/** Open until the scope closes. `idleSeconds`: how long the server waits for a word. */
export const lockClient = (
  settings: PostgresSettings,
  epoch: number,
  idleSeconds: number,
): Effect.Effect<SqlClient, SqlError, Scope.Scope> => {
  const acquire = Effect.acquireRelease(
    Effect.sync(() => {
      const pool = new Pool({
        ...clientConfig(settings, {
          applicationName: lockConnectionName(epoch),
          options: `-c idle_session_timeout=${idleSeconds}s`,
        }),
        max: connections,
        idleTimeoutMillis: 0,
        query_timeout: statementMs,
      })
      // Whoever uses the connection next is told; without a listener the process would end.
      pool.on("error", () => undefined)
      pool.on("connect", (client) => client.on("error", () => undefined))
      return pool
    }),
    (pool) =>
      Effect.ignore(
        Effect.timeout(
          Effect.promise(() => pool.end()),
          statementMs,
        ),
      ),
  )
  return fromPool({ acquire, applicationName: lockConnectionName(epoch) }).pipe(Effect.provide(reactivityLayer))
}
