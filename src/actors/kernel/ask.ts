/**
 * One ask: the message's envelope, the reply port and the deadline in one object.
 *
 * An ask is open from its making until the first of: reply, deadline, end of the actor. While open it is
 * in the list of its actor (so that the actor's end fails it) and in its system's deadlines. After that every reply gives false.
 */
import { Cause, Effect, type Tracer } from "effect"
import type { Cell } from "./cell.ts"
import type { DeadlineList } from "./deadlines.ts"
import { type AnyFiber, isInterruptible, spanOf, wasInterrupted } from "./effect-internals.ts"
import { Envelope, type Handling, underSpan } from "./envelope.ts"
import { ActorDown, AskTimeout, withoutStack } from "./errors.ts"
import type { ReplyTo } from "./ref.ts"
import type { StopReason } from "./stop-reason.ts"

export type Resume = (outcome: Effect.Effect<unknown, unknown>) => void

export class Ask extends Envelope implements ReplyTo<unknown, unknown> {
  message: unknown = undefined
  open = true
  /** Handed to a handler: it does not survive a restart, as the state that would have answered it is lost. */
  taken = false
  /** The list of the target's open asks. */
  before: Ask | null = null
  after: Ask | null = null
  /** The deadline list; owned by deadlines.ts. */
  list: DeadlineList | null = null
  earlier: Ask | null = null
  later: Ask | null = null
  deadline = 0
  cancelTimer: (() => void) | null = null

  readonly target: Cell
  readonly span: Tracer.AnySpan | undefined
  readonly timeoutMs: number
  private readonly asker: AnyFiber
  /** An interruption of the asker ends its wait. */
  private readonly interruptible: boolean
  private readonly resume: Resume

  constructor(target: Cell, asker: AnyFiber, resume: Resume, timeoutMs: number) {
    super()
    this.target = target
    this.asker = asker
    this.interruptible = isInterruptible(asker)
    this.span = spanOf(asker)
    this.resume = resume
    this.timeoutMs = timeoutMs
  }

  deliver(cell: Cell): Handling {
    this.taken = true
    return underSpan(cell.behavior.receive(cell.state, this.message, cell), this.span)
  }

  /** Joins the target's list. */
  link(): void {
    const { target } = this
    this.after = target.asks
    if (target.asks !== null) target.asks.before = this
    target.asks = this
  }

  /** True the first time. */
  close(): boolean {
    if (!this.open) return false
    this.open = false
    if (this.before !== null) this.before.after = this.after
    else if (this.target.asks === this) this.target.asks = this.after
    if (this.after !== null) this.after.before = this.before
    this.before = this.after = null
    if (this.list !== null) this.list.remove(this)
    if (this.cancelTimer !== null) this.cancelTimer()
    return true
  }

  /**
   * Whether somebody still waits for the outcome. An interrupted asker is seen here and not told by an interrupt handler: that would
   * double the cost of every ask.
   */
  get wanted(): boolean {
    return this.open && !(this.interruptible && wasInterrupted(this.asker))
  }

  succeed(value: unknown): boolean {
    return this.answer(Effect.succeed(value))
  }

  fail(error: unknown): boolean {
    return this.answer(Effect.fail(error))
  }

  die(defect: unknown): boolean {
    return this.answer(Effect.failCause(Cause.die(defect)))
  }

  private answer(outcome: Effect.Effect<unknown, unknown>): boolean {
    const { wanted } = this
    if (this.close()) this.resume(outcome)
    return wanted
  }

  down(reason: StopReason): void {
    if (this.close()) this.resume(Effect.fail(withoutStack(() => new ActorDown({ path: this.target.path, reason }))))
  }

  timedOut(): void {
    if (this.close()) {
      const { timeoutMs } = this
      this.resume(Effect.fail(withoutStack(() => new AskTimeout({ path: this.target.path, timeoutMs }))))
    }
  }
}
