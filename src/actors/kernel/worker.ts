/**
 * A worker is a fiber that runs the handlers of one actor after another. It borrows a cell (RUNNING) until the cell has no mail, its
 * budget is used up, or its end was asked for. A handler that is done at once is not run through the fiber at all; a handler that
 * suspends suspends this worker, and the run queue goes on with another.
 *
 * The fiber ends, and a fresh one takes its place later, when a handler left children behind (they end with it), was interrupted, or
 * changed the fiber's flags. Rules K1 to K9 of docs/kernel.md.
 */
import { Cause, Effect, type Exit, type RuntimeFlags } from "effect"
import type { Cell } from "./cell.ts"
import {
  type AnyFiber,
  fiberRefsOf,
  hasChildren,
  instruction,
  isExit,
  runtimeFlagsOf,
  setFiberRefs,
  wait,
} from "./effect-internals.ts"
import { Envelope, type Handling } from "./envelope.ts"
import { InPlace } from "./in-place.ts"
import type { Kernel } from "./kernel.ts"
import { handlerEnded, handlerFailed, handlerLeft } from "./lifecycle.ts"
import { IDLE, QUEUED, RUNNING } from "./status.ts"

/** Messages of one actor before the next one has its turn. */
const BUDGET = 127
/** How many messages share one reading of the time (a power of two less one). */
const CLOCK_EVERY = 15

export class Worker {
  fiber: AnyFiber | null = null
  /** The mail whose handler is running; undefined between handlers. */
  item: unknown = undefined
  /** Wakes a parked worker. */
  wake: ((effect: Effect.Effect<void>) => void) | null = null
  private readonly kernel: Kernel
  private cell: Cell | null = null
  /** What the fiber does next: park, or the rest of a handler. */
  private parks = false
  private left = 0
  private flags: RuntimeFlags.RuntimeFlags | null = null
  private inPlace: InPlace | null = null
  private doomed = false
  /** The fiber is to end. */
  private over = false
  /** Why the last handler failed, when its children have to end first. */
  private failure: Cause.Cause<unknown> | null = null
  readonly loop: Effect.Effect<void, unknown>
  private readonly park: Effect.Effect<void>

  constructor(kernel: Kernel) {
    this.kernel = kernel
    this.park = wait<void, never>((resume) => {
      this.wake = resume
      kernel.parked(this)
    })
    const enter = Effect.withFiberRuntime<void>((fiber) => {
      this.fiber = fiber
      this.flags = runtimeFlagsOf(fiber)
      this.inPlace = new InPlace(fiber, this.flags)
      return Effect.void
    })
    const turns = Effect.whileLoop<unknown, unknown, never>({
      while: () => this.advance(),
      body: () => (this.parks ? this.park : (this.inPlace?.handOver() ?? Effect.void)),
      step: (state) => this.handled(state),
    })
    // One catch around many turns: a handler that fails costs the others nothing, and not the fiber.
    const guarded = Effect.catchAllCause(turns, (cause) => this.failed(cause))
    const rounds = Effect.whileLoop({ while: () => !this.over, body: () => guarded, step: () => {} })
    this.loop = Effect.zipRight(enter, rounds)
  }

  /** Interrupts the handler in progress; the fiber does nothing else afterwards. */
  doom(): void {
    if (this.doomed || this.fiber === null) return
    this.doomed = true
    this.fiber.unsafeInterruptAsFork(this.fiber.id())
  }

  /** The fiber has ended. */
  ended(exit: Exit.Exit<unknown, unknown>): void {
    const { cell, item } = this
    this.cell = null
    this.item = undefined
    if (cell === null) return
    if (this.failure === null) handlerEnded(cell, item, exit)
    else handlerFailed(cell, item, this.failure)
  }

  private failed(cause: Cause.Cause<unknown>): Effect.Effect<void> {
    if (this.fiber !== null && hasChildren(this.fiber)) {
      this.failure = cause
      this.over = true
    } else {
      this.letFail(cause)
    }
    return Effect.void
  }

  private handled(state: unknown): void {
    if (this.cell !== null) this.cell.state = state
    this.item = undefined
  }

  /** Picks the next handler that needs this fiber; false ends the fiber. */
  private advance(): boolean {
    const { fiber, inPlace, kernel } = this
    this.parks = false
    if (fiber === null || inPlace === null) return this.end()
    for (;;) {
      if (this.doomed || hasChildren(fiber) || runtimeFlagsOf(fiber) !== this.flags) return this.end()
      const cell = this.cell ?? this.borrow()
      if (cell === null) return this.rest()
      if (cell.status !== RUNNING) {
        this.cell = null
        handlerLeft(cell)
        continue
      }
      if (!cell.hasMail) {
        cell.status = IDLE
        this.release(cell)
        continue
      }
      if (--this.left < 0 || ((this.left & CLOCK_EVERY) === 0 && kernel.sliceOver())) {
        cell.status = QUEUED
        this.release(cell)
        kernel.post(cell)
        continue
      }
      const item = cell.take()
      this.item = item
      if (fiberRefsOf(fiber) !== cell.env) setFiberRefs(fiber, cell.env)
      let handling: Handling | null
      try {
        handling = item instanceof Envelope ? item.deliver(cell) : cell.behavior.receive(cell.state, item, cell)
      } catch (defect) {
        this.letFail(Cause.die(defect))
        continue
      }
      if (handling === null) {
        this.item = undefined
        continue
      }
      let exit: Handling | null = handling
      if (!isExit(handling)) {
        exit = inPlace.run(handling)
        if (exit === null) return true
      }
      if (instruction(exit)._op === "Success") {
        cell.state = instruction(exit).value
        this.item = undefined
      } else {
        this.letFail(instruction(exit).cause)
      }
    }
  }

  private letFail(cause: Cause.Cause<unknown>): void {
    const { cell, item } = this
    this.cell = null
    this.item = undefined
    if (cell !== null) handlerFailed(cell, item, cause)
  }

  private borrow(): Cell | null {
    const cell = this.kernel.take(this)
    if (cell === null) return null
    cell.status = RUNNING
    cell.worker = this
    this.cell = cell
    this.left = BUDGET
    return cell
  }

  private release(cell: Cell): void {
    cell.worker = null
    this.cell = null
  }

  private end(): boolean {
    this.over = true
    return false
  }

  /** No work for this worker: it parks, or ends where enough are parked. */
  private rest(): boolean {
    if (!this.kernel.mayPark()) return this.end()
    this.parks = true
    return true
  }
}
