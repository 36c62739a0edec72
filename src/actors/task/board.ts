/**
 * The board: every open task of the engine, with who owns whom and who waits for whom. Committed state only: a decision works on a
 * {@link Draft}, which becomes part of the board when its commit is durable.
 */
import type { TaskId } from "../../domain/ids.ts"
import type { Task } from "../../domain/task.ts"
import { isOpen } from "../../domain/task-rules.ts"
import type { Unstamped } from "../../storage/store.ts"

export type TaskRow = Unstamped<Task>

/** What an actor is at for a task: one of its phases, or its abort handler. */
export type RunMode = "phase" | "abort"

type Links = Map<TaskId, Set<TaskId>>

const link = (links: Links, from: TaskId, to: TaskId): void => {
  const known = links.get(from)
  if (known === undefined) links.set(from, new Set([to]))
  else known.add(to)
}

const unlink = (links: Links, from: TaskId, to: TaskId): void => {
  const known = links.get(from)
  known?.delete(to)
  if (known?.size === 0) links.delete(from)
}

export class Board {
  readonly rows = new Map<TaskId, TaskRow>()
  /** Open tasks by owner. */
  readonly owned: Links = new Map()
  /** Waiting tasks by what they wait for. */
  readonly waiters: Links = new Map()
  /** Tasks that an actor is at. */
  readonly live = new Map<TaskId, RunMode>()

  adopt(row: TaskRow): void {
    const before = this.rows.get(row.id)
    if (before?.waitingOn != null) for (const on of before.waitingOn.on) unlink(this.waiters, on, row.id)
    if (!isOpen(row)) {
      this.rows.delete(row.id)
      if (row.owner !== null) unlink(this.owned, row.owner, row.id)
      return
    }
    this.rows.set(row.id, row)
    if (row.owner !== null) link(this.owned, row.owner, row.id)
    if (row.waitingOn !== null) for (const on of row.waitingOn.on) link(this.waiters, on, row.id)
  }

  /** Takes an open task off the board: it is somebody else's now. */
  remove(id: TaskId): void {
    const row = this.rows.get(id)
    if (row === undefined) return
    this.rows.delete(id)
    this.live.delete(id)
    if (row.owner !== null) unlink(this.owned, row.owner, id)
    if (row.waitingOn !== null) for (const on of row.waitingOn.on) unlink(this.waiters, on, id)
  }
}

/** Changes of one decision over a board. The last row put of a task is what is committed. */
export class Draft {
  readonly changed = new Map<TaskId, TaskRow>()
  readonly live = new Map<TaskId, RunMode | null>()
  private readonly board: Board
  private readonly owned: Links = new Map()
  private readonly waiters: Links = new Map()

  constructor(board: Board) {
    this.board = board
  }

  /** The task as this decision leaves it, also when it ended in it; undefined when it is not open. */
  get(id: TaskId): TaskRow | undefined {
    return this.changed.get(id) ?? this.board.rows.get(id)
  }

  put(row: TaskRow): TaskRow {
    this.changed.set(row.id, row)
    if (row.owner !== null) link(this.owned, row.owner, row.id)
    if (row.waitingOn !== null) for (const on of row.waitingOn.on) link(this.waiters, on, row.id)
    return row
  }

  isOpen(id: TaskId): boolean {
    const row = this.get(id)
    return row !== undefined && isOpen(row)
  }

  mode(id: TaskId): RunMode | null {
    const drafted = this.live.get(id)
    return drafted === undefined ? (this.board.live.get(id) ?? null) : drafted
  }

  setMode(id: TaskId, mode: RunMode | null): void {
    this.live.set(id, mode)
  }

  /** Open tasks that `id` owns, oldest first. */
  children(id: TaskId): ReadonlyArray<TaskRow> {
    return this.rowsOf(this.board.owned.get(id), this.owned.get(id)).filter(isOpen)
  }

  /** Tasks that wait for `id`, oldest first. */
  waitersOf(id: TaskId): ReadonlyArray<TaskRow> {
    return this.rowsOf(this.board.waiters.get(id), this.waiters.get(id)).filter(
      (row) => row.status === "waiting" && row.waitingOn?.on.includes(id) === true,
    )
  }

  private rowsOf(...links: ReadonlyArray<ReadonlySet<TaskId> | undefined>): ReadonlyArray<TaskRow> {
    const ids = new Set<TaskId>()
    for (const some of links) if (some !== undefined) for (const id of some) ids.add(id)
    return [...ids]
      .sort((a, b) => a - b)
      .flatMap((id) => {
        const row = this.get(id)
        return row === undefined ? [] : [row]
      })
  }

  /** Makes the changes part of the board. */
  adopt(): void {
    for (const row of this.changed.values()) this.board.adopt(row)
    for (const [id, mode] of this.live) {
      if (mode === null) this.board.live.delete(id)
      else this.board.live.set(id, mode)
    }
  }
}
