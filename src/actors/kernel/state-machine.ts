/**
 * A state machine as an actor: named states, postponed messages, enter effects, state timeouts and named timeouts, as OTP's
 * gen_statem. Rules K40 to K45 of docs/kernel.md.
 *
 * A transition takes effect as a whole: enter effect first, then at once the new state, its timeouts, the actions, and the postponed
 * messages back in front of the mailbox. A failed enter effect leaves the old state (and crashes the machine).
 */
import { Effect } from "effect"
import { Ask } from "./ask.ts"
import { type ActorContext, type Behavior, type BehaviorSpec, behavior } from "./behavior.ts"
import { type Cell, cellOf } from "./cell.ts"
import { chain } from "./effect-internals.ts"
import { DownNotice, Envelope, Letter, Timeout } from "./envelope.ts"
import { PostponeOverflow } from "./errors.ts"
import { endSelf } from "./lifecycle.ts"
import type { Down } from "./ref.ts"
import { normal, type StopReason } from "./stop-reason.ts"
import type { Action, Transition } from "./transition.ts"

type Outcome<A, R> = Effect.Effect<A, unknown, R>

export interface MachineStart<State extends string, Data, M> {
  readonly state: State
  readonly data: Data
  readonly actions?: ReadonlyArray<Action<M>>
}

export interface MachineSpec<Data, M, State extends string, R> {
  readonly name?: string
  readonly capacity?: number
  readonly init: (self: ActorContext<M>) => MachineStart<State, Data, M> | Outcome<MachineStart<State, Data, M>, R>
  readonly handle: (
    state: State,
    message: M,
    data: Data,
    self: ActorContext<M>,
  ) => Outcome<Transition<State, Data, M>, R>
  /** Runs on entering a state, the first one included, and gives the data to go on with. `from` is null at the start. */
  readonly onEnter?: {
    readonly [S in State]?: (data: Data, self: ActorContext<M>, from: State | null) => Outcome<Data, R>
  }
  /** Started on entering the state, cancelled on leaving it. */
  readonly stateTimeouts?: { readonly [S in State]?: { readonly ms: number; readonly message: M } }
  readonly onDown?: (
    state: State,
    down: Down,
    data: Data,
    self: ActorContext<M>,
  ) => Outcome<Transition<State, Data, M>, R>
  readonly onStop?: (
    state: State,
    reason: StopReason,
    data: Data,
    self: ActorContext<M>,
  ) => Effect.Effect<void, never, R>
  /** What the live tree shows; default the state's name. */
  readonly describe?: (state: State, data: Data) => string
}

/** The actor state of a machine. */
export class Machine<State extends string, Data> {
  state: State
  data: Data
  /** Mailbox items, oldest first. */
  postponed: Array<unknown> = []
  stateTimer: Timer | null = null
  readonly timers = new Map<string, Timer>()

  constructor(state: State, data: Data) {
    this.state = state
    this.data = data
  }
}

interface Timer {
  readonly notice: Timeout
  readonly cancel: () => void
}

