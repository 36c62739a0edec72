/**
 * The ledger of tasks: the one actor that writes the rows of the engine's tasks. It owns the board, the timer of the sleepers, and the actors of
 * the tasks that run (its children, so that they have stopped before it lets go of their tasks). One event at a time: decide, commit, adopt,
 * act. Restarted after a crash it reads everything anew; what ran counts as an unclean end. Among several nodes it has the tasks of the shards
 * that it adopted (`sharing.ts`). Long because every message is one pass through `apply`.
 */
import { Cause, Clock, Context, DefaultServices, Effect, Option } from "effect"
import { type Failure, InvalidRequest, Refused, ServiceFailure } from "../../domain/failure.ts"
import type { TaskId } from "../../domain/ids.ts"
import { moved } from "../../domain/moved.ts"
import { isOpen, isWorkflow } from "../../domain/task-rules.ts"
import type { CommitError, Fenced } from "../../storage/errors.ts"
import { storageFailure } from "../conversation/failures.ts"
import {
  type Action,
  type ActorContext,
  type ActorRef,
  type Down,
  describeCause,
  keep,
  nextEvent,
  type StopReason,
  shutdown,
  stateMachine,
  stop,
  stopMachine,
  type Transition,
  tell,
  timeout,
} from "../kernel/index.ts"
import { taskActor } from "./actor.ts"
import { birthplace } from "./birthplace.ts"
import { Board, type RunMode, type TaskRow } from "./board.ts"
import { decide } from "./decide.ts"
import type { RunEnd, TaskAction, TaskEvent } from "./events.ts"
import type { LedgerParts } from "./ledger-parts.ts"
import type { LedgerMessage } from "./messages.ts"
import { freshRow, releasedRow } from "./rows.ts"
import { ShardMoves } from "./shard-moves.ts"
import { type Leave, SharedTasks } from "./sharing.ts"
import { Sleepers } from "./sleepers.ts"
import type { StepWrites } from "./step.ts"
import { untilStored } from "./stored.ts"
import { Surroundings } from "./surroundings.ts"
import type { Decision } from "./tree.ts"

/** The wall clock may jump and the machine may sleep: the timer looks again at least this often, in ms. No other clock does. */
const napMs = (clock: Clock.Clock): number =>
  clock === Context.unsafeGet(DefaultServices.liveServices, Clock.Clock) ? 3_600_000 : Number.MAX_SAFE_INTEGER

/** A phase that is stopped is interrupted at once; its end is waited for with its finalizers. */
const runSpec = { restart: "temporary", shutdownMs: 0 } as const

type Change = Transition<"serving", Ledger, LedgerMessage>
type Question = Extract<LedgerMessage, { readonly type: "start" | "abort" | "retry" | "discard" }>

export const taskLedger = (parts: LedgerParts) =>
  stateMachine<Ledger, LedgerMessage, "serving">({
    name: "tasks",
    init: (self) =>
      Effect.gen(function* () {
        const clock = yield* Effect.clock
        const rows = parts.sharing === null ? yield* untilStored(parts.store.openTasks()) : []
        const ledger = new Ledger(parts, self, clock, rows.filter(isWorkflow))
        if (parts.sharing !== null) yield* self.fork(Effect.forever(Effect.delay(lookElsewhere(self), lookMs)))
        return { state: "serving" as const, data: ledger, actions: [nextEvent<LedgerMessage>({ type: "recover" })] }
      }),
    handle: (_state, message, ledger) => ledger.receive(message),
    onDown: (_state, down, ledger) => ledger.down(down),
    onStop: (_state, reason, ledger) => ledger.release(reason),
    describe: (_state, ledger) => ledger.describe(),
  })

/** Between two looks at tasks of other nodes, in ms: signals come sooner. */
const lookMs = 1_000

const lookElsewhere = (self: ActorContext<LedgerMessage>) => tell<LedgerMessage>(self.ref, { type: "lookElsewhere" })

