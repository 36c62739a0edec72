/**
 * How an incarnation of an actor starts. `launch` calls `init`, in a fiber of its own where it takes its time; then the actor is up, or
 * has crashed (which counts like any other crash), or was stopped meanwhile. Rules K10 to K14 of docs/kernel.md.
 */
import { Cause, Effect, Exit } from "effect"
import { recordCrash } from "./burial.ts"
import type { Cell } from "./cell.ts"
import { type AnyFiber, instruction } from "./effect-internals.ts"
import { windDown } from "./end.ts"
import { IDLE, QUEUED, STARTING, STOPPING, UNBORN } from "./status.ts"
import { crashed, type StopReason } from "./stop-reason.ts"

/** Who waits for a cell to be up. */
export interface Starting {
  /** A supervisor's handler decides about a failed start itself; otherwise the parent's policy does. */
  readonly supervised: boolean
  readonly up: () => void
  readonly failed: (reason: StopReason) => void
}

/** Starts an incarnation of a cell that is new or DOWN. */
export const launch = (cell: Cell, starting: Starting | null): void => {
  cell.status = STARTING
  cell.state = UNBORN
  if (starting !== null) cell.extras.starting = starting
  let state: unknown
  try {
    state = cell.behavior.init(cell)
  } catch (defect) {
    initFailed(cell, Cause.die(defect))
    return
  }
  if (!Effect.isEffect(state)) {
    up(cell, state)
    return
  }
  // The behavior's own type says that an Effect here gives the state.
  const init = state as Effect.Effect<unknown, unknown>
  if (instruction(init)._op === "Success") {
    up(cell, instruction(init).value)
    return
  }
  const { extras } = cell
  extras.init = runAside(cell, init, (exit) => {
    extras.init = null
    if (Exit.isSuccess(exit)) up(cell, exit.value)
    else initFailed(cell, exit.cause)
  })
  if (cell.status !== STARTING) interruptInit(cell) // stopped from inside its own init
}

export const interruptInit = (cell: Cell): void => {
  const fiber = cell.hasExtras?.init ?? null
  if (fiber !== null) fiber.unsafeInterruptAsFork(fiber.id())
}

const up = (cell: Cell, state: unknown): void => {
  cell.state = state
  const starting = cell.hasExtras?.starting ?? null
  if (cell.status !== STARTING) {
    windDown(cell) // stopped during init
    return
  }
  resume(cell)
  if (starting !== null) {
    cell.extras.starting = null
    starting.up()
  }
}

const initFailed = (cell: Cell, cause: Cause.Cause<unknown>): void => {
  if (cell.status !== STARTING) {
    windDown(cell)
    return
  }
  recordCrash(cell, cause)
  cell.status = STOPPING
  cell.extras.ending = { reason: crashed(cause), quiet: false, done: [], cancelDeadline: null }
  windDown(cell)
}

/** Back to work, or to rest. */
export const resume = (cell: Cell): void => {
  if (cell.hasMail) {
    cell.status = QUEUED
    cell.kernel.post(cell)
  } else {
    cell.status = IDLE
  }
}

/** Runs a step of the cell's life in a fiber of its own, with the cell's services. Gives the fiber if it has not ended yet. */
export const runAside = (
  cell: Cell,
  effect: Effect.Effect<unknown, unknown>,
  then: (exit: Exit.Exit<unknown, unknown>) => void,
): AnyFiber | null => {
  const fiber = cell.kernel.fork(effect, cell.env)
  const exit = fiber.unsafePoll()
  if (exit === null) fiber.addObserver(then)
  else then(exit)
  return exit === null ? fiber : null
}
