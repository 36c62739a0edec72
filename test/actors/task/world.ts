/**
 * The decision core driven by hand: a board whose commits always succeed, and the actors that it asked for, as plain data.
 */
import { Board, type RunMode, type TaskRow } from "../../../src/actors/task/board.ts"
import { decide } from "../../../src/actors/task/decide.ts"
import type { Prepared, TaskEnv, TaskEvent } from "../../../src/actors/task/events.ts"
import { freshRow, releasedRow } from "../../../src/actors/task/rows.ts"
import { Step } from "../../../src/actors/task/step.ts"
import type { Decision } from "../../../src/actors/task/tree.ts"
import { TaskId } from "../../../src/domain/ids.ts"
import type { Json } from "../../../src/domain/json.ts"
import { isOpen } from "../../../src/domain/task-rules.ts"

export class World {
  board = new Board()
  /** Every committed row, the ended ones too. */
  readonly rows = new Map<TaskId, TaskRow>()
  /** The actors that run. */
  readonly live = new Map<TaskId, RunMode>()
  readonly interrupted = new Set<TaskId>()
  readonly cancelled: Array<number> = []
  now = 1_000
  /** Whether there is an abort handler, and what is said of a kind that has no code. */
  undo = true
  readonly missing = new Set<string>()
  prepare: ((row: TaskRow) => Prepared) | null = null
  private ids = 0
  private checkpoints = 0

  get(id: number): TaskRow {
    const row = this.rows.get(TaskId.make(id))
    if (row === undefined) throw new Error(`no task ${id}`)
    return row
  }

  row(options: Partial<TaskRow> = {}): TaskRow {
    return freshRow({
      ...{ id: TaskId.make(++this.ids), kind: "test", version: 1, input: null, checkpoint: this.checkpoint() },
      ...{ conversation: null, owner: null, background: false, fence: 1, requestId: null, createdAt: this.now },
      ...options,
    })
  }

  checkpoint(): { readonly phase: string } & { readonly [key: string]: Json } {
    return { phase: `p${++this.checkpoints}` }
  }

  readonly env = (): TaskEnv => ({
    now: this.now,
    node: "here",
    fence: 1,
    prepare: (row) =>
      this.prepare?.(row) ??
      (this.missing.has(row.kind) ? { type: "blocked", reason: "missing" } : { type: "run", row, undo: this.undo }),
    elsewhere: (id) => this.rows.get(id)?.outcome ?? null,
    busyConversations: () => [],
  })

  apply(event: TaskEvent): Decision {
    const decision = decide(this.board, event, this.env())
    for (const row of decision.draft.changed.values()) this.rows.set(row.id, row)
    decision.draft.adopt()
    for (const id of decision.draft.live.keys()) this.drop(id)
    for (const action of decision.actions) {
      if (action.type === "run" && this.board.live.get(action.id) === action.mode) this.live.set(action.id, action.mode)
      if (action.type === "interrupt") this.interrupted.add(action.id)
    }
    return decision
  }

  private drop(id: TaskId): void {
    this.live.delete(id)
    this.interrupted.delete(id)
  }

  start(options: Partial<TaskRow> = {}): TaskId {
    const row = this.row(options)
    this.apply({ type: "start", rows: [row] })
    return row.id
  }

  step(id: TaskId, step: Step<Json, Json, Json>, children: ReadonlyArray<TaskRow> = []): Decision {
    return this.apply({ type: "step", id, step, children })
  }

  /** A parent that waits for `count` new children. */
  parentOf(
    count: number,
    policy: "allSettled" | "failFast" = "allSettled",
  ): { parent: TaskId; children: Array<TaskId> } {
    const parent = this.start()
    const rows = Array.from({ length: count }, () => this.row({ owner: parent }))
    const children = rows.map(({ id }) => id)
    this.step(parent, Step.wait({ on: children, policy }, this.checkpoint()), rows)
    return { parent, children }
  }

  /** The process goes away; with `clean` it hands its tasks back first. */
  restart(clean: boolean): void {
    if (clean) {
      for (const [id, mode] of this.board.live) this.rows.set(id, releasedRow(this.get(id), mode))
    }
    this.live.clear()
    this.interrupted.clear()
    this.board = new Board()
    for (const row of this.rows.values()) if (isOpen(row)) this.board.adopt(row)
    this.apply({ type: "recover" })
  }

  open(): ReadonlyArray<TaskRow> {
    return [...this.rows.values()].filter(isOpen)
  }

  /** Faults of the committed rows against rule T1. */
  faults(): ReadonlyArray<string> {
    return this.open().flatMap((row) => {
      const owner = row.owner === null || row.background ? undefined : this.rows.get(row.owner)
      const ended = owner !== undefined && !isOpen(owner) ? [`task ${owner.id} ended before its task ${row.id}`] : []
      const undoing =
        owner !== undefined && this.live.get(owner.id) === "abort"
          ? [`task ${owner.id} is undone before ${row.id}`]
          : []
      const mode = this.live.get(row.id)
      const expected = row.status === "running" ? "phase" : row.status === "completing" ? "abort" : undefined
      const alive = mode !== undefined && mode !== expected ? [`task ${row.id} is ${row.status} and runs ${mode}`] : []
      const node =
        (row.node !== null) === (mode !== undefined) ? [] : [`task ${row.id} has node ${row.node} and runs ${mode}`]
      return [...ended, ...undoing, ...alive, ...node]
    })
  }
}