interface Run {
  readonly run: number
  readonly ref: ActorRef<"go">
}

class Ledger {
  private readonly parts: LedgerParts
  private readonly self: ActorContext<LedgerMessage>
  private readonly clock: Clock.Clock
  private readonly board = new Board()
  private readonly sleepers = new Sleepers()
  /** What runs for a task, and the task of an actor by its id. */
  private readonly runs = new Map<TaskId, Run>()
  private readonly taskOf = new Map<number, TaskId>()
  private runCount = 0
  /** When the timer goes off, or null. */
  private armed: number | null = null
  private fenced = false
  private readonly shared: SharedTasks | null
  private readonly moves: ShardMoves | null
  private readonly surroundings: Surroundings

  constructor(parts: LedgerParts, self: ActorContext<LedgerMessage>, clock: Clock.Clock, rows: ReadonlyArray<TaskRow>) {
    this.parts = parts
    this.self = self
    this.clock = clock
    const { feed, sharing } = parts
    this.shared = sharing === null ? null : new SharedTasks(sharing, this.board, feed)
    this.moves = this.shared && new ShardMoves(this.shared, parts, self, this.board, (id) => this.takeRun(id))
    this.surroundings = new Surroundings(parts, this.board, this.shared, clock)
    for (const row of rows) this.board.adopt(row)
    for (const row of rows) this.noteSleeper(row)
    feed.listen({
      endedElsewhere: (id, outcome) => {
        if (this.board.waiters.has(id)) this.later({ type: "endedElsewhere", id, outcome })
      },
      conversationIdle: (owner) => {
        if (this.board.rows.get(owner)?.status === "completing") this.later({ type: "conversationIdle", owner })
      },
    })
  }

  describe(): string {
    const next = this.sleepers.next
    const asleep = next === null ? "" : `, next wake ${new Date(next).toISOString()}`
    return `${this.board.rows.size} open, ${this.board.live.size} running${asleep}`
  }

  receive(message: LedgerMessage): Effect.Effect<Change> {
    switch (message.type) {
      case "start":
        return this.start(message)
      case "abort":
      case "retry":
      case "discard":
        return this.moves === null ? this.answer(message, message) : this.ask(message)
      case "step": {
        const { children, id, reply, run, step } = message
        if (this.runs.get(id)?.run !== run) return this.kept(() => reply.succeed(null))
        let leaves = false
        const answer = ({ goOn }: Decision): void => {
          leaves = goOn !== null && this.shared?.runs(goOn) === false
          reply.succeed(leaves ? null : goOn)
        }
        // Its shard leaves: it goes on elsewhere, from here.
        return Effect.flatMap(this.apply({ type: "step", id, step, children }, step.writes, answer), (change) =>
          leaves ? this.apply({ type: "ended", id, end: { type: "stopped" } }) : Effect.succeed(change),
        )
      }
      case "runEnded": {
        const { end, id, run } = message
        if (this.runs.get(id)?.run !== run) return this.kept()
        return this.apply({ type: "ended", id, end })
      }
      case "registered":
        return Effect.map(this.apply({ type: "registered", kind: message.kind }), (change) => {
          this.parts.feed.refresh(message.kind)
          message.reply.succeed(undefined)
          return change
        })
      case "wake":
        this.armed = null
        return this.apply({ type: "wake", ids: this.sleepers.due(this.now()) })
      case "recover":
        return this.shared === null ? this.apply(message) : this.gained(this.shared.sharing.held())
      case "gained":
        return Effect.tap(this.gained(message.shards), () => message.reply.succeed(undefined))
      case "leaving":
        return this.leave({ shards: new Set(message.shards), reply: message.reply }, message.graceMs)
      case "stopLeaving":
        return Effect.zipRight(this.moves?.stop(message.leave) ?? Effect.void, this.kept())
      case "stopped":
        return Effect.zipRight(this.moves?.release(message.rows, message.leave) ?? Effect.void, this.kept())
      case "lookElsewhere":
        return this.lookElsewhere()
      default:
        return this.apply(message)
    }
  }

