/**
 * The words of a cluster: shards, and what a node says of itself and of the others. Pure.
 */

/** Shards of a cluster. All nodes of a database must agree on it. */
export const shardCount = 256

/** The shard of a place, 1 to {@link shardCount}. */
export const shardOf = (place: number): number => (place % shardCount) + 1

/** Who holds a place: this node, another one (by its epoch), or for a moment nobody. */
export type Holder = "here" | "nobody" | { readonly epoch: number }

/** A member as one node sees it. Times in milliseconds since the epoch. */
export interface ClusterMember {
  /** What people call it, for example `super_pi@10.0.0.1`. */
  readonly name: string
  /** Its number in the database: the fencing token of what it writes. */
  readonly epoch: number
  /** Where other nodes reach it, `host:port`. */
  readonly address: string
  readonly self: boolean
  /** `unreachable`: alive by the database, but this node has no connection to it. */
  readonly state: "up" | "draining" | "unreachable"
  readonly version: string
  readonly startedAt: number
  /** Shards that it holds. */
  readonly shards: number
  /** Conversations in its memory, and those of them that work; null where it did not say. */
  readonly machines: number | null
  readonly busy: number | null
}

export interface ClusterStatus {
  /** Name of the node that says so. */
  readonly node: string
  readonly strategy: string
  readonly members: ReadonlyArray<ClusterMember>
  readonly shards: { readonly total: number; readonly held: number; readonly unheld: number }
  /** For how long the oldest work has been waiting for somebody, in ms; null: none waits. */
  readonly oldestUnservedMs: number | null
  readonly draining: boolean
}

/** Whether a node is alive and useful. */
export interface NodeHealth {
  /** Work is moving: the database answers, the event loop turns, nothing has waited for too long. */
  readonly healthy: boolean
  /** It takes requests: healthy, member of the cluster, not draining. */
  readonly ready: boolean
  /** One line for each thing that is wrong; empty where all is well. */
  readonly faults: ReadonlyArray<string>
  readonly database: "ok" | "failed"
  readonly eventLoopLagMs: number
  readonly oldestUnservedMs: number | null
  readonly draining: boolean
}
