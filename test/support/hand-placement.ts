/**
 * A placement that tests move by hand.
 */
import { Effect } from "effect"
import { shardOf } from "../../src/domain/cluster.ts"
import type { PlacementListener, PlacementService } from "../../src/supervisors/cluster/placement.ts"

export interface HandPlacement {
  readonly placement: PlacementService
  /** Shards come to the node. */
  readonly gain: (shards: ReadonlyArray<number>) => Effect.Effect<void>
  /** It gives shards up; completes when its work there has stopped. */
  readonly leave: (shards: ReadonlyArray<number>, graceMs?: number) => Effect.Effect<void>
  /** What a node that is cut off does not notice: its shards went, and nobody told it. */
  readonly forget: Effect.Effect<void>
}

export const handPlacement = (): HandPlacement => {
  const held = new Set<number>()
  const listeners = new Set<PlacementListener>()
  const tellAll = (what: (listener: PlacementListener) => Effect.Effect<void>) =>
    Effect.suspend(() => Effect.forEach([...listeners], what, { concurrency: "unbounded", discard: true }))
  return {
    placement: {
      held: () => [...held],
      holds: (place) => held.has(shardOf(place)),
      listen: (listener) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            listeners.add(listener)
            return held.size === 0 ? Effect.void : listener.gained([...held])
          }),
          () => Effect.sync(() => listeners.delete(listener)),
        ),
    },
    gain: (shards) =>
      Effect.suspend(() => {
        for (const shard of shards) held.add(shard)
        return tellAll((listener) => listener.gained(shards))
      }),
    leave: (shards, graceMs = 0) =>
      Effect.suspend(() => {
        for (const shard of shards) held.delete(shard)
        return tellAll((listener) => listener.leaving(shards, graceMs))
      }),
    forget: Effect.sync(() => void listeners.clear()),
  }
}