  /** The actor of a task ended without a last word. */
  down(down: Down): Effect.Effect<Change> {
    const id = this.taskOf.get(down.ref.id)
    this.taskOf.delete(down.ref.id)
    if (id === undefined || this.runs.get(id)?.ref.id !== down.ref.id) return this.kept()
    const { reason } = down
    const end: RunEnd =
      reason._tag === "Crashed" ? { type: "crashed", message: describeCause(reason.cause) } : { type: "stopped" }
    return this.apply({ type: "ended", id, end })
  }

  /** A clean stop: what ran is left without a node, so that its next start counts no crash. */
  release(reason: StopReason): Effect.Effect<void> {
    if (reason._tag === "Crashed" || this.fenced) return Effect.void
    const tasks: Array<TaskRow> = [...(this.moves?.unreleased ?? [])]
    for (const [id, mode] of this.board.live) {
      const row = this.board.rows.get(id)
      if (row !== undefined) tasks.push(releasedRow(row, mode))
    }
    if (tasks.length === 0) return Effect.void
    return this.parts.store.commit({ tasks }).pipe(
      Effect.catchAll((error) => Effect.logWarning(`running tasks were not released: ${error.message}`)),
      Effect.asVoid,
    )
  }

  // ---- questions --------------------------------------------------------------------------------------------------------------

  private start(message: Extract<LedgerMessage, { readonly type: "start" }>): Effect.Effect<Change> {
    const { reply, task } = message
    const { store } = this.parts
    const { requestId } = task
    const found: Effect.Effect<TaskRow | null, CommitError> =
      requestId === null ? Effect.succeed(null) : store.taskByRequest(requestId)
    const fresh = Effect.map(birthplace(store, this.shared, task.conversation), (born): TaskRow | Failure =>
      "id" in born ? freshRow({ ...task, ...born, owner: null, createdAt: this.now() }) : born,
    )
    return Effect.matchEffect(Effect.all([found, fresh]), {
      onFailure: (error) => Effect.flatMap(storageFailure(error), (failure) => this.kept(() => reply.fail(failure))),
      onSuccess: ([known, row]) => {
        if (known !== null) return this.kept(() => reply.succeed(known.id))
        if (!("id" in row)) return this.kept(() => reply.fail(row))
        return this.answer(message, { type: "start", rows: [row] }, () => reply.succeed(row.id))
      },
    })
  }

  private answer(message: Question, event: TaskEvent, done?: () => void): Effect.Effect<Change> {
    const { reply } = message
    const settle = (decision: Decision): void => {
      if (decision.refused !== null) reply.fail(new Refused({ rule: "task_state", detail: decision.refused }))
      else if (done !== undefined) done()
      else if (message.type === "abort") message.reply.succeed({ aborted: decision.draft.changed.size > 0 })
      else if (message.type !== "start") message.reply.succeed(undefined)
    }
    return this.apply(event, {}, settle, message)
  }

  // ---- among several nodes ----------------------------------------------------------------------------------------------------

  /** A question about a task that is not on the board: another node may have it. */
  private ask(message: Exclude<Question, { readonly type: "start" }>): Effect.Effect<Change> {
    if (this.board.rows.has(message.id)) return this.answer(message, message)
    return Effect.matchEffect(this.parts.store.task(message.id), {
      onFailure: (error) => Effect.flatMap(storageFailure(error), (told) => this.kept(() => message.reply.fail(told))),
      onSuccess: (task) =>
        task !== null && isWorkflow(task) && isOpen(task)
          ? this.kept(() => message.reply.fail(moved(`task ${message.id}`)))
          : this.answer(message, message),
    })
  }

