/**
 * One decision about the tree of tasks in the making: every event is one method, made of a few moves (launch, finish, settle, abort) that keep
 * rules T1 to T6 of decide.ts. Pure. Long because each move calls the others.
 */
import type { TaskId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import { restartLimit, type TaskOutcome } from "../../domain/task.ts"
import { isFailure, isOpen, sameJson } from "../../domain/task-rules.ts"
import { type Board, Draft, type RunMode, type TaskRow } from "./board.ts"
import type { RunEnd, TaskAction, TaskEnv, TaskEvent } from "./events.ts"
import type { Step } from "./step.ts"
import { waitFault } from "./waits.ts"

export interface Decision {
  readonly draft: Draft
  readonly actions: ReadonlyArray<TaskAction>
  /** Of a step: the row from which the same actor goes on, or null when it is done. */
  readonly goOn: TaskRow | null
  /** Whether a step was taken as it is; only then its other rows are written. */
  readonly taken: boolean
  /** Why the event was refused, as `expected X, got Y`; nothing changes then. */
  readonly refused: string | null
}

export class Tree {
  readonly draft: Draft
  private readonly env: TaskEnv
  private readonly actions: Array<TaskAction> = []
  private goOn: TaskRow | null = null
  private taken = false
  private refused: string | null = null

  constructor(board: Board, env: TaskEnv) {
    this.draft = new Draft(board)
    this.env = env
  }

  done(): Decision {
    return { draft: this.draft, actions: this.actions, goOn: this.goOn, taken: this.taken, refused: this.refused }
  }

  // ---- running ----------------------------------------------------------------------------------------------------------------

  /** Runs the phase of the row's checkpoint, as far as there is code for it. */
  launch(row: TaskRow): void {
    const idle: TaskRow = { ...row, status: "pending", node: null, waitingOn: null, wakeAt: null }
    const prepared = this.env.prepare(row)
    if (prepared.type === "blocked") {
      if (row.status !== "pending") this.draft.put(idle)
      return
    }
    if (prepared.type === "park") {
      this.park(idle, prepared.reason)
      return
    }
    const { node, now } = this.env
    const taken = { ...idle, ...codeOf(prepared.row), status: "running" as const, node, fence: this.fenceOf(row) }
    this.draft.put({ ...taken, startedAt: row.startedAt ?? now })
    this.run(row.id, "phase")
  }

  private fenceOf({ fence }: TaskRow): number {
    return Math.max(fence, this.env.fence)
  }

  private run(id: TaskId, mode: RunMode): void {
    this.draft.setMode(id, mode)
    this.actions.push({ type: "run", id, mode })
  }

  /** Takes up what an earlier life of the engine, or one without the code, left. */
  resume(id: TaskId): void {
    const row = this.draft.get(id)
    if (row === undefined || this.draft.mode(id) !== null || row.parked !== null) return
    // A crash is counted by the code that runs the task next.
    if (row.node !== null && this.env.prepare(row).type === "blocked") return
    if (row.node !== null) {
      this.unclean(row, "its process died while it ran")
      return
    }
    switch (row.status) {
      case "pending":
      case "running":
        if (row.abortRequested) this.finish(row, row.outcome ?? aborted("aborted"))
        else this.launch(row)
        return
      case "waiting":
        this.checkWait(row.id, null)
        return
      case "completing":
        this.settle(row.id)
        return
    }
  }

  wake(id: TaskId): void {
    const row = this.draft.get(id)
    if (row?.status === "sleeping" && (row.wakeAt ?? 0) <= this.env.now) this.launch(row)
  }

  // ---- steps ------------------------------------------------------------------------------------------------------------------

  step({ id, step, children }: Extract<TaskEvent, { readonly type: "step" }>): void {
    const row = this.draft.get(id)
    if (row === undefined || this.draft.mode(id) !== "phase" || row.abortRequested) return
    const { env } = this
    switch (step.type) {
      case "complete":
        this.taken = true
        this.create(children)
        this.finish(row, { status: "completed", result: step.result })
        return
      case "fail":
        this.taken = true
        this.finish(row, { status: "failed", error: step.error })
        return
      case "next":
        if (this.moves(row, step.checkpoint)) this.proceed(row, step.checkpoint, children)
        return
      case "sleep": {
        if (!this.moves(row, step.checkpoint)) return
        const wakeAt = "until" in step.time ? step.time.until : env.now + step.time.ms
        if (!Number.isSafeInteger(Math.ceil(wakeAt))) {
          this.finish(row, { status: "faulted", error: `sleep: expected a time in milliseconds, got ${wakeAt}` })
          return
        }
        if (wakeAt <= env.now) {
          this.proceed(row, step.checkpoint, children)
          return
        }
        this.taken = true
        this.create(children)
        this.draft.setMode(id, null)
        const asleep = { ...row, checkpoint: step.checkpoint, crashes: 0, node: null }
        this.draft.put({ ...asleep, status: "sleeping", wakeAt: Math.ceil(wakeAt) })
        return
      }
      case "wait":
        if (this.moves(row, step.checkpoint)) this.wait(row, step, children)
        return
    }
  }

  /** A phase that neither changed the checkpoint nor ended would run for ever. */
  private moves(row: TaskRow, checkpoint: Json): boolean {
    if (!sameJson(row.checkpoint, checkpoint)) return true
    this.finish(row, {
      status: "faulted",
      error: `phase ${phaseOf(row)}: expected a new checkpoint or an end, got the same checkpoint`,
    })
    return false
  }

  private create(children: ReadonlyArray<TaskRow>): void {
    for (const child of children) this.draft.put(child)
    for (const child of children) this.launch(child)
  }

  private proceed(row: TaskRow, checkpoint: Json, children: ReadonlyArray<TaskRow>): void {
    this.taken = true
    this.goOn = this.draft.put({ ...row, checkpoint, crashes: 0 })
    this.create(children)
  }

  private wait(
    row: TaskRow,
    step: Extract<Step<Json, Json, Json>, { readonly type: "wait" }>,
    children: ReadonlyArray<TaskRow>,
  ): void {
    for (const child of children) this.draft.put(child)
    const waitingOn = { on: [...new Set(step.on)], policy: step.policy }
    const fault = waitFault(this.draft, row, waitingOn, this.env.elsewhere)
    if (fault !== null) {
      for (const child of children) this.draft.changed.delete(child.id)
      this.finish(row, { status: "faulted", error: fault })
      return
    }
    this.taken = true
    const { checkpoint } = step
    this.draft.put({ ...row, checkpoint, crashes: 0, status: "waiting", node: null, waitingOn })
    this.draft.setMode(row.id, null)
    for (const child of children) this.launch(child)
    this.checkWait(row.id, null)
  }

  // ---- waits ------------------------------------------------------------------------------------------------------------------

  private outcomeOf(id: TaskId): "open" | TaskOutcome | null {
    const row = this.draft.get(id)
    if (row === undefined) return this.env.elsewhere(id)
    return isOpen(row) ? "open" : row.outcome
  }

  private allEnded(ids: ReadonlyArray<TaskId>): boolean {
    return ids.every((id) => this.outcomeOf(id) !== "open")
  }

  private failed(id: TaskId): boolean {
    const outcome = this.outcomeOf(id)
    return outcome !== null && outcome !== "open" && isFailure(outcome)
  }

  /** Something that a task waits for has ended, with `outcome`; null looks at all of it. */
  checkWait(id: TaskId, outcome: TaskOutcome | null): void {
    const waiting = this.draft.get(id)
    if (waiting?.status !== "waiting" || waiting.waitingOn === null) return
    const { on, policy } = waiting.waitingOn
    const failed = outcome === null ? on.some((one) => this.failed(one)) : isFailure(outcome)
    if (policy === "failFast" && failed) this.abortWaited(id, `another task that ${id} waits for failed`)
    const now = this.draft.get(id)
    if (now?.status === "waiting" && this.allEnded(on)) this.launch(now)
  }

  private abortWaited(id: TaskId, reason: string): void {
    const on = this.draft.get(id)?.waitingOn?.on ?? []
    for (const one of on) if (this.draft.isOpen(one)) this.abort(one, false, reason)
  }

  // ---- ends -------------------------------------------------------------------------------------------------------------------

  /** How a run ended that gave no step. */
  ended(id: TaskId, end: RunEnd): void {
    const row = this.draft.get(id)
    const mode = this.draft.mode(id)
    if (row === undefined || mode === null) return
    this.draft.setMode(id, null)
    if (mode === "abort") {
      this.undone(row, end)
      return
    }
    if (end.type === "crashed") {
      this.unclean(row, end.message)
      return
    }
    if (row.abortRequested) {
      this.finish(row, row.outcome ?? aborted("aborted"))
      return
    }
    switch (end.type) {
      case "failed":
        this.finish(row, { status: "failed", error: end.error })
        return
      case "faulted":
        this.finish(row, { status: "faulted", error: end.message })
        return
      case "unreadable":
        this.park({ ...row, status: "pending", node: null }, end.message)
        return
      case "undone":
      case "stopped":
        this.draft.put({ ...row, status: "pending", node: null })
    }
  }

  /** The abort handler ended. */
  private undone(row: TaskRow, end: RunEnd): void {
    switch (end.type) {
      case "crashed":
        this.unclean(row, end.message)
        return
      case "unreadable":
        this.park({ ...row, node: null }, end.message)
        return
      case "stopped":
        this.draft.put({ ...row, node: null })
        return
      case "faulted":
        this.terminate({ ...row, outcome: { status: "faulted", error: end.message } })
        return
      default:
        this.terminate(row)
        return
    }
  }

  /** T4. */
  private unclean(row: TaskRow, message: string): void {
    const crashes = row.crashes + 1
    const left: TaskRow = { ...row, crashes, node: null }
    const aborting = row.status === "completing"
    if (row.abortRequested && !aborting) {
      this.finish(left, row.outcome ?? aborted("aborted"))
      return
    }
    if (crashes >= restartLimit) {
      const reason = `restart_limit: ${crashes} unclean ends without progress, the last because ${message}`
      this.park(aborting ? left : { ...left, status: "pending" }, reason)
      return
    }
    if (aborting) {
      this.draft.put(left)
      this.settle(row.id)
    } else this.launch(left)
  }

  private park(row: TaskRow, reason: string): void {
    this.draft.put({ ...row, parked: reason })
    this.actions.push({ type: "parked", id: row.id, reason })
  }

  /** The outcome is decided (T1, T3). */
  private finish(row: TaskRow, outcome: TaskOutcome): void {
    this.draft.setMode(row.id, null)
    const held = {
      ...row,
      status: "completing" as const,
      outcome,
      node: null,
      waitingOn: null,
      wakeAt: null,
      parked: null,
    }
    this.draft.put(held)
    if (isFailure(outcome)) this.abortOwned(row.id, false, `task ${row.id}, which owns it, ${outcome.status}`)
    this.settle(row.id)
  }

  private abortOwned(id: TaskId, deep: boolean, reason: string): void {
    for (const child of this.draft.children(id)) if (deep || !child.background) this.abort(child.id, deep, reason)
    for (const conversation of this.env.busyConversations(id))
      this.actions.push({ type: "cancelConversation", conversation })
  }

  /** Ends a `completing` task, or runs its abort handler, once nothing that it owns is open (T1, T2). */
  settle(id: TaskId): void {
    const row = this.draft.get(id)
    if (row?.status !== "completing" || row.parked !== null || this.draft.mode(id) !== null) return
    if (this.draft.children(id).some((child) => !child.background)) return
    if (this.env.busyConversations(id).length > 0) return
    if (row.outcome?.status !== "aborted" || row.startedAt === null) {
      this.terminate(row)
      return
    }
    const prepared = this.env.prepare(row)
    if (prepared.type === "blocked") return
    if (prepared.type === "park") {
      this.park(row, prepared.reason)
      return
    }
    if (!prepared.undo) {
      this.terminate(row)
      return
    }
    this.draft.put({ ...row, ...codeOf(prepared.row), node: this.env.node, fence: this.fenceOf(row) })
    this.run(id, "abort")
  }

  private terminate(row: TaskRow): void {
    const outcome = row.outcome ?? aborted("aborted")
    this.draft.put({ ...row, status: "terminal", outcome, node: null, endedAt: this.env.now })
    this.draft.setMode(row.id, null)
    for (const waiter of this.draft.waitersOf(row.id)) this.checkWait(waiter.id, outcome)
    if (row.owner !== null && !row.background) this.settle(row.owner)
  }

  // ---- from outside -----------------------------------------------------------------------------------------------------------

  /** An abort of a task whose abort handler is parked runs that again. */
  abortOrRetry(id: TaskId, deep: boolean, reason: string): void {
    const row = this.draft.get(id)
    this.abort(id, deep, reason)
    if (row?.abortRequested === true && row.parked !== null) this.retry(id)
  }

  /** T2. `deep` reaches through background work. */
  abort(id: TaskId, deep: boolean, reason: string): void {
    const row = this.draft.get(id)
    if (row === undefined || !isOpen(row)) return
    const again = row.abortRequested
    if (again && !deep) return
    const held = row.outcome ?? aborted(reason)
    const marked = this.draft.put({ ...row, abortRequested: true, outcome: held })
    const mode = this.draft.mode(id)
    if (mode === "phase" && !again) this.actions.push({ type: "interrupt", id })
    if (mode === null && !again) {
      const idle = { ...marked, node: null, waitingOn: null, wakeAt: null, parked: null }
      this.draft.put({ ...idle, status: "completing", crashes: row.parked === null ? row.crashes : 0 })
    }
    this.abortOwned(id, deep, `task ${id}, which owns it, was aborted`)
    this.settle(id)
  }

  retry(id: TaskId): void {
    const row = this.draft.get(id)
    if (row === undefined || row.parked === null) {
      this.refused = `task ${id}: expected a parked task, got one that is ${row?.status ?? "ended"}`
      return
    }
    const again = this.draft.put({ ...row, parked: null, crashes: 0 })
    if (row.status === "completing") this.settle(id)
    else this.launch(again)
  }

  /** T6: gives up a task whose code is missing. */
  discard(id: TaskId, reason: string): void {
    const row = this.draft.get(id)
    if (row === undefined || this.draft.mode(id) !== null || this.env.prepare(row).type !== "blocked") {
      this.refused = `task ${id}: expected a task whose code is missing, got one that ${row === undefined ? "ended" : "can run"}`
      return
    }
    this.finish({ ...row, abortRequested: true }, { status: "orphaned", reason })
  }
}

const aborted = (reason: string): TaskOutcome => ({ status: "aborted", reason })

/** What a migration changes. */
const codeOf = ({ version, input, checkpoint }: TaskRow) => ({ version, input, checkpoint })

const phaseOf = (row: TaskRow): string => {
  const { checkpoint } = row
  return typeof checkpoint === "object" && checkpoint !== null && "phase" in checkpoint ? String(checkpoint.phase) : "?"
}
