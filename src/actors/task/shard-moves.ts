/**
 * Shards that come to a ledger and leave it: their tasks are taken over, and released. Long waits are fibers; the ledger goes on meanwhile.
 */
import { Effect } from "effect"
import { shardOf } from "../../domain/cluster.ts"
import type { TaskId } from "../../domain/ids.ts"
import { TaskKind } from "../../domain/task.ts"
import { isWorkflow } from "../../domain/task-rules.ts"
import type { Fenced } from "../../storage/errors.ts"
import { type ActorContext, type ActorRef, shutdown, stop, tell } from "../kernel/index.ts"
import type { Board, TaskRow } from "./board.ts"
import type { LedgerParts } from "./ledger-parts.ts"
import type { LedgerMessage } from "./messages.ts"
import { releasedRow } from "./rows.ts"
import type { Leave, SharedTasks } from "./sharing.ts"
import { untilStored } from "./stored.ts"

/** Tasks whose conversations are read at once. */
const readers = 8

export class ShardMoves {
  private readonly shared: SharedTasks
  private readonly parts: LedgerParts
  private readonly self: ActorContext<LedgerMessage>
  private readonly board: Board
  /** Takes the actor of a task from the ledger: what it says from now on counts no more. */
  private readonly takeRun: (id: TaskId) => ActorRef<"go"> | null
  /** Rows of runs that are being stopped. */
  private readonly stopping = new Map<TaskId, TaskRow>()

  constructor(
    shared: SharedTasks,
    parts: LedgerParts,
    self: ActorContext<LedgerMessage>,
    board: Board,
    takeRun: (id: TaskId) => ActorRef<"go"> | null,
  ) {
    this.shared = shared
    this.parts = parts
    this.self = self
    this.board = board
    this.takeRun = takeRun
  }

  /** Takes over what is open at shards; gives the applications' tasks among it, which are on the board now. */
  adopt(shards: ReadonlyArray<number>): Effect.Effect<ReadonlyArray<TaskRow>, Fenced> {
    const fresh = this.shared.fresh(shards)
    const { feed, store } = this.parts
    return Effect.gen(this, function* () {
      if (fresh.length === 0) return []
      feed.expect()
      const { fence, tasks } = yield* untilStored(this.shared.sharing.adopt(fresh)).pipe(
        Effect.catchTag("Conflict", (error) => Effect.die(error)),
      )
      const owners = tasks.filter(({ task }) => isWorkflow(task) || task.kind === TaskKind.subagent)
      const owned = yield* Effect.forEach(owners, ({ task }) => untilStored(store.ownedConversations(task.id)), {
        concurrency: readers,
      })
      feed.loadExpected(tasks, owned.flat())
      this.shared.adopted(fresh, fence)
      const mine = tasks.flatMap(({ task }) => (isWorkflow(task) ? [task] : []))
      for (const row of mine) this.board.adopt(row)
      return mine
    })
  }

  /** Lets go of shards: what runs may end within the grace. */
  leave(leave: Leave, graceMs: number): Effect.Effect<void> {
    this.shared.begin(leave)
    const timeUp = tell<LedgerMessage>(this.self.ref, { type: "stopLeaving", leave })
    if (this.shared.live(leave).length === 0) return Effect.sync(() => this.settle())
    return Effect.asVoid(this.self.fork(Effect.zipRight(Effect.sleep(graceMs), timeUp)))
  }

  /** Carries out what nothing holds up any more. */
  settle(): void {
    for (const leave of this.shared.quiet()) {
      this.shared.carryOut(leave)
      leave.reply?.succeed(undefined)
    }
  }

  /** The time is up: stops what still runs. A phase that was cut off starts over elsewhere; that counts as no crash. */
  stop(leave: Leave): Effect.Effect<void> {
    if (!this.shared.isOpen(leave)) return Effect.void
    const live = this.shared.live(leave)
    const rows = live.map((row) => releasedRow(row, this.board.live.get(row.id) ?? "phase"))
    const refs = live.flatMap(({ id }) => this.takeRun(id) ?? [])
    for (const row of rows) this.stopping.set(row.id, row)
    this.shared.carryOut(leave)
    const stopped = Effect.forEach(refs, (ref) => stop(ref, shutdown, { shutdownMs: 0 }), {
      concurrency: "unbounded",
      discard: true,
    })
    return Effect.asVoid(
      this.self.fork(Effect.zipRight(stopped, tell<LedgerMessage>(this.self.ref, { type: "stopped", rows, leave }))),
    )
  }

  /** Their actors have stopped: releases them. Where somebody else has them already there is nothing to release. */
  release(rows: ReadonlyArray<TaskRow>, { reply }: Leave): Effect.Effect<void> {
    for (const { id } of rows) this.stopping.delete(id)
    return Effect.when(this.parts.store.commit({ tasks: rows }), () => rows.length > 0).pipe(
      Effect.catchAll((error) => Effect.logWarning(`tasks that left were not released: ${error.message}`)),
      Effect.zipRight(Effect.sync(() => reply?.succeed(undefined))),
    )
  }

  /** After a refused commit: lets go of the shards of rows that somebody else took over without a word to us. False: there is none. */
  abandon(rows: ReadonlyArray<TaskRow>): Effect.Effect<boolean> {
    const { feed, store } = this.parts
    return Effect.gen(this, function* () {
      const taken = yield* Effect.filter(rows, (row) =>
        Effect.map(untilStored(store.task(row.id)), (stored) => stored !== null && stored.fence > row.fence),
      )
      if (taken.length === 0) return false
      const shards = new Set(taken.map((row) => shardOf(feed.placeOf(row))))
      yield* Effect.logWarning(`the tasks of shards ${[...shards].join(", ")} are another node's by now`)
      const leave = { shards, reply: null }
      this.shared.begin(leave)
      yield* this.stop(leave)
      return true
    })
  }

  /** Rows that a clean stop of the node is to release with its own. */
  get unreleased(): ReadonlyArray<TaskRow> {
    return [...this.stopping.values()]
  }
}