  private gained(shards: ReadonlyArray<number>): Effect.Effect<Change> {
    return Effect.matchEffect(this.moves?.adopt(shards) ?? Effect.succeed([]), {
      onFailure: (error) => this.fencedOff(error, null),
      onSuccess: (rows) => {
        for (const row of rows) this.noteSleeper(row)
        return this.apply({ type: "resume", ids: rows.map(({ id }) => id) })
      },
    })
  }

  private leave(leave: Leave, graceMs: number): Effect.Effect<Change> {
    return Effect.zipRight(this.moves?.leave(leave, graceMs) ?? Effect.void, this.kept())
  }

  /** Takes the actor of a task from the books. */
  private takeRun(id: TaskId): ActorRef<"go"> | null {
    const running = this.runs.get(id)
    this.runs.delete(id)
    return running?.ref ?? null
  }

  private lookElsewhere(): Effect.Effect<Change> {
    return Effect.flatMap(this.surroundings.endedElsewhere(), (ended) =>
      Effect.reduce(ended, keep<Ledger, LedgerMessage>(this, this.timer()) as Change, (_, event) => this.apply(event)),
    )
  }

  // ---- one event --------------------------------------------------------------------------------------------------------------

  private apply(
    event: TaskEvent,
    writes: StepWrites = {},
    settle: (decision: Decision) => void = () => {},
    question: Question | null = null,
  ): Effect.Effect<Change> {
    return Effect.flatMap(this.surroundings.prefetch(event), (ended) => {
      const decision = decide(this.board, event, this.surroundings.env(ended))
      const tasks = [...decision.draft.changed.values()]
      const adopt = () => {
        decision.draft.adopt()
        for (const row of tasks) this.noteSleeper(row)
      }
      const done = Effect.suspend(() => {
        this.forget(decision)
        const acting = Effect.forEach(decision.actions, (action) => this.perform(action), { discard: true })
        return Effect.map(acting, () => {
          settle(decision)
          this.shared?.tell(tasks)
          this.moves?.settle()
          return keep<Ledger, LedgerMessage>(this, this.timer())
        })
      })
      if (tasks.length === 0) return Effect.zipRight(Effect.sync(adopt), done)
      // Uninterruptible: what is committed is adopted, or a clean stop would write older rows over it.
      const commit = Effect.uninterruptible(
        Effect.map(this.parts.store.commit({ ...(decision.taken ? writes : {}), tasks }), adopt),
      )
      return Effect.matchCauseEffect(question === null ? untilStored(commit) : commit, {
        onSuccess: () => done,
        onFailure: (cause) => this.refused(cause, event, tasks, settle, question),
      })
    })
  }

  /** A commit that was not made: whoever asked is told, a step that asked for too much breaks its task, and a stale owner stops for good. */
  private refused(
    cause: Cause.Cause<CommitError>,
    event: TaskEvent,
    rows: ReadonlyArray<TaskRow>,
    settle: (decision: Decision) => void,
    question: Question | null,
  ): Effect.Effect<Change> {
    const failure = Option.getOrNull(Cause.failureOption(cause))
    if (failure?._tag === "Fenced") {
      return Effect.flatMap(this.moves?.abandon(rows) ?? Effect.succeed(false), (abandoned) => {
        if (!abandoned) return this.fencedOff(failure, question)
        // The rest of what happened goes on. A step has nobody any more who waits for its answer.
        if (question === null) return event.type === "step" ? this.kept() : this.apply(event, {}, settle)
        const what = question.type === "start" ? "the place of the new task" : `task ${question.id}`
        return this.kept(() => question.reply.fail(moved(what)))
      })
    }
    if (question !== null && failure !== null) return this.refuse(question, failure)
    if (event.type !== "step") return Effect.failCause(cause).pipe(Effect.orDie)
    const message = `the step could not be committed: ${describeCause(cause)}`
    return this.apply({ type: "ended", id: event.id, end: { type: "faulted", message } }, {}, settle)
  }

