/**
 * How an actor starts, ends and comes back. Long because these three are one recursion: an end starts, a start may end. The only place
 * that moves a cell's status, but for IDLE → QUEUED → RUNNING and the final DEAD (burial.ts).
 *
 *   launch ─ init ok ──────────────────────────────→ up (IDLE or QUEUED)
 *      └──── init fails ┐
 *   crash, endSelf, halt ┴→ wind down: handler ends, children stop (newest first), onStop, scope
 *                             ├─ STOPPING → DOWN → the parent decides → launch | bury
 *                             └─ CLOSING ─────────→ bury
 *
 * Rules K10 to K34 of docs/kernel.md.
 */
import { Cause, Effect, Exit } from "effect"
import { Ask } from "./ask.ts"
import { bury, failAsks, recordCrash } from "./burial.ts"
import type { Cell } from "./cell.ts"
import { type AnyFiber, instruction } from "./effect-internals.ts"
import { RestartIntensityExceeded, withoutStack } from "./errors.ts"
import { RestartWindow, shouldRestart } from "./restart.ts"
import { CLOSING, DEAD, DOWN, IDLE, QUEUED, RUNNING, STARTING, STOPPING, type Status, UNBORN } from "./status.ts"
import { crashed, type StopReason, shutdown } from "./stop-reason.ts"

/** Who waits for a cell to be up. */
export interface Starting {
  /** A supervisor's handler decides about a failed start itself; otherwise the parent's policy does. */
  readonly supervised: boolean
  readonly up: () => void
  readonly failed: (reason: StopReason) => void
}

/** A stop in progress. */
export interface Ending {
  reason: StopReason
  /** Whoever asked goes on by itself: the parent's policy is not consulted. */
  readonly quiet: boolean
  readonly done: Array<() => void>
  cancelDeadline: (() => void) | null
}

// ---- start ----------------------------------------------------------------------------------------------------------

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

const interruptInit = (cell: Cell): void => {
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
const resume = (cell: Cell): void => {
  if (cell.hasMail) {
    cell.status = QUEUED
    cell.kernel.post(cell)
  } else {
    cell.status = IDLE
  }
}

/** Runs a step of the cell's life in a fiber of its own, with the cell's services. Gives the fiber if it has not ended yet. */
const runAside = (
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

// ---- end ------------------------------------------------------------------------------------------------------------

/** A worker is done with the cell's handler because its fiber has ended. */
export const handlerEnded = (cell: Cell, item: unknown, exit: Exit.Exit<unknown, unknown>): void => {
  cell.worker = null
  if (Exit.isSuccess(exit)) {
    cell.status === RUNNING ? resume(cell) : windDown(cell)
    return
  }
  handlerFailed(cell, item, exit.cause)
}

/** A handler failed. Its message is not delivered again, and its asker learns the cause (K12). */
export const handlerFailed = (cell: Cell, item: unknown, cause: Cause.Cause<unknown>): void => {
  cell.worker = null
  const stopping = cell.status !== RUNNING
  if (item instanceof Ask) item.down(stopping && Cause.isInterruptedOnly(cause) ? endReason(cell) : crashed(cause))
  if (!stopping) {
    crash(cell, cause)
    return
  }
  if (!Cause.isInterruptedOnly(cause)) recordCrash(cell, cause)
  windDown(cell)
}

/** The worker has let go of a cell whose stop was requested while the handler ran. */
export const handlerLeft = (cell: Cell): void => {
  cell.worker = null
  windDown(cell)
}

/** Ends the incarnation as crashed. The parent decides whether there is a next one. */
export const crash = (cell: Cell, cause: Cause.Cause<unknown>): void => {
  recordCrash(cell, cause)
  end(cell, STOPPING, { reason: crashed(cause), quiet: false, done: [], cancelDeadline: null }, true)
}

/** The actor asked for its own end. */
export const endSelf = (cell: Cell, reason: StopReason): void => {
  if (cell.status >= STOPPING) return
  if (reason._tag === "Crashed") recordCrash(cell, reason.cause)
  const final = !shouldRestart(cell.spec.restart, reason)
  const ending: Ending = { reason, quiet: false, done: [], cancelDeadline: null }
  const { shutdownMs } = cell.spec
  // The handler that asked may end by itself, at the latest when it waits.
  end(cell, final ? CLOSING : STOPPING, ending, false, shutdownMs > 0 ? shutdownMs : Number.POSITIVE_INFINITY)
  if (shutdownMs > 0 || cell.worker === null) return
  cell.kernel.post(() => {
    if (cell.hasExtras?.ending === ending) cell.worker?.doom()
  })
}

/**
 * Stops a cell from outside. `final`: for good; otherwise it stays DOWN with its mail until launched again. `done` is called when
 * that point is reached, at once when it has been.
 */
export const halt = (
  cell: Cell,
  options: {
    readonly final: boolean
    readonly reason?: StopReason
    readonly quiet?: boolean
    readonly shutdownMs?: number
  },
  done: () => void = () => {},
): void => {
  const { final, reason = shutdown, quiet = false, shutdownMs = cell.spec.shutdownMs } = options
  const { status } = cell
  if (status === DEAD) {
    done()
    return
  }
  if (status === DOWN) {
    if (final) {
      bury(cell, reason)
      if (!quiet) parentDecides(cell, reason)
    }
    done()
    return
  }
  if (status < STOPPING) {
    end(cell, final ? CLOSING : STOPPING, { reason, quiet, done: [done], cancelDeadline: null }, false, shutdownMs)
    return
  }
  const { ending } = cell.extras
  if (final) cell.status = CLOSING
  if (ending === null) {
    done() // unreachable: STOPPING and CLOSING always have one
    return
  }
  ending.done.push(done)
  if (cell.worker !== null && shutdownMs < cell.spec.shutdownMs) interruptWithin(cell, ending, shutdownMs)
}

const end = (
  cell: Cell,
  status: Status,
  ending: Ending,
  interrupt: boolean,
  shutdownMs = cell.spec.shutdownMs,
): void => {
  const { extras } = cell
  const before = cell.status
  cell.status = status
  extras.ending = ending
  if (cell.worker !== null) {
    // A supervisor's handler only starts and stops children, which the end does anyway.
    interruptWithin(cell, ending, interrupt || cell.behavior.kind === "supervisor" ? 0 : shutdownMs)
    return
  }
  if (before === STARTING) {
    interruptInit(cell) // the end of init goes on
    return
  }
  windDown(cell)
}

const interruptWithin = (cell: Cell, ending: Ending, ms: number): void => {
  ending.cancelDeadline?.()
  ending.cancelDeadline = null
  if (ms <= 0) cell.worker?.doom()
  else ending.cancelDeadline = cell.kernel.timers.after(ms, () => cell.worker?.doom())
}

const endReason = (cell: Cell): StopReason => cell.hasExtras?.ending?.reason ?? shutdown

/** No handler runs any more: children, onStop, scope; then DOWN or DEAD. */
const windDown = (cell: Cell): void => {
  const extras = cell.extras
  const ending = extras.ending
  if (ending === null) return
  ending.cancelDeadline?.()
  ending.cancelDeadline = null
  const onStop = cell.behavior.onStop !== undefined && cell.state !== UNBORN && cell.spec.shutdownMs > 0
  if (cell.child === null && !onStop && extras.scope === null) {
    wound(cell, ending)
    return
  }
  runAside(cell, goodbye(cell, ending, onStop), () => wound(cell, ending))
}

const goodbye = (cell: Cell, ending: Ending, withOnStop: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let child = cell.child; child !== null; child = cell.child) {
      const newest = child
      yield* Effect.async<void>((resume) => halt(newest, { final: true, quiet: true }, () => resume(Effect.void)))
    }
    if (withOnStop)
      yield* bounded(
        cell,
        Effect.suspend(() => cell.behavior.onStop?.(cell.state, ending.reason, cell) ?? Effect.void),
      )
    const exit = ending.reason._tag === "Crashed" ? Exit.failCause(ending.reason.cause) : Exit.void
    yield* bounded(cell, cell.closeScope(exit))
  })

