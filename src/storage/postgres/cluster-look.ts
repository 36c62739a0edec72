/**
 * A look at a cluster for people who are no part of it: over connections of its own, and changing nothing.
 */
import { layer as reactivityLayer } from "@effect/experimental/Reactivity"
import { fromPool } from "@effect/sql-pg/PgClient"
import { Effect } from "effect"
import { type Client, Pool } from "pg"
import { type ClusterMember, type ClusterStatus, shardCount } from "../../domain/cluster.ts"
import type { OpenError } from "../errors.ts"
import { attempt, openClient } from "./client.ts"
import { clientConfig } from "./client-config.ts"
import { clusterStatements } from "./cluster-reads.ts"
import { openStatuses } from "./columns.ts"
import { openFailure } from "./failures.ts"
import { readHolders } from "./ownership.ts"
import { type RosterNode, readRoster } from "./roster.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

const applicationName = "super-pi cluster"

/** The newest node that is no member of a cluster, where it still holds the database. */
const aloneStatement = `SELECT epoch::float8 AS epoch, name, version, started_at::float8 AS "startedAt"
  FROM nodes WHERE ended_at IS NULL AND fenced_at IS NULL AND NOT clustered ORDER BY epoch DESC LIMIT 1`

/** Conversations with work, by the node that took them last. */
const busyStatement = `SELECT c.token_epoch::float8 AS epoch, count(*)::int AS busy FROM conversations c
  WHERE c.id IN (SELECT conversation FROM tasks WHERE status IN ${openStatuses} AND parked IS NULL AND conversation IS NOT NULL)
  GROUP BY c.token_epoch`

type Alone = Pick<ClusterMember, "epoch" | "name" | "version" | "startedAt">

interface Facts {
  readonly alone: Alone | null
  /** By epoch. */
  readonly busy: ReadonlyMap<number, number>
  readonly oldestUnservedMs: number | null
}

const factsOf = async (client: Client, now: number): Promise<Facts> => {
  const held = (await readHolders(client)).length > 0
  const { rows: alone } = await client.query<Alone>(aloneStatement)
  const { rows: busy } = await client.query<{ epoch: number; busy: number }>(busyStatement)
  const { rows: oldest } = await client.query<{ since: string | null }>(clusterStatements.oldestUnserved, [now])
  const since = oldest[0]?.since ?? null
  return {
    alone: held ? (alone[0] ?? null) : null,
    busy: new Map(busy.map((row) => [row.epoch, row.busy])),
    oldestUnservedMs: since === null ? null : Math.max(0, now - Number(since)),
  }
}

const roster = (settings: PostgresSettings) =>
  Effect.flatMap(
    fromPool({
      acquire: Effect.acquireRelease(
        Effect.sync(() => new Pool({ ...clientConfig(settings, { applicationName }), max: 1 })),
        (pool) => Effect.promise(() => pool.end().catch(() => undefined)),
      ),
      applicationName,
    }),
    readRoster,
  ).pipe(
    Effect.provide(reactivityLayer),
    Effect.mapError(({ cause }) => openFailure(locationOf(settings), cause)),
  )

const memberOf = (node: RosterNode, busy: number): ClusterMember => ({
  name: node.name,
  epoch: node.epoch,
  address: node.address,
  self: false,
  state: node.connected ? (node.draining ? "draining" : "up") : "unreachable",
  version: node.version,
  startedAt: node.startedAt,
  shards: node.shards.length,
  machines: null,
  busy,
})

/** How the cluster on a database is, by the database: how many conversations are in the memory of a node only the node knows. */
export const lookAtCluster = (settings: PostgresSettings, now: number): Effect.Effect<ClusterStatus, OpenError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const client = yield* openClient(settings, { applicationName })
      const { alone, busy, oldestUnservedMs } = yield* attempt(locationOf(settings), () => factsOf(client, now))
      const members = (yield* roster(settings))
        .filter(({ alive }) => alive)
        .map((node) => memberOf(node, busy.get(node.epoch) ?? 0))
      const own = { address: "", self: false, state: "up", shards: shardCount, machines: null } as const
      const all =
        members.length > 0 || alone === null ? members : [{ ...own, ...alone, busy: busy.get(alone.epoch) ?? 0 }]
      const held = all.reduce((sum, { shards }) => sum + shards, 0)
      return {
        node: "",
        strategy: members.length > 0 ? "cluster" : "none",
        members: all,
        shards: { total: shardCount, held, unheld: shardCount - held },
        oldestUnservedMs,
        draining: false,
      }
    }),
  )
