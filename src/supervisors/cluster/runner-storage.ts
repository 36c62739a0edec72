/**
 * The runner storage of `@effect/cluster` with this project's rules around it:
 * 1. Runners are the nodes whose lock connection is alive (`storage/postgres/roster.ts`): a killed node is out within one look, a paused or
 *    cut off one when the server ends its idle session. Draining nodes are members without shards.
 * 2. Shards come into use when their lock is taken, and their lock goes only after their work has stopped.
 * 3. A refresh that fails or is slow is no loss yet: while the server is away nobody can take a lock. Only after {@link toleranceMs} work is
 *    stopped.
 */
import { PersistenceError } from "@effect/cluster/ClusterError"
import { Runner } from "@effect/cluster/Runner"
import { RunnerAddress } from "@effect/cluster/RunnerAddress"
import type { RunnerStorage } from "@effect/cluster/RunnerStorage"
import type { ShardId } from "@effect/cluster/ShardId"
import { Effect, Exit, Fiber, Option, type Scope } from "effect"
import type { RosterNode } from "../../storage/postgres/roster.ts"
import type { Roster } from "./roster.ts"
import type { Shards } from "./shards.ts"

/** The one group of shards. */
export const shardGroup = "default"

/** How long refreshes may fail before this node's locks count as lost, in ms; less than the server's patience with an idle session. */
const toleranceMs = 6_500
/** How long a refresh is waited for, in ms; less than the library's own deadline. */
const patienceMs = 3_000

const noAnswer = new PersistenceError({ cause: new Error("the locks were not refreshed in time") })

/** The address of a node as a runner. Every life of a node is another runner. */
export const runnerAddress = (epoch: number): RunnerAddress => RunnerAddress.make({ host: `node-${epoch}`, port: 1 })

const runnerOf = (node: RosterNode): readonly [Runner, boolean] => [
  Runner.make({ address: runnerAddress(node.epoch), groups: [shardGroup], weight: 1 }),
  !node.draining,
]

export interface RunnerStorageParts {
  /** In which refreshes go on that are slow. */
  readonly scope: Scope.Scope
  readonly base: RunnerStorage["Type"]
  readonly look: Effect.Effect<ReadonlyArray<RosterNode>, PersistenceError>
  readonly roster: Roster
  readonly shards: Shards
  /** How long work of a shard may take to end before it is stopped, at this moment. */
  readonly graceMs: () => number
  /** By a monotonic clock. */
  readonly now: () => number
  readonly fenceOff: (epoch: number) => Effect.Effect<void>
  /** Run after each look at the roster. */
  readonly looked: Effect.Effect<void>
  /** Told when locks were lost: somebody else may have them. */
  readonly onLost: (shards: ReadonlyArray<number>) => Effect.Effect<void>
}

const numbers = (ids: Iterable<ShardId>): ReadonlyArray<number> => [...ids].map(({ id }) => id)

export const placedRunnerStorage = (parts: RunnerStorageParts): RunnerStorage["Type"] => {
  const { base, graceMs, look, now, roster, scope, shards } = parts
  /** When the connection of the locks last answered. */
  let heardAt = now()
  /** A refresh that has not come back yet, and for which shards it was. */
  let pending: {
    readonly asked: ReadonlySet<number>
    readonly fiber: Fiber.RuntimeFiber<Array<ShardId>, PersistenceError>
  } | null = null
  /** All of them use one connection, which takes one question at a time. */
  const turns = Effect.unsafeMakeSemaphore(1)
  const inTurn = <A, E>(question: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.tap(turns.withPermits(1)(question), () =>
      Effect.sync(() => {
        heardAt = now()
      }),
    )

  /** Locks that a refresh did not find any more. */
  const lose = (lost: ReadonlyArray<number>): Effect.Effect<void> =>
    lost.length === 0 ? Effect.void : Effect.zipRight(parts.onLost(lost), shards.lose(lost))

  return {
    ...base,
    getRunners: Effect.flatMap(look, (nodes) => {
      const dead = roster.see(nodes, now())
      return Effect.forEach(dead, parts.fenceOff, { discard: true }).pipe(
        Effect.zipRight(parts.looked),
        Effect.map(() => roster.members.map(runnerOf)),
      )
    }),
    acquire: (address, ids) => {
      const wanted = new Set(numbers(ids))
      const taking = Effect.tap(base.acquire(address, ids), (got) =>
        // it names every lock of the connection, those too that are about to be released
        shards.gain(numbers(got).filter((shard) => wanted.has(shard))),
      )
      // nor interrupted while it waits behind many releases
      return Effect.flatMap(Effect.forkIn(inTurn(taking), scope), Fiber.join)
    },
    refresh: (address, ids) =>
      Effect.gen(function* () {
        // Not interrupted where it is slow: that would take the connection with its locks away.
        if (pending === null) {
          const asked = new Set<number>()
          // Of those that are ours when it is its turn: what is asked for is taken again, also what was just given back.
          const ours = Effect.suspend(() => {
            const still = [...ids].filter(({ id }) => shards.has(id))
            for (const { id } of still) asked.add(id)
            return base.refresh(address, still)
          })
          pending = { asked, fiber: yield* Effect.forkIn(inTurn(ours), scope) }
        }
        const { asked, fiber } = pending
        const done = yield* Fiber.await(fiber).pipe(Effect.timeoutOption(patienceMs))
        if (Option.isSome(done)) {
          pending = null
          if (Exit.isSuccess(done.value)) {
            const have = new Set(numbers(done.value.value))
            yield* lose([...asked].filter((shard) => shards.has(shard) && !have.has(shard)))
            const since = [...ids].filter(({ id }) => shards.has(id) && !asked.has(id) && !have.has(id))
            return [...done.value.value, ...since]
          }
        }
        if (now() - heardAt < toleranceMs) return [...ids]
        yield* lose(shards.all())
        return yield* Option.isSome(done) ? done.value : Effect.fail(noAnswer)
      }),
    release: (address, id) => Effect.zipRight(shards.leave([id.id], graceMs()), inTurn(base.release(address, id))),
    releaseAll: (address) => Effect.zipRight(shards.leave(shards.all(), graceMs()), inTurn(base.releaseAll(address))),
  }
}
