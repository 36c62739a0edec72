/**
 * A cell is one actor: identity, place in the tree, mailbox and the current incarnation. Users hold it as ActorRef and, inside
 * handlers, as ActorContext. It owns no fiber; a worker borrows it for as long as it has mail (worker.ts).
 *
 * The status moves as in status.ts; lifecycle.ts and burial.ts make every move but IDLE → QUEUED (here) and QUEUED → RUNNING → IDLE (worker.ts).
 */
import { Effect, Exit, type Fiber, type FiberRefs, Inspectable, Scope } from "effect"
import type { Ask } from "./ask.ts"
import type { ActorContext, Behavior, SpawnOptions } from "./behavior.ts"
import { type AnyFiber, spanOf } from "./effect-internals.ts"
import { DownNotice, Envelope, Letter } from "./envelope.ts"
import type { SpawnError } from "./errors.ts"
import { Extras } from "./extras.ts"
import type { Kernel } from "./kernel.ts"
import { endSelf } from "./lifecycle.ts"
import { EMPTY, Mailbox } from "./mailbox.ts"
import type { ActorRef } from "./ref.ts"
import type { ChildSpec } from "./restart.ts"
import { CLOSING, DEAD, IDLE, QUEUED, STARTING, type Status, UNBORN } from "./status.ts"
import { normal, type StopReason } from "./stop-reason.ts"
import type { ActorSystemService } from "./system-service.ts"
import type { Worker } from "./worker.ts"

/** A behavior as the kernel runs it. Its services come from the fiber-local values captured at spawn, hence no requirement. */
export type CellBehavior = Behavior<unknown, unknown, never>

export class Cell extends Mailbox implements ActorContext<unknown>, ActorRef<unknown> {
  readonly kernel: Kernel
  readonly id: number
  readonly parent: Cell | null
  readonly behavior: CellBehavior
  readonly spec: ChildSpec
  /** The fiber-local values that handlers start with. */
  readonly env: FiberRefs.FiberRefs
  /** The handlers' state; UNBORN before the first; the StopReason after the end. */
  state: unknown = UNBORN
  status: Status = STARTING
  /** The worker that is in a handler of this actor. */
  worker: Worker | null = null
  /** The newest child, and this cell's neighbours among its siblings. */
  child: Cell | null = null
  older: Cell | null = null
  newer: Cell | null = null
  /** The newest open ask. */
  asks: Ask | null = null
  private extra: Extras | null = null

  constructor(kernel: Kernel, parent: Cell | null, behavior: CellBehavior, spec: ChildSpec, env: FiberRefs.FiberRefs) {
    super()
    this.kernel = kernel
    this.id = kernel.nextId()
    this.parent = parent
    this.behavior = behavior
    this.spec = spec
    this.env = env
    if (parent !== null) {
      this.older = parent.child
      if (parent.child !== null) parent.child.newer = this
      parent.child = this
    }
  }

  /** What few actors need, made on first use. */
  get extras(): Extras {
    this.extra ??= new Extras()
    return this.extra
  }

  get hasExtras(): Extras | null {
    return this.extra
  }

  /** Of the extras a dead actor keeps its name alone: who holds its ref should not hold them too. */
  forgetExtras(): void {
    if (this.extra?.name === null) this.extra = null
  }

  get ref(): ActorRef<unknown> {
    return this
  }

  get system(): ActorSystemService {
    return this.kernel
  }

  get name(): string {
    return this.extra?.name ?? `${this.behavior.name}-${this.id}`
  }

  get path(): string {
    return this.parent === null ? `/${this.name}` : `${this.parent.path}/${this.name}`
  }

  get alive(): boolean {
    return this.status < CLOSING
  }

  get capacity(): number {
    return this.behavior.capacity ?? Number.POSITIVE_INFINITY
  }

  // ---- mail -------------------------------------------------------------------------------------------------------------------

  /** Accepts a message if there is room. The caller has checked that the cell is alive. */
  offer(item: unknown): boolean {
    if (!this.put(item, this.behavior.capacity ?? Number.POSITIVE_INFINITY)) return false
    if (this.status === IDLE) {
      this.status = QUEUED
      this.kernel.post(this)
    }
    return true
  }

  /** Accepts a message whatever the capacity: signals of the kernel, and what an actor tells itself. */
  force(item: unknown): void {
    this.put(item, Number.POSITIVE_INFINITY)
    if (this.status === IDLE) {
      this.status = QUEUED
      this.kernel.post(this)
    }
  }

