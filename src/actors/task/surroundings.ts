/**
 * What a decision of the ledger needs to know beside the board: the time, the loaded code, and how tasks stand that are not on it.
 */
import { type Clock, Effect } from "effect"
import type { TaskId } from "../../domain/ids.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import { isOpen } from "../../domain/task-rules.ts"
import type { Board } from "./board.ts"
import type { TaskEnv, TaskEvent } from "./events.ts"
import type { LedgerParts } from "./ledger-parts.ts"
import type { SharedTasks } from "./sharing.ts"
import { untilStored } from "./stored.ts"

/** Open, ended, or (null) unknown. */
export type Standing = "open" | TaskOutcome | null

const nothing: ReadonlyMap<TaskId, Standing> = new Map()

export class Surroundings {
  private readonly parts: LedgerParts
  private readonly board: Board
  private readonly shared: SharedTasks | null
  private readonly clock: Clock.Clock

  constructor(parts: LedgerParts, board: Board, shared: SharedTasks | null, clock: Clock.Clock) {
    this.parts = parts
    this.board = board
    this.shared = shared
    this.clock = clock
  }

  /** How tasks stand that are not on the board, as far as the decision needs to know. */
  prefetch(event: TaskEvent): Effect.Effect<ReadonlyMap<TaskId, Standing>> {
    const ids = new Set<TaskId>()
    const note = (on: ReadonlyArray<TaskId>) => {
      for (const id of on) if (!this.board.rows.has(id) && !this.isSeenOpen(id)) ids.add(id)
    }
    if (event.type === "step" && event.step.type === "wait") note(event.step.on)
    if (event.type === "recover" || event.type === "registered") {
      for (const row of this.board.rows.values()) if (row.waitingOn !== null) note(row.waitingOn.on)
    }
    if (event.type === "resume") {
      for (const id of event.ids) note(this.board.rows.get(id)?.waitingOn?.on ?? [])
    }
    if (ids.size === 0) return Effect.succeed(nothing)
    return Effect.map(this.read([...ids]), (found) => {
      this.shared?.learn(found)
      return new Map(found)
    })
  }

  env(ended: ReadonlyMap<TaskId, Standing>): TaskEnv {
    const { catalog, feed, node, store } = this.parts
    const { shared } = this
    return {
      now: this.clock.unsafeCurrentTimeMillis(),
      node,
      // Among several nodes the rows have the fences of their shards.
      fence: shared === null ? store.epoch : 0,
      prepare: (row) =>
        shared === null || shared.runs(row) ? catalog.prepare(row) : { type: "blocked", reason: "its shard leaves" },
      elsewhere: (id) =>
        shared === null && feed.rows.has(id) ? "open" : (ended.get(id) ?? shared?.elsewhere(id) ?? null),
      busyConversations: (owner) => feed.busyConversations(owner),
    }
  }

  /** Ends of tasks at other places for which some on the board wait. */
  endedElsewhere(): Effect.Effect<ReadonlyArray<Extract<TaskEvent, { readonly type: "endedElsewhere" }>>> {
    const ids = this.shared?.awaited() ?? []
    if (ids.length === 0) return Effect.succeed([])
    return Effect.map(this.read(ids), (found) => {
      this.shared?.learn(found)
      return found.flatMap(([id, standing]) =>
        standing === null || standing === "open" ? [] : [{ type: "endedElsewhere" as const, id, outcome: standing }],
      )
    })
  }

  /** Alone, the feed has every open task; among several nodes it may have one that went on elsewhere. */
  private isSeenOpen(id: TaskId): boolean {
    return this.shared === null && this.parts.feed.rows.has(id)
  }

  private read(ids: ReadonlyArray<TaskId>): Effect.Effect<ReadonlyArray<readonly [TaskId, Standing]>> {
    return Effect.forEach(ids, (id) =>
      Effect.map(untilStored(this.parts.store.task(id)), (task): readonly [TaskId, Standing] => [
        id,
        task === null ? null : isOpen(task) ? "open" : task.outcome,
      ]),
    )
  }
}
