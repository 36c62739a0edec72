/**
 * One ask: the message's envelope, the reply port and the deadline in one object.
 *
 * An ask is open from its making until the first of: reply, deadline, end of the actor. While open it is
 * in the list of its actor (so that the actor's end fails it) and in its system's deadlines. After that every reply gives false.
 */
import { Cause, Effect, type Tracer } from "effect"
import type { Cell } from "./cell.ts"
import type { DeadlineList } from "./deadlines.ts"
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
  private readonly resume: Resume

  constructor(target: Cell, resume: Resume, timeoutMs: number, span: Tracer.AnySpan | undefined) {
    super()
    this.target = target
    this.resume = resume
    this.timeoutMs = timeoutMs
    this.span = span
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

  succeed(value: unknown): boolean {
    if (!this.close()) return false
    this.resume(Effect.succeed(value))
    return true
  }

  fail(error: unknown): boolean {
    if (!this.close()) return false
    this.resume(Effect.fail(error))
    return true
  }

  die(defect: unknown): boolean {
    if (!this.close()) return false
    this.resume(Effect.failCause(Cause.die(defect)))
    return true
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
