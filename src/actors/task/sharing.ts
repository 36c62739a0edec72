/**
 * The tasks of one ledger among the ledgers of several nodes. A ledger runs the tasks at the shards that it has *adopted*, and no others:
 *
 *   (shard gained) → adopted: its rows are taken over under a fence of their own → (shard leaves) → its runs end or are stopped and released →
 *   its rows leave the board
 *
 * 1. What is written of a task carries the fence of its shard. Whoever adopts the shard later has a larger one, so that a ledger that missed
 *    the departure is refused, also when it adopted other shards since.
 * 2. A task may wait for tasks at other places: those are *foreign*, and known only as far as the store was asked.
 */
import type { Effect, Scope } from "effect"
import { shardOf } from "../../domain/cluster.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import { isOpen, isWorkflow } from "../../domain/task-rules.ts"
import type { ClusterStoreService } from "../../storage/cluster-port.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { SignalsService } from "../../storage/signal-port.ts"
import type { ReplyTo } from "../kernel/index.ts"
import type { Board, TaskRow } from "./board.ts"
import type { TaskFeed } from "./feed.ts"

/** What a ledger needs of a cluster. */
export interface TaskSharing {
  /** Shards of this node. */
  readonly held: () => ReadonlyArray<number>
  readonly holds: (place: number) => boolean
  /** Told of shards that come, and of those that leave with the time that their work has, in ms. */
  readonly listen: (listener: {
    readonly gained: (shards: ReadonlyArray<number>) => Effect.Effect<void>
    readonly leaving: (shards: ReadonlyArray<number>, graceMs: number) => Effect.Effect<void>
  }) => Effect.Effect<void, never, Scope.Scope>
  readonly adopt: ClusterStoreService["adoptTasks"]
  readonly placeOfConversation: (id: ConversationId) => Effect.Effect<number | null, ReadError>
  readonly signals: SignalsService | null
}

/** Shards that leave, and who waits for it. */
export interface Leave {
  readonly shards: ReadonlySet<number>
  readonly reply: ReplyTo<void> | null
}

export class SharedTasks {
  readonly sharing: TaskSharing
  private readonly board: Board
  private readonly feed: TaskFeed
  /** Adopted shards, with their fences. */
  private readonly fences = new Map<number, number>()
  private readonly foreign = new Map<TaskId, "open" | TaskOutcome>()
  private readonly leaves = new Set<Leave>()

  constructor(sharing: TaskSharing, board: Board, feed: TaskFeed) {
    this.sharing = sharing
    this.board = board
    this.feed = feed
    feed.holds = (place) => sharing.holds(place) || [...this.leaves].some(({ shards }) => shards.has(shardOf(place)))
  }

  /** Those of the shards that are not adopted. */
  fresh(shards: ReadonlyArray<number>): ReadonlyArray<number> {
    return shards.filter((shard) => !this.fences.has(shard))
  }

  adopted(shards: ReadonlyArray<number>, fence: number): void {
    for (const shard of shards) this.fences.set(shard, fence)
  }

  /** The fence under which tasks at a place are written, or null where they are not ours. */
  fenceAt(place: number): number | null {
    return this.fences.get(shardOf(place)) ?? null
  }

  get isEmpty(): boolean {
    return this.fences.size === 0
  }

  /** Whether a task may run here. */
  runs(row: TaskRow): boolean {
    return this.fenceAt(this.feed.placeOf(row)) !== null
  }

  // ---- leaving ----------------------------------------------------------------------------------------------------------------

  /** Nothing of these shards is begun any more. */
  begin(leave: Leave): void {
    for (const shard of leave.shards) this.fences.delete(shard)
    this.leaves.add(leave)
  }

  /** Whether it has not been carried out. */
  isOpen(leave: Leave): boolean {
    return this.leaves.has(leave)
  }

  /** Tasks of leaving shards that an actor is at. */
  live(leave: Leave): ReadonlyArray<TaskRow> {
    return [...this.board.live.keys()].flatMap((id) => {
      const row = this.board.rows.get(id)
      return row !== undefined && this.isIn(leave, row) ? [row] : []
    })
  }

  /** Takes the tasks of shards that leave off the board and out of the feed. What waits for one of them waits for a foreign task now. */
  carryOut(leave: Leave): void {
    this.leaves.delete(leave)
    for (const row of [...this.board.rows.values()]) {
      if (!this.isIn(leave, row)) continue
      this.board.remove(row.id)
      this.foreign.set(row.id, "open")
    }
    this.feed.drop((row) => this.isIn(leave, row))
    this.forgetForeign()
  }

  /** Those of the open leaves of which nothing runs any more. */
  quiet(): ReadonlyArray<Leave> {
    return [...this.leaves].filter((leave) => this.live(leave).length === 0)
  }

  private isIn(leave: Leave, row: TaskRow): boolean {
    return leave.shards.has(shardOf(this.feed.placeOf(row)))
  }

  // ---- tasks at other places --------------------------------------------------------------------------------------------------

  elsewhere(id: TaskId): "open" | TaskOutcome | null {
    return this.foreign.get(id) ?? null
  }

  /** Notes how foreign tasks stand. */
  learn(tasks: Iterable<readonly [TaskId, "open" | TaskOutcome | null]>): void {
    for (const [id, standing] of tasks) if (standing !== null) this.foreign.set(id, standing)
  }

  /** Tasks that somebody on the board waits for, and that are not on it and not known to have ended. */
  awaited(): ReadonlyArray<TaskId> {
    this.forgetForeign()
    return [...this.board.waiters.keys()].filter((id) => {
      const known = this.foreign.get(id)
      return !this.board.rows.has(id) && (known === undefined || known === "open")
    })
  }

  private forgetForeign(): void {
    for (const id of this.foreign.keys()) {
      if (this.board.rows.has(id) || !this.board.waiters.has(id)) this.foreign.delete(id)
    }
  }

  /** Tells other nodes which applications' tasks have ended or were parked. */
  tell(rows: ReadonlyArray<TaskRow>): void {
    const told = rows.filter((row) => isWorkflow(row) && (!isOpen(row) || row.parked !== null))
    if (told.length > 0) this.sharing.signals?.tell(told.map(({ id }) => ({ type: "task", task: id })))
  }
}
