/**
 * The body of `GET /cluster`: what a node says of the cluster, as programs read it.
 */
import { Schema } from "effect"
import type { ClusterStatus } from "../../domain/cluster.ts"

const Member = Schema.Struct({
  name: Schema.String,
  epoch: Schema.Number,
  /** `host:port` for other nodes; empty where there are none. */
  address: Schema.String,
  self: Schema.Boolean,
  state: Schema.Literal("up", "draining", "unreachable"),
  version: Schema.String,
  /** Milliseconds since the epoch. */
  started_at: Schema.Number,
  shards: Schema.Number,
  machines: Schema.NullOr(Schema.Number),
  busy: Schema.NullOr(Schema.Number),
})

export const ClusterView = Schema.Struct({
  node: Schema.String,
  strategy: Schema.String,
  members: Schema.Array(Member),
  shards: Schema.Struct({ total: Schema.Number, held: Schema.Number, unheld: Schema.Number }),
  oldest_unserved_ms: Schema.NullOr(Schema.Number),
  draining: Schema.Boolean,
})
export type ClusterView = typeof ClusterView.Type

export const clusterView = ({ members, oldestUnservedMs, ...status }: ClusterStatus): ClusterView => ({
  node: status.node,
  strategy: status.strategy,
  members: members.map(({ startedAt, ...member }) => ({ ...member, started_at: startedAt })),
  shards: status.shards,
  oldest_unserved_ms: oldestUnservedMs,
  draining: status.draining,
})
