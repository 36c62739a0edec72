/**
 * Which work is this node's: the shards that it holds, and word of their coming and going. Without a cluster there is no placement, and
 * everything is this node's. Rules:
 * 1. Work at a place is begun only while its shard is held.
 * 2. A shard that is to go to another node goes only after every listener is done with `leaving` (or the deadline passed); a node that lost
 *    it without warning is fenced by the database.
 */
import { Context, type Effect, type Scope } from "effect"

export interface PlacementListener {
  /** Shards came: open work of theirs may go on here. */
  readonly gained: (shards: ReadonlyArray<number>) => Effect.Effect<void>
  /**
   * Shards are about to go: what runs may take up to `graceMs` to end, then it is stopped cleanly. 0: they went already, or must go at
   * once. Interrupted where it takes much longer.
   */
  readonly leaving: (shards: ReadonlyArray<number>, graceMs: number) => Effect.Effect<void>
}

export interface PlacementService {
  /** Numbers of the shards that this node holds. */
  readonly held: () => ReadonlyArray<number>
  /** Whether the shard of a place is held. */
  readonly holds: (place: number) => boolean
  /** Listens until the scope closes; told at once of what is held already. */
  readonly listen: (listener: PlacementListener) => Effect.Effect<void, never, Scope.Scope>
}

export class Placement extends Context.Tag("super-pi/Placement")<Placement, PlacementService>() {}
