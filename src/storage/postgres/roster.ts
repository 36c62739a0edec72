/**
 * Who is in the cluster, by the database: the nodes that registered, which of them are alive, and which shards each holds. A node is alive
 * while its lock connection is: PostgreSQL ends it with the process, and by `idle_session_timeout` when nothing comes from it any more.
 * After a restart of the server nobody is taken for dead until everybody had the time to come back.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"

/** One registered node that has not left. Times in milliseconds since the epoch. */
export interface RosterNode {
  readonly epoch: number
  readonly name: string
  /** `host:port`; "" until it listens. */
  readonly address: string
  readonly version: string
  readonly startedAt: number
  readonly draining: boolean
  /** Its lock connection is there, or the server started a moment ago. */
  readonly alive: boolean
  /** Its lock connection is there. */
  readonly connected: boolean
  /** Shards whose locks it has. */
  readonly shards: ReadonlyArray<number>
}

/** The name of a node's lock connection, in `pg_stat_activity`. */
export const lockConnectionName = (epoch: number): string => `super-pi lock ${epoch}`

/** Seconds after a start of the server in which nobody is taken for dead. */
const settleSeconds = 6

/** Advisory locks of the first shard group are numbered from here (see `SqlRunnerStorage` of `@effect/cluster`). */
const lockBase = 1_000_000

const roster = `
WITH connected AS (
  SELECT pid, application_name FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'super-pi lock %'
), held AS (
  SELECT c.application_name, array_agg(l.objid::int - ${lockBase}) AS shards
  FROM pg_locks l JOIN connected c USING (pid)
  WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objsubid = 1
    AND l.objid::bigint > ${lockBase} AND l.objid::bigint < ${lockBase * 2}
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  GROUP BY c.application_name
)
SELECT n.epoch::float8 AS epoch, n.name, n.address, n.version, n.started_at::float8 AS "startedAt", n.draining,
  EXISTS (SELECT 1 FROM connected c WHERE c.application_name = 'super-pi lock ' || n.epoch) AS connected,
  now() - pg_postmaster_start_time() < interval '${settleSeconds} seconds' AS settling,
  coalesce((SELECT shards FROM held h WHERE h.application_name = 'super-pi lock ' || n.epoch), '{}') AS shards
FROM nodes n WHERE n.ended_at IS NULL AND n.fenced_at IS NULL AND n.clustered ORDER BY n.epoch`

interface Row extends Omit<RosterNode, "alive"> {
  readonly settling: boolean
}

export const readRoster = (sql: SqlClient): Effect.Effect<ReadonlyArray<RosterNode>, SqlError> =>
  Effect.map(sql.unsafe<Row>(roster), (rows) =>
    rows.map(({ settling, ...row }) => ({ ...row, alive: row.connected || settling })),
  )

/** Says of a node that its shards are to go to others; it stays a member until it leaves. */
export const markDraining = (sql: SqlClient, epoch: number): Effect.Effect<void, SqlError> =>
  Effect.asVoid(sql.unsafe("UPDATE nodes SET draining = true WHERE epoch = $1", [epoch]))

/** Makes a node a member of the cluster, once it listens; `guest`: without shards as long as there are others that take them. */
export const registerMember = (
  sql: SqlClient,
  { address, epoch, guest }: { readonly epoch: number; readonly address: string; readonly guest: boolean },
): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const others = guest ? yield* readRoster(sql) : []
    const draining = others.some((node) => node.alive && !node.draining && node.epoch !== epoch)
    const update = "UPDATE nodes SET address = $2, clustered = true, draining = $3 WHERE epoch = $1"
    yield* sql.unsafe(update, [epoch, address, draining])
  })

const system = `SELECT (SELECT oid FROM pg_database WHERE datname = current_database())::text
  || '-' || (SELECT applied_at FROM schema_migrations WHERE version = 1)::text AS system`

/** Names the database, the same for everybody who works on it however they reach it. */
export const readSystem = (sql: SqlClient): Effect.Effect<string, SqlError> =>
  Effect.map(sql.unsafe<{ readonly system: string }>(system), ([row]) => row?.system ?? "")