export const stateMachine = <Data, M, State extends string, R = never>(
  spec: MachineSpec<Data, M, State, R>,
): Behavior<Machine<State, Data>, M, R> => {
  type Self = Machine<State, Data>

  const settle = (machine: Self, change: Transition<State, Data, M>, self: ActorContext<M>): Outcome<Self, R> => {
    const cell = cellOf(self.ref)
    switch (change._tag) {
      case "Keep":
        machine.data = change.data
        perform(machine, cell, change.actions)
        return Effect.succeed(machine)
      case "Next": {
        if (change.state !== machine.state) return move(machine, change, self, machine.state)
        machine.data = change.data
        perform(machine, cell, change.actions)
        return Effect.succeed(machine)
      }
      case "Postpone":
        return keepForLater(machine, cell) ? Effect.succeed(machine) : overflow(machine, cell)
      case "Stop":
        endSelf(cell, change.reason ?? normal)
        return Effect.succeed(machine)
    }
  }

  const move = (
    machine: Self,
    to: MachineStart<State, Data, M>,
    self: ActorContext<M>,
    from: State | null,
  ): Outcome<Self, R> => {
    const enter = spec.onEnter?.[to.state]
    if (enter === undefined) return Effect.succeed(commit(machine, to, to.data, self))
    return chain(enter(to.data, self, from), (data) => Effect.succeed(commit(machine, to, data, self)))
  }

  const commit = (machine: Self, to: MachineStart<State, Data, M>, data: Data, self: ActorContext<M>): Self => {
    const cell = cellOf(self.ref)
    cancel(machine.stateTimer)
    machine.stateTimer = null
    machine.state = to.state
    machine.data = data
    const declared = spec.stateTimeouts?.[to.state]
    if (declared !== undefined) machine.stateTimer = start(cell, declared.ms, declared.message)
    const kept = machine.postponed
    machine.postponed = []
    cell.requeueFirst(kept)
    perform(machine, cell, to.actions ?? [])
    return machine
  }

  const { onDown, onStop } = spec
  const parts: BehaviorSpec<Self, M, R> = {
    name: spec.name ?? "machine",
    ...(spec.capacity === undefined ? {} : { capacity: spec.capacity }),
    init: (self) => {
      const enter = (first: MachineStart<State, Data, M>) =>
        move(new Machine(first.state, first.data), first, self, null)
      const first = spec.init(self)
      return Effect.isEffect(first) ? chain(first, enter) : enter(first)
    },
    receive: (machine, message, self) =>
      chain(spec.handle(machine.state, message, machine.data, self), (change) => settle(machine, change, self)),
    ...(onDown === undefined
      ? {}
      : {
          onDown: (machine: Self, down: Down, self: ActorContext<M>) =>
            chain(onDown(machine.state, down, machine.data, self), (change) => settle(machine, change, self)),
        }),
    ...(onStop === undefined
      ? {}
      : {
          onStop: (machine: Self, reason: StopReason, self: ActorContext<M>) =>
            onStop(machine.state, reason, machine.data, self),
        }),
    describe: (machine) => spec.describe?.(machine.state, machine.data) ?? machine.state,
  }
  return { ...behavior(parts), kind: "machine", hooks: { ended: release } }
}

const perform = <M>(machine: Machine<string, unknown>, cell: Cell, actions: ReadonlyArray<Action<M>>): void => {
  const events: Array<unknown> = []
  for (const action of actions) {
    switch (action._tag) {
      case "StateTimeout":
        cancel(machine.stateTimer)
        machine.stateTimer = start(cell, action.ms, action.message)
        break
      case "Timeout":
        cancel(machine.timers.get(action.name))
        machine.timers.set(action.name, start(cell, action.ms, action.message))
        break
      case "CancelTimeout":
        cancel(machine.timers.get(action.name))
        machine.timers.delete(action.name)
        break
      case "NextEvent":
        events.push(action.message instanceof Envelope ? new Letter(action.message, undefined) : action.message)
        break
    }
  }
  cell.requeueFirst(events)
}

const start = (cell: Cell, ms: number, message: unknown): Timer => {
  const notice = new Timeout(message)
  return { notice, cancel: cell.kernel.timers.after(ms, () => cell.alive && cell.force(notice)) }
}

const cancel = (timer: Timer | null | undefined): void => {
  if (timer === null || timer === undefined) return
  timer.notice.live = false
  timer.cancel()
}

/** False when as many are kept as the mailbox may hold. */
const keepForLater = (machine: Machine<string, unknown>, cell: Cell): boolean => {
  const item = cell.current
  if (machine.postponed.length >= cell.capacity) return false
  if (item instanceof Ask) item.taken = false
  else if (item instanceof DownNotice) cell.extras.watching?.add(item.watched)
  machine.postponed.push(item instanceof Timeout ? new Letter(item.message, undefined) : item)
  return true
}

const overflow = (machine: Machine<string, unknown>, cell: Cell) =>
  Effect.fail(new PostponeOverflow({ path: cell.path, state: machine.state, capacity: cell.capacity }))

/** The incarnation is over: no timeout reaches the next one, postponed mail does. */
const release = (cell: Cell): void => {
  if (!(cell.state instanceof Machine)) return
  cancel(cell.state.stateTimer)
  for (const timer of cell.state.timers.values()) cancel(timer)
  cell.state.timers.clear()
  cell.requeueFirst(cell.state.postponed)
  cell.state.postponed = []
}
