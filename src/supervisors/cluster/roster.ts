/**
 * What this node knows of the cluster: who is alive and who holds which shard, as of the last look at the database. `@effect/cluster` asks
 * for the runners a few times a second; that question is the look.
 */
import type { RosterNode } from "../../storage/postgres/roster.ts"

/** How long a node may be without its lock connection before it is fenced off, in ms: more than it needs to notice and to come back. */
const deadAfterMs = 5_000

export class Roster {
  private nodes: ReadonlyArray<RosterNode> = []
  private readonly holders = new Map<number, number>()
  /** Since when nodes have been without a lock connection, by this node's monotonic clock. */
  private readonly goneSince = new Map<number, number>()
  private readonly self: number
  /** When the database was last asked with success, by the monotonic clock, in ms. */
  private seenAt = Number.NEGATIVE_INFINITY

  constructor(self: number) {
    this.self = self
  }

  /** Takes what was read; gives the epochs of nodes that are to be fenced off. `now` by a monotonic clock. */
  see(nodes: ReadonlyArray<RosterNode>, now: number): ReadonlyArray<number> {
    this.nodes = nodes
    // after a time without looks nobody knows for how long somebody was away
    if (now - this.seenAt > deadAfterMs) this.goneSince.clear()
    this.seenAt = now
    this.holders.clear()
    for (const { epoch, shards } of nodes) for (const shard of shards) this.holders.set(shard, epoch)
    for (const epoch of this.goneSince.keys()) {
      if (nodes.every((node) => node.epoch !== epoch || node.alive)) this.goneSince.delete(epoch)
    }
    const dead: Array<number> = []
    for (const { alive, epoch } of nodes) {
      if (alive || epoch === this.self) continue
      const since = this.goneSince.get(epoch)
      if (since === undefined) this.goneSince.set(epoch, now)
      else if (now - since >= deadAfterMs) dead.push(epoch)
    }
    return dead
  }

  /** Those that take part: alive, or this node. */
  get members(): ReadonlyArray<RosterNode> {
    return this.nodes.filter((node) => node.alive || node.epoch === this.self)
  }

  /** Whether the database counts this node in: false once it was fenced off. */
  get includesSelf(): boolean {
    return this.nodes.some((node) => node.epoch === this.self)
  }

  /** The epoch of the node that has the lock of a shard; null while nobody has it. */
  holderOf(shard: number): number | null {
    return this.holders.get(shard) ?? null
  }

  /** Shards that somebody holds. */
  get heldCount(): number {
    return this.holders.size
  }

  /** Milliseconds since the last successful look. */
  age(now: number): number {
    return now - this.seenAt
  }
}
