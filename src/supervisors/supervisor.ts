/**
 * A supervisor with a fixed list of children: ordered start, reverse ordered stop, restarts by strategy within the restart
 * intensity, escalation beyond it. It is an actor; its mailbox puts the ends of children one after another. Rules K50 to K55 of
 * docs/kernel.md.
 *
 * A child is up, or DOWN (its end is in the supervisor's mailbox, or it is being restarted), or gone: it ended as its policy allows,
 * or somebody stopped it, and it is not started again.
 */
import { Effect } from "effect"
import { type Behavior, nameShape } from "../actors/kernel/behavior.ts"
import { bury } from "../actors/kernel/burial.ts"
import { type Cell, cellOf } from "../actors/kernel/cell.ts"
import { chain } from "../actors/kernel/effect-internals.ts"
import { Envelope } from "../actors/kernel/envelope.ts"
import {
  type ActorDown,
  type AskTimeout,
  type NameTaken,
  RestartIntensityExceeded,
  SpawnError,
  withoutStack,
} from "../actors/kernel/errors.ts"
import { startFailed } from "../actors/kernel/kernel.ts"
import { ask } from "../actors/kernel/operations.ts"
import type { ActorRef, ReplyTo } from "../actors/kernel/ref.ts"
import { type Intensity, intensityOf, RestartWindow, shouldRestart } from "../actors/kernel/restart.ts"
import { DEAD, DOWN } from "../actors/kernel/status.ts"
import type { StopReason } from "../actors/kernel/stop-reason.ts"
import { bringUp, type SupervisedChild, takeDown } from "./child.ts"
import { affected, type Strategy } from "./strategy.ts"

export interface SupervisorOptions<R> extends Partial<Intensity> {
  readonly name?: string
  /** Default `one_for_one`. */
  readonly strategy?: Strategy
  /** In order of start. */
  readonly children: ReadonlyArray<SupervisedChild<R>>
}

export interface ChildInfo {
  readonly id: string
  /** Null when the child is gone. */
  readonly ref: ActorRef<never> | null
}

export interface SupervisorMessage {
  readonly _tag: "Children"
  readonly reply: ReplyTo<ReadonlyArray<ChildInfo>>
}

export interface Entry {
  readonly definition: SupervisedChild<unknown>
  cell: Cell | null
}

export interface SupervisorState {
  readonly entries: ReadonlyArray<Entry>
  readonly window: RestartWindow
  readonly strategy: Strategy
  readonly intensity: Intensity
}

/**
 * Throws a RangeError where the options make no sense. `init` starts the children in order; one that does not come up within the
 * intensity fails it, after the children before it were stopped.
 */
export const supervisor = <R = never>(
  options: SupervisorOptions<R>,
): Behavior<SupervisorState, SupervisorMessage, R> => {
  const { children, strategy = "one_for_one", name = "supervisor" } = options
  const intensity = intensityOf(options)
  checkIds(children)
  return {
    kind: "supervisor",
    name,
    init: (self) => {
      const cell = cellOf(self.ref)
      const entries = children.map((definition): Entry => ({ definition, cell: null }))
      const state = { entries, window: new RestartWindow(), strategy, intensity }
      return Effect.as(
        Effect.forEach(entries, (entry) => start(cell, state, entry), { discard: true }),
        state,
      )
    },
    receive: (state, message) =>
      Effect.sync(() => {
        message.reply.succeed(state.entries.map(({ definition, cell }) => ({ id: definition.id, ref: cell })))
        return state
      }),
    describe: (state) => state.strategy,
    hooks: {
      childEnded: (parent, child, reason) => parent.force(new ChildEnded(child, reason)),
      refuse: () => "fixed_children",
    },
  }
}

/** The children of a supervisor, in order of start. Waits for a restart in progress. */
export const childrenOf = (
  ref: ActorRef<SupervisorMessage>,
): Effect.Effect<ReadonlyArray<ChildInfo>, ActorDown | AskTimeout> =>
  ask(ref, (reply: ReplyTo<ReadonlyArray<ChildInfo>>): SupervisorMessage => ({ _tag: "Children", reply }))

/** A child's end, as mail to its supervisor. */
class ChildEnded extends Envelope {
  readonly child: Cell
  readonly reason: StopReason

  constructor(child: Cell, reason: StopReason) {
    super()
    this.child = child
    this.reason = reason
  }

