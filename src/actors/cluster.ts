/**
 * What a node says of itself as a member of a cluster, for protocols and commands. A node that is alone is a cluster of one.
 */
import { Context, type Effect } from "effect"
import type { ClusterStatus, NodeHealth } from "../domain/cluster.ts"

export interface ClusterService {
  /** Members, shards and what waits, as this node sees them. Never fails: what cannot be known is null. */
  readonly status: Effect.Effect<ClusterStatus>
  /** Whether work is moving. Answers within about two seconds. */
  readonly health: Effect.Effect<NodeHealth>
  /**
   * No new turns: the node gives its shards to others; running turns end, or go on elsewhere, within the drain deadline. Completes then.
   * Called again it waits for the same end.
   */
  readonly drain: Effect.Effect<void>
}

export class Cluster extends Context.Tag("super-pi/Cluster")<Cluster, ClusterService>() {}