  private fencedOff(failure: Fenced, question: Question | null): Effect.Effect<Change> {
    this.fenced = true
    question?.reply.fail(new ServiceFailure({ code: "fenced", detail: failure.message, reference: "fenced" }))
    return Effect.as(Effect.logError(`the task engine stops: ${failure.message}`), stopMachine())
  }

  private refuse(question: Question, failure: CommitError): Effect.Effect<Change> {
    if (failure._tag !== "Conflict" || question.type !== "start") {
      return Effect.flatMap(storageFailure(failure), (told) => this.kept(() => question.reply.fail(told)))
    }
    const actual = `${failure.what}: ${failure.detail}`
    const expected = "a conversation that exists, and a request id of no other task"
    const { requestId } = question.task
    // Another node may have started the same request in the same moment.
    const twin = requestId === null ? Effect.succeed(null) : this.parts.store.taskByRequest(requestId)
    return Effect.flatMap(
      Effect.orElseSucceed(twin, () => null),
      (task) =>
        this.kept(() => {
          if (task !== null) question.reply.succeed(task.id)
          else question.reply.fail(new InvalidRequest({ path: "start", expected, actual }))
        }),
    )
  }

  /** Actors that have nothing more to say. */
  private forget({ draft }: Decision): void {
    for (const id of draft.live.keys()) this.runs.delete(id)
  }

  private perform(action: TaskAction): Effect.Effect<void> {
    switch (action.type) {
      case "run":
        return this.run(action.id, action.mode)
      case "interrupt": {
        const running = this.runs.get(action.id)
        return running === undefined
          ? Effect.void
          : Effect.asVoid(this.self.fork(stop(running.ref, shutdown, { shutdownMs: 0 })))
      }
      case "parked":
        return Effect.logWarning(`task ${action.id} is parked (${action.reason}); retry or abort it`)
      case "cancelConversation":
        return Effect.asVoid(this.self.fork(this.parts.cancelConversation(action.conversation)))
    }
  }

  private run(id: TaskId, mode: RunMode): Effect.Effect<void> {
    const row = this.board.rows.get(id)
    const code = row === undefined ? undefined : this.parts.catalog.get(row.kind)
    // A decision in the same event may have ended it again.
    if (row === undefined || code === undefined || this.board.live.get(id) !== mode) return Effect.void
    const run = ++this.runCount
    const actor = taskActor({ run, mode, row, code, store: this.parts.store, ledger: this.self.ref })
    return Effect.matchEffect(this.self.spawn(actor, { name: `task-${id}.${run}`, childSpec: runSpec }), {
      // The ledger itself is stopping: its release takes the row back.
      onFailure: () => Effect.void,
      onSuccess: (ref) => {
        this.runs.set(id, { run, ref })
        this.taskOf.set(ref.id, id)
        return Effect.zipRight(this.self.watch(ref), tell(ref, "go"))
      },
    })
  }

  // ---- time -------------------------------------------------------------------------------------------------------------------

  private now(): number {
    return this.clock.unsafeCurrentTimeMillis()
  }

  private noteSleeper(row: TaskRow): void {
    if (row.status === "sleeping" && row.wakeAt !== null) this.sleepers.add({ id: row.id, at: row.wakeAt })
  }

  /** Sets the one timer, for the earliest sleeper. */
  private timer(): ReadonlyArray<Action<LedgerMessage>> {
    const { next } = this.sleepers
    if (next === null || (this.armed !== null && this.armed <= next)) return []
    const ms = Math.min(Math.max(0, next - this.now()), napMs(this.clock))
    this.armed = this.now() + ms
    return [timeout<LedgerMessage>("wake", ms, { type: "wake" })]
  }

  private kept(effect: () => void = () => {}): Effect.Effect<Change> {
    return Effect.sync(() => {
      effect()
      return keep<Ledger, LedgerMessage>(this, this.timer())
    })
  }

  private later(message: LedgerMessage): void {
    Effect.runFork(tell(this.self.ref, message))
  }
}