  unsafeTell(message: unknown): boolean {
    if (this.status >= CLOSING) {
      this.kernel.deadLetters++
      return false
    }
    return this.offer(message instanceof Envelope ? new Letter(message, undefined) : message)
  }

  tell(message: unknown, sender: AnyFiber): Effect.Effect<void> {
    if (this.status >= CLOSING) {
      this.kernel.deadLetters++
      return Effect.void
    }
    const span = spanOf(sender)
    const item = span !== undefined || message instanceof Envelope ? new Letter(message, span) : message
    if (this.offer(item)) return Effect.void
    if (this.isRunBy(sender)) {
      this.force(item)
      return Effect.void
    }
    return this.extras.wait(item)
  }

  /** The oldest message, or EMPTY; lets a held-back sender in. */
  take(): unknown {
    const item = this.next()
    const extra = this.extra
    if (extra !== null && extra.blocked !== null) {
      const admitted = extra.admit()
      if (admitted !== EMPTY) this.put(admitted, Number.POSITIVE_INFINITY)
    }
    return item
  }

  /** Puts messages back in front, for re-delivery. The caller is a handler of this actor. */
  requeueFirst(items: ReadonlyArray<unknown>): void {
    this.putFirst(items)
  }

  /** What the handler in progress was given. */
  get current(): unknown {
    return this.worker?.item
  }

  isRunBy(fiber: AnyFiber): boolean {
    return this.worker !== null && this.worker.fiber === fiber
  }

  // ---- the context of handlers ------------------------------------------------------------------------------------------------

  get scope(): Scope.Scope {
    const { extras } = this
    extras.scope ??= Effect.runSync(Scope.make())
    return extras.scope
  }

  spawn<S, N, R>(behavior: Behavior<S, N, R>, options?: SpawnOptions): Effect.Effect<ActorRef<N>, SpawnError, R> {
    return Effect.withFiberRuntime<ActorRef<N>, SpawnError, R>((fiber) =>
      this.kernel.spawn(fiber as AnyFiber, behavior, this, options),
    )
  }

  watch(ref: ActorRef<never>): Effect.Effect<void> {
    return Effect.sync(() => this.unsafeWatch(ref))
  }

  unsafeWatch(ref: ActorRef<never>): void {
    if (this.behavior.onDown === undefined) {
      throw new Error(`actor ${this.path}: expected an onDown handler in a behavior that watches others`)
    }
    const { extras } = this
    const other = cellOf(ref)
    extras.watching ??= new Set()
    if (extras.watching.has(other)) return
    extras.watching.add(other)
    if (other.status === DEAD) this.force(new DownNotice(other, other.state as StopReason))
    else other.extras.addWatcher(this)
  }

  unwatch(ref: ActorRef<never>): Effect.Effect<void> {
    return Effect.sync(() => {
      const other = cellOf(ref)
      this.extra?.watching?.delete(other)
      other.extra?.watchers?.delete(this)
    })
  }

  /** Called by a watched actor at its end. */
  notify(watched: Cell, reason: StopReason): void {
    if (this.alive) this.force(new DownNotice(watched, reason))
  }

  stop(reason: StopReason = normal): Effect.Effect<void> {
    return Effect.sync(() => endSelf(this, reason))
  }

  fork<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Fiber.RuntimeFiber<A, E>, never, R> {
    return Effect.suspend(() => Effect.forkIn(effect, this.scope))
  }

  closeScope(exit: Exit.Exit<unknown, unknown> = Exit.void): Effect.Effect<void> {
    const scope = this.extra?.scope ?? null
    if (scope === null) return Effect.void
    this.extras.scope = null
    return Scope.close(scope, exit)
  }

  override toString(): string {
    return `ActorRef(${this.path})`
  }

  toJSON(): unknown {
    return { _id: "ActorRef", path: this.path }
  }

  [Inspectable.NodeInspectSymbol](): unknown {
    return this.toJSON()
  }
}

/** The cell behind a ref. Every ActorRef is made by a kernel. */
export const cellOf = (ref: ActorRef<never>): Cell => {
  if (ref instanceof Cell) return ref
  throw new TypeError(`ActorRef: expected a ref from spawn, got ${String(ref)}`)
}