/** A step of the end must neither fail it nor hold it longer than the shutdown deadline. */
const bounded = (cell: Cell, step: Effect.Effect<void>): Effect.Effect<void> => {
  const { shutdownMs } = cell.spec
  const guarded = Effect.catchAllCause(step, (cause) => Effect.sync(() => recordCrash(cell, cause)))
  if (shutdownMs === Number.POSITIVE_INFINITY) return guarded
  return Effect.raceFirst(guarded, cell.kernel.sleep(shutdownMs))
}

const wound = (cell: Cell, ending: Ending): void => {
  const { extras } = cell
  extras.ending = null
  if (cell.state !== UNBORN) {
    extras.wasUp = true
    cell.behavior.hooks?.ended?.(cell)
  }
  failAsks(cell, ending.reason, true)
  const { starting } = extras
  if (cell.status === CLOSING) {
    bury(cell, ending.reason)
    if (!ending.quiet) parentDecides(cell, ending.reason)
  } else {
    cell.status = DOWN
    if (starting?.supervised) {
      extras.starting = null
      starting.failed(ending.reason)
    } else if (!ending.quiet) {
      parentDecides(cell, ending.reason)
    }
  }
  for (const done of ending.done) done()
}

// ---- the parent's part ----------------------------------------------------------------------------------------------

const parentDecides = (child: Cell, reason: StopReason): void => {
  const { parent } = child
  if (parent === null || parent.status >= STOPPING) return // it stops its children anyway
  const childEnded = parent.behavior.hooks?.childEnded
  if (childEnded !== undefined) childEnded(parent, child, reason)
  else if (child.status === DOWN) restartOrBury(parent, child, reason)
}

/** What an ordinary actor does about a child: its spec alone decides; too many restarts crash the parent (K33). */
const restartOrBury = (parent: Cell, child: Cell, reason: StopReason): void => {
  const { kernel, spec } = child
  if (!shouldRestart(spec.restart, reason)) {
    bury(child, reason)
    return
  }
  const { extras } = child
  extras.window ??= new RestartWindow()
  if (extras.window.admit(kernel.timers.now(), spec)) {
    relaunch(child)
    return
  }
  const neverUp = !extras.wasUp
  const cause = reason._tag === "Crashed" ? reason.cause : null
  bury(child, reason)
  if (neverUp || parent.parent === null) return // the spawner learns it; the guardian outlives its children
  crash(
    parent,
    Cause.fail(withoutStack(() => new RestartIntensityExceeded({ child: child.path, ...limitsOf(child), cause }))),
  )
}

const limitsOf = ({ spec }: Cell) => ({ maxRestarts: spec.maxRestarts, withinMs: spec.withinMs })

/** Counts a restart and starts the next incarnation; in its own turn when `init` itself failed, so that a loop yields. */
export const relaunch = (child: Cell): void => {
  const { extras } = child
  extras.restarts++
  if (child.state !== UNBORN) {
    launch(child, null)
    return
  }
  child.kernel.post(() => {
    if (child.status === DOWN) launch(child, null)
  })
}
