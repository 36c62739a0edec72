/**
 * The sharding of `@effect/cluster` over the database of the cluster: it alone decides which node holds which shard. Nothing else of it is
 * used: calls between nodes go over connections of our own, and what runs at a place is found in storage, not in messages.
 *
 * Times, and why: runners are looked at every 250 ms (failover begins then); locks are refreshed every 4 s, within the 8 s after which
 * the server ends a session that says nothing; 15 s is what the library asks for and nothing depends on.
 */
import { PersistenceError } from "@effect/cluster/ClusterError"
import { MessageStorage, noop as noMessages } from "@effect/cluster/MessageStorage"
import { layerNoop as alwaysHealthy } from "@effect/cluster/RunnerHealth"
import { RunnerStorage } from "@effect/cluster/RunnerStorage"
import { layerNoop as noRunners } from "@effect/cluster/Runners"
import { layer as shardingLayer } from "@effect/cluster/Sharding"
import * as ShardingConfig from "@effect/cluster/ShardingConfig"
import { make as makeSqlRunnerStorage } from "@effect/cluster/SqlRunnerStorage"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Option, Scope } from "effect"
import { shardCount } from "../../domain/cluster.ts"
import { readRoster } from "../../storage/postgres/roster.ts"
import { placedRunnerStorage, type RunnerStorageParts, runnerAddress, shardGroup } from "./runner-storage.ts"

/** Seconds after which the server ends a lock connection from which nothing comes. */
export const idleSessionSeconds = 8

/** Numbers the lock under which the library makes its tables: nodes that start together would race. */
const tablesLock = 0x53_75_50_69

const config: Partial<ShardingConfig.ShardingConfig["Type"]> = {
  availableShardGroups: [shardGroup],
  assignedShardGroups: [shardGroup],
  shardsPerGroup: shardCount,
  shardLockRefreshInterval: "4 seconds",
  shardLockExpiration: "15 seconds",
  refreshAssignmentsInterval: "250 millis",
  entityMessagePollInterval: "250 millis",
  entityTerminationTimeout: "2 seconds",
  simulateRemoteSerialization: false,
}

export interface ShardingParts extends Omit<RunnerStorageParts, "base" | "look" | "scope"> {
  readonly epoch: number
}

/**
 * Takes part until the scope closes. `SqlClient` is to be one of its own: its sessions are idle ones that the server may end, and they are
 * named `lockConnectionName`.
 */
export const joinSharding = (parts: ShardingParts): Effect.Effect<void, Error, SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const sharding = ShardingConfig.layer({ ...config, runnerAddress: Option.some(runnerAddress(parts.epoch)) })
    const storage = Layer.scoped(
      RunnerStorage,
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        const base = yield* Effect.scoped(
          Effect.gen(function* () {
            const connection = yield* sql.reserve
            yield* connection.executeRaw(`SELECT pg_advisory_lock(${tablesLock})`, [])
            return yield* Scope.extend(makeSqlRunnerStorage({ prefix: "cluster" }), scope).pipe(
              Effect.ensuring(Effect.ignore(connection.executeRaw(`SELECT pg_advisory_unlock(${tablesLock})`, []))),
            )
          }),
        )
        return placedRunnerStorage({ ...parts, base, scope, look: PersistenceError.refail(readRoster(sql)) })
      }),
    )
    const messages = Layer.succeed(MessageStorage, noMessages)
    const layer = shardingLayer.pipe(
      Layer.provide(Layer.mergeAll(storage, alwaysHealthy, Layer.provide(noRunners, messages))),
      Layer.provide(Layer.merge(messages, sharding)),
    )
    yield* Layer.build(layer)
  })
