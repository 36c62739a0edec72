/**
 * What an actor does: a value that `spawn`, a supervisor's child or a test can use any number of times. A behavior owns no state;
 * each incarnation gets its own from `init`.
 */
import type { Effect, Fiber, Scope } from "effect"
import type { Cell } from "./cell.ts"
import type { SpawnError } from "./errors.ts"
import type { ActorRef, Down } from "./ref.ts"
import type { ChildSpec } from "./restart.ts"
import type { StopReason } from "./stop-reason.ts"
import type { ActorSystemService } from "./system-service.ts"

/** Messages that wait in a mailbox before senders are held back. */
export const defaultCapacity = 1_000

export interface SpawnOptions {
  /** Unique among siblings; default `<behavior name>-<id>`. Becomes the last part of the path. */
  readonly name?: string
  /** How the parent treats the child; default temporary: a crash ends it. */
  readonly childSpec?: Partial<ChildSpec>
}

/** The actor as its own handlers see it. */
export interface ActorContext<in M> {
  readonly ref: ActorRef<M>
  readonly id: number
  readonly path: string
  readonly system: ActorSystemService
  /** Closed when this incarnation ends (stop, crash, before a restart); for resources and long-lived fibers. */
  readonly scope: Scope.Scope
  /** Starts a child of this actor; it is stopped with it, in reverse order of start. */
  readonly spawn: <S, N, R>(
    behavior: Behavior<S, N, R>,
    options?: SpawnOptions,
  ) => Effect.Effect<ActorRef<N>, SpawnError, R>
  /** `onDown` is called once when the other has ended for good; at once when it already has. */
  readonly watch: (ref: ActorRef<never>) => Effect.Effect<void>
  /** {@link watch} from a callback. */
  readonly unsafeWatch: (ref: ActorRef<never>) => void
  readonly unwatch: (ref: ActorRef<never>) => Effect.Effect<void>
  /** Ends this actor when the current handler is done. Default reason: normal. */
  readonly stop: (reason?: StopReason) => Effect.Effect<void>
  /** A fiber that lives on after the handler and ends with this incarnation. (`Effect.fork` ends with the handler.) */
  readonly fork: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<Fiber.RuntimeFiber<A, E>, never, R>
}

/**
 * The parts of a behavior. Handlers return the next state. The kernel calls them one at a time (K1); a failure, a defect or an
 * interruption that the kernel did not ask for is a crash.
 */
export interface BehaviorSpec<S, M, R> {
  /** The first part of default names; default `actor`. */
  readonly name?: string
  /** The first state, made anew at every restart. An Effect suspends only this actor. A failure counts as a crash. */
  readonly init: (self: ActorContext<M>) => S | Effect.Effect<S, unknown, R>
  readonly receive: (state: S, message: M, self: ActorContext<M>) => Effect.Effect<S, unknown, R>
  /** Needed by an actor that watches others. */
  readonly onDown?: (state: S, down: Down, self: ActorContext<M>) => Effect.Effect<S, unknown, R>
  /** Runs after the children have stopped, with the last state that a handler returned; also after a crash. */
  readonly onStop?: (state: S, reason: StopReason, self: ActorContext<M>) => Effect.Effect<void, never, R>
  /** Mailbox bound in messages; default 1,000. Senders wait where it is full. */
  readonly capacity?: number
  /** A short description of the state for the live tree. */
  readonly describe?: (state: S) => string
}

export interface Behavior<S, M, R = never> extends BehaviorSpec<S, M, R> {
  readonly kind: "actor" | "machine" | "supervisor"
  readonly hooks?: BehaviorHooks
}

/** What behaviors built on the kernel (state machines, supervisors) need to know of their cell. Synchronous; must not throw. */
export interface BehaviorHooks {
  /** A supervisor decides about a child that is DOWN, or forgets one that is DEAD; other parents go by the child spec alone. */
  readonly childEnded?: (parent: Cell, child: Cell, reason: StopReason) => void
  /** Why a supervisor takes no child from `spawn` now, or null; `defaults` are the child specs of those that it takes. */
  readonly refuse?: (parent: Cell) => SpawnError["problem"] | null
  readonly childDefaults?: Partial<ChildSpec>
  /** The incarnation is over: release what the state holds, give back mail that it has kept. */
  readonly ended?: (cell: Cell) => void
}

/** Declares a behavior. For hot handlers prefer `Effect.succeed`, `Effect.sync` or `Effect.fnUntraced` over an inline `Effect.gen`. */
export const behavior = <S, M, R = never>(spec: BehaviorSpec<S, M, R>): Behavior<S, M, R> => {
  const { capacity = defaultCapacity, name = "actor" } = spec
  if (!(capacity >= 1)) throw new RangeError(`behavior.capacity: expected a number of at least 1, got ${capacity}`)
  if (!nameShape.test(name))
    throw new RangeError(`behavior.name: expected a name without "/", got ${JSON.stringify(name)}`)
  return { kind: "actor", ...spec, capacity, name }
}

/** Names are parts of paths. */
export const nameShape = /^[^/\s]+$/
