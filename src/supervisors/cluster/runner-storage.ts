/**
 * The runner storage of `@effect/cluster` with this project's rules around it:
 * 1. Runners are the nodes whose lock connection is alive (`storage/postgres/roster.ts`): a killed node is out within one look, a paused or
 *    cut off one when the server ends its idle session. Draining nodes are members without shards.
 * 2. Shards come into use when their lock is taken, and their lock goes only after their work has stopped.
 * 3. A refresh that fails is no loss yet: while the server is away nobody can take a lock. Only after {@link toleranceMs} work is stopped.
 */
import type { PersistenceError } from "@effect/cluster/ClusterError"
import { Runner } from "@effect/cluster/Runner"
import { RunnerAddress } from "@effect/cluster/RunnerAddress"
import type { RunnerStorage } from "@effect/cluster/RunnerStorage"
import type { ShardId } from "@effect/cluster/ShardId"
import { Effect } from "effect"
import type { RosterNode } from "../../storage/postgres/roster.ts"
import type { Roster } from "./roster.ts"
import type { Shards } from "./shards.ts"

/** The one group of shards. */
export const shardGroup = "default"

/** How long refreshes may fail before this node's locks count as lost, in ms; less than the server's patience with an idle session. */
export const toleranceMs = 6_000

/** The address of a node as a runner. Every life of a node is another runner. */
export const runnerAddress = (epoch: number): RunnerAddress => RunnerAddress.make({ host: `node-${epoch}`, port: 1 })

const runnerOf = (node: RosterNode): readonly [Runner, boolean] => [
  Runner.make({ address: runnerAddress(node.epoch), groups: [shardGroup], weight: 1 }),
  !node.draining,
]

export interface RunnerStorageParts {
  readonly base: RunnerStorage["Type"]
  readonly look: Effect.Effect<ReadonlyArray<RosterNode>, PersistenceError>
  readonly roster: Roster
  readonly shards: Shards
  /** How long work of a shard may take to end before it is stopped, at this moment. */
  readonly graceMs: () => number
  /** By a monotonic clock. */
  readonly now: () => number
  readonly fenceOff: (epoch: number) => Effect.Effect<void>
  /** Told when locks were lost: somebody else may have them. */
  readonly onLost: (shards: ReadonlyArray<number>) => Effect.Effect<void>
}

const numbers = (ids: Iterable<ShardId>): ReadonlyArray<number> => [...ids].map(({ id }) => id)

export const placedRunnerStorage = (parts: RunnerStorageParts): RunnerStorage["Type"] => {
  const { base, graceMs, look, now, roster, shards } = parts
  let refreshedAt = now()
  /** All of them use one connection, which takes one question at a time. */
  const inTurn = Effect.unsafeMakeSemaphore(1).withPermits(1)

  /** Locks that a refresh did not find any more. */
  const lose = (lost: ReadonlyArray<number>): Effect.Effect<void> =>
    lost.length === 0 ? Effect.void : Effect.zipRight(parts.onLost(lost), shards.lose(lost))

  return {
    ...base,
    getRunners: Effect.flatMap(look, (nodes) => {
      const dead = roster.see(nodes, now())
      return Effect.as(Effect.forEach(dead, parts.fenceOff, { discard: true }), roster.members.map(runnerOf))
    }),
    acquire: (address, ids) =>
      Effect.tap(inTurn(base.acquire(address, ids)), (got) => {
        // it names every lock of the connection, those too that are about to be released
        const wanted = new Set(numbers(ids))
        return shards.gain(numbers(got).filter((shard) => wanted.has(shard)))
      }),
    refresh: (address, ids) =>
      inTurn(base.refresh(address, ids)).pipe(
        Effect.tap((kept) => {
          refreshedAt = now()
          const asked = numbers(ids)
          const have = new Set(numbers(kept))
          return lose(asked.filter((shard) => !have.has(shard)))
        }),
        Effect.catchAllCause((cause) => {
          if (now() - refreshedAt < toleranceMs) return Effect.succeed([...ids])
          return Effect.zipRight(lose(shards.all()), Effect.failCause(cause))
        }),
      ),
    release: (address, id) => Effect.zipRight(shards.leave([id.id], graceMs()), inTurn(base.release(address, id))),
    releaseAll: (address) => Effect.zipRight(shards.leave(shards.all(), graceMs()), inTurn(base.releaseAll(address))),
  }
}
