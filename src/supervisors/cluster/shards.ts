/**
 * The shards of this node, as its lock connection took and gave them: `nothing → held → leaving → nothing`. Rules:
 * 1. A shard is held from the moment its lock is ours. It is given back only when every listener is done with `leaving`; until then it is
 *    neither held nor anybody else's.
 * 2. One that was lost (its lock went without us) leaves with no time to spare: somebody else may have it already.
 */
import { Effect, FiberSet, type Scope } from "effect"
import { shardOf } from "../../domain/cluster.ts"
import type { PlacementListener, PlacementService } from "./placement.ts"

/** Beyond the grace, for clean stops, in ms. */
const stopMs = 15_000

type Phase = "held" | "leaving"

export interface Shards extends PlacementService {
  /** Held or leaving: the lock is (or was) ours. */
  readonly has: (shard: number) => boolean
  /** Locks that are ours now; those that were before change nothing. One that is just leaving is held again when it has left. */
  readonly gain: (shards: ReadonlyArray<number>) => Effect.Effect<void>
  /** Stops the work of shards; completes when their locks may go. */
  readonly leave: (shards: ReadonlyArray<number>, graceMs: number) => Effect.Effect<void>
  /** Locks that are gone: stops the work of the shards at once, without waiting for it. */
  readonly lose: (shards: ReadonlyArray<number>) => Effect.Effect<void>
  readonly all: () => ReadonlyArray<number>
}

export const makeShards: Effect.Effect<Shards, never, Scope.Scope> = Effect.gen(function* () {
  const phases = new Map<number, Phase>()
  /** Among those that leave: their lock is ours again already. */
  const regained = new Set<number>()
  const listeners = new Set<PlacementListener>()
  const fibers = yield* FiberSet.make()
  const fork = yield* FiberSet.runtime(fibers)<never>()
  /** What `held` gives, until something changes. */
  let held: ReadonlyArray<number> | null = null

  const change = (shards: ReadonlyArray<number>, phase: Phase | null): void => {
    held = null
    for (const shard of shards) {
      if (phase === null) phases.delete(shard)
      else phases.set(shard, phase)
    }
  }
  const heldNow = (): ReadonlyArray<number> => {
    held ??= [...phases].flatMap(([shard, phase]) => (phase === "held" ? [shard] : []))
    return held
  }

  const take = (shards: ReadonlyArray<number>): void => {
    if (shards.length === 0) return
    change(shards, "held")
    for (const listener of listeners) fork(listener.gained(shards))
  }

  const leave = (shards: ReadonlyArray<number>, graceMs: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      for (const shard of shards) regained.delete(shard)
      const ours = shards.filter((shard) => phases.get(shard) === "held")
      if (ours.length === 0) return Effect.void
      change(ours, "leaving")
      return Effect.forEach(
        [...listeners],
        (listener) =>
          listener.leaving(ours, graceMs).pipe(
            Effect.timeoutFail({ duration: graceMs + stopMs, onTimeout: () => "slow" as const }),
            Effect.catchAll(() => Effect.logWarning(`work of shards ${ours.join(", ")} did not stop in time`)),
            Effect.catchAllCause((cause) => Effect.logError("work of shards did not stop", cause)),
          ),
        { concurrency: "unbounded", discard: true },
      ).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            const back = ours.filter((shard) => regained.delete(shard))
            change(ours, null)
            take(back)
          }),
        ),
      )
    })

  return {
    held: heldNow,
    holds: (place) => phases.get(shardOf(place)) === "held",
    has: (shard) => phases.has(shard),
    all: () => [...phases.keys()],
    listen: (listener) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          listeners.add(listener)
          const now = heldNow()
          return now.length === 0 ? Effect.void : listener.gained(now)
        }),
        () => Effect.sync(() => listeners.delete(listener)),
      ),
    gain: (shards) =>
      Effect.sync(() => {
        for (const shard of shards) if (phases.get(shard) === "leaving") regained.add(shard)
        take(shards.filter((shard) => !phases.has(shard)))
      }),
    leave,
    lose: (shards) => Effect.sync(() => void fork(leave(shards, 0))),
  }
})