  deliver(cell: Cell): Effect.Effect<unknown, unknown> | null {
    // The behavior that receives this envelope made its state.
    const state = cell.state as SupervisorState
    const index = state.entries.findIndex((entry) => entry.cell === this.child)
    const entry = state.entries[index]
    if (entry === undefined) return null
    if (this.child.alive && this.child.status !== DOWN) return null // restarted meanwhile
    if (this.child.status !== DOWN || !shouldRestart(this.child.spec.restart, this.reason)) {
      bury(this.child, this.reason)
      entry.cell = null
      return null
    }
    return restart(state, index, this.reason)
  }
}

type Step = Effect.Effect<SupervisorState, RestartIntensityExceeded>

/** Counts a restart and applies the strategy. Done at once where nothing has to be waited for. */
const restart = (state: SupervisorState, failed: number, reason: StopReason): Step => {
  const cell = state.entries[failed]?.cell ?? null
  if (cell === null) return Effect.succeed(state)
  if (!state.window.admit(cell.kernel.timers.now(), state.intensity)) return escalate(state, cell, reason)
  const range = affected(state.strategy, state.entries.length, failed)
  if (range.length === 1) return startAll(state, range, 0)
  const stops = Effect.forEach(range.toReversed(), (index) => stop(state, index), { discard: true })
  return Effect.zipRight(
    stops,
    Effect.suspend(() => startAll(state, range, 0)),
  )
}

/** Starts the DOWN children of `range` in order; one that does not come up is a failed child again, one that was stopped is gone. */
const startAll = (state: SupervisorState, range: ReadonlyArray<number>, from: number): Step => {
  const index = range[from]
  if (index === undefined) return Effect.succeed(state)
  const cell = state.entries[index]?.cell ?? null
  if (cell === null || cell.status !== DOWN) return startAll(state, range, from + 1)
  cell.extras.restarts++
  return chain(bringUp(cell), (why) =>
    why === null || cell.status === DEAD ? startAll(state, range, from + 1) : retry(state, index, why),
  )
}

/** In its own turn, so that a child that never comes up does not hold the others' turns. */
const retry = (state: SupervisorState, index: number, reason: StopReason): Step =>
  Effect.zipRight(
    Effect.yieldNow(),
    Effect.suspend(() => restart(state, index, reason)),
  )

/** A temporary child does not come back. */
const stop = (state: SupervisorState, index: number): Effect.Effect<void> => {
  const entry = state.entries[index]
  if (entry === undefined || entry.cell === null) return Effect.void
  const { cell } = entry
  const final = cell.spec.restart === "temporary"
  if (final) entry.cell = null
  return takeDown(cell, final)
}

const escalate = (state: SupervisorState, cell: Cell, reason: StopReason): Step => {
  const cause = reason._tag === "Crashed" ? reason.cause : null
  return Effect.fail(withoutStack(() => new RestartIntensityExceeded({ child: cell.path, ...state.intensity, cause })))
}

/** The first start of a child: as often as the intensity allows. */
const start = (parent: Cell, state: SupervisorState, entry: Entry): Effect.Effect<void, SpawnError | NameTaken> =>
  Effect.suspend(() => {
    const { behavior, id, register, restart = "permanent", shutdownMs } = entry.definition
    const spec = { restart, ...(shutdownMs === undefined ? {} : { shutdownMs }), ...state.intensity }
    const cell = parent.kernel.newCell(behavior, parent, { name: id, childSpec: spec }, parent.env)
    if (cell instanceof SpawnError) return Effect.fail(cell)
    entry.cell = cell
    const named = register === undefined ? Effect.void : parent.kernel.registry.register(register, cell)
    return Effect.zipRight(named, firstTry(state, cell))
  })

const firstTry = (state: SupervisorState, cell: Cell): Effect.Effect<void, SpawnError> =>
  chain(bringUp(cell), (why) => {
    if (why === null) return Effect.void
    if (cell.status !== DOWN || !state.window.admit(cell.kernel.timers.now(), state.intensity)) {
      return Effect.fail(startFailed(cell, why))
    }
    cell.extras.restarts++
    return Effect.zipRight(
      Effect.yieldNow(),
      Effect.suspend(() => firstTry(state, cell)),
    )
  })

const checkIds = (children: ReadonlyArray<SupervisedChild<unknown>>): void => {
  const ids = new Set<string>()
  children.forEach(({ id }, index) => {
    if (!nameShape.test(id))
      throw new RangeError(`children[${index}].id: expected a name without "/", got ${JSON.stringify(id)}`)
    if (ids.has(id))
      throw new RangeError(`children[${index}].id: expected a unique id, got ${JSON.stringify(id)} twice`)
    ids.add(id)
  })
}
