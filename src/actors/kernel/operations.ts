/**
 * What can be done with actors from anywhere: spawn, tell, ask, watch, stop.
 */
import { Context, Effect, Effectable } from "effect"
import { Ask } from "./ask.ts"
import type { Behavior, SpawnOptions } from "./behavior.ts"
import { type Cell, cellOf } from "./cell.ts"
import { type AnyFiber, currentFiber, wait } from "./effect-internals.ts"
import { type ActorDown, type AskTimeout, SpawnError } from "./errors.ts"
import { halt } from "./lifecycle.ts"
import type { ActorRef, Down, ReplyTo } from "./ref.ts"
import { DEAD } from "./status.ts"
import { type StopReason, shutdown } from "./stop-reason.ts"
import { ActorSystem } from "./system.ts"

/** How long an ask waits by default, as in OTP. */
export const defaultAskTimeoutMs = 5_000

type SpawnUnder = SpawnOptions & { readonly parent?: ActorRef<never> }

/**
 * Starts an actor and gives its ref once `init` has succeeded. Its handlers run with the services and fiber-local values of the
 * calling fiber. Without `parent` it is a child of the system's guardian.
 */
export const spawn = <S, M, R = never>(
  behavior: Behavior<S, M, R>,
  options?: SpawnUnder,
): Effect.Effect<ActorRef<M>, SpawnError, R | ActorSystem> => new Spawn(behavior, options)

/** A class of its own, as it takes half of what a closure in an Effect takes. */
class Spawn<S, M, R> extends Effectable.Class<ActorRef<M>, SpawnError, R | ActorSystem> {
  private readonly behavior: Behavior<S, M, R>
  private readonly options: SpawnUnder | undefined

  constructor(behavior: Behavior<S, M, R>, options: SpawnUnder | undefined) {
    super()
    this.behavior = behavior
    this.options = options
  }

  override commit(): Effect.Effect<ActorRef<M>, SpawnError> {
    const { behavior, options } = this
    const fiber = currentFiber()
    const parent = cellOf(options?.parent ?? Context.unsafeGet(contextOf(fiber), ActorSystem).guardian)
    return parent.kernel.spawn(fiber, behavior, parent, options)
  }
}

// The R of `spawn` demands the system, so it is in the context of every fiber that gets here.
const contextOf = (fiber: AnyFiber): Context.Context<ActorSystem> =>
  fiber.currentContext as Context.Context<ActorSystem>

/**
 * Starts an actor from a callback, as {@link unsafeTell} sends from one. Gives the ref at once: while an `init` that takes its time goes on,
 * messages wait, and its failure is a crash that the parent's policy for the child decides about. Handlers run with the services and
 * fiber-local values of the parent, hence a behavior that needs none of its own. Throws SpawnError where the parent takes no child, or none
 * of that name.
 */
export const unsafeSpawn = <S, M>(
  behavior: Behavior<S, M>,
  options: SpawnOptions & { readonly parent: ActorRef<never> },
): ActorRef<M> => {
  const parent = cellOf(options.parent)
  const cell = parent.kernel.start(behavior, parent, options, parent.env)
  if (cell instanceof SpawnError) throw cell
  return cell
}

/**
 * Sends a message. Waits while the mailbox is full (an interrupted wait has sent nothing); never waits when an actor tells itself.
 * To a dead actor it is a counted dead letter.
 */
export const tell = <M>(ref: ActorRef<M>, message: M): Effect.Effect<void> =>
  Effect.withFiberRuntime<void>((fiber) => cellOf(ref).tell(message, fiber as AnyFiber))

/** Sends from a callback. False when the mailbox is full, or the actor dead (then also a counted dead letter). */
export const unsafeTell = <M>(ref: ActorRef<M>, message: M): boolean => cellOf(ref).unsafeTell(message)

export interface AskOptions {
  /** Default 5,000; `Infinity` waits as long as the actor lives. Limits of a second and more may come up to 50 ms late. */
  readonly timeoutMs?: number
}

/**
 * Sends a message that carries a reply port and waits for the answer. Fails with the actor's own error `E`, with ActorDown at once
 * when the actor is dead or dies before it answers, or with AskTimeout. A full mailbox is waited for within the same limit. A handler
 * that asks its own actor would wait for itself, which is a defect.
 */
export const ask = <M, A, E = never>(
  ref: ActorRef<M>,
  message: (reply: ReplyTo<A, E>) => M,
  options?: AskOptions,
): Effect.Effect<A, E | ActorDown | AskTimeout> =>
  Effect.withFiberRuntime<A, E | ActorDown | AskTimeout>((fiber) => {
    const cell = cellOf(ref)
    const timeoutMs = options === undefined ? defaultAskTimeoutMs : (options.timeoutMs ?? defaultAskTimeoutMs)
    const asker = fiber as AnyFiber
    if (cell.isRunBy(asker))
      return Effect.die(new Error(`actor ${cell.path}: expected another actor to ask, got itself`))
    return wait<A, E | ActorDown | AskTimeout>((resume) => {
      // What the actor answers has the types of the port that it was given.
      const pending = new Ask(cell, asker, resume as (outcome: Effect.Effect<unknown, unknown>) => void, timeoutMs)
      pending.message = message(pending)
      submit(cell, pending)
    })
  })

const submit = (cell: Cell, pending: Ask): void => {
  if (!cell.alive) {
    pending.down(cell.status === DEAD ? (cell.state as StopReason) : shutdown)
    return
  }
  pending.link()
  cell.kernel.deadlines.add(pending)
  if (!cell.offer(pending)) cell.extras.hold({ item: pending, resume: null, cancelled: false })
}

/** Registers at once; the inner Effect gives the Down when the actor has ended for good. */
export const watch = (ref: ActorRef<never>): Effect.Effect<Effect.Effect<Down>> =>
  Effect.sync(() => {
    const cell = cellOf(ref)
    let down: Down | null = cell.status === DEAD ? { ref, reason: cell.state as StopReason } : null
    const waiting = new Set<(down: Effect.Effect<Down>) => void>()
    if (down === null) {
      cell.extras.addWatcher({
        notify: (_, reason) => {
          const notice: Down = { ref, reason }
          down = notice
          for (const resume of waiting) resume(Effect.succeed(notice))
          waiting.clear()
        },
      })
    }
    return Effect.async<Down>((resume) => {
      if (down !== null) return resume(Effect.succeed(down))
      waiting.add(resume)
      return Effect.sync(() => void waiting.delete(resume))
    })
  })

/** Waits until the actor has ended for good; restarts are not an end. */
export const awaitDown = (ref: ActorRef<never>): Effect.Effect<Down> => Effect.flatten(watch(ref))

export interface StopOptions {
  /** Default: the child spec's. 0 interrupts the running handler at once and skips the wait. */
  readonly shutdownMs?: number
}

/**
 * Stops an actor for good, whatever its child spec, and returns when it is down: the running handler may end within the shutdown
 * deadline, children stop in reverse order, `onStop` runs. Messages left are dead letters, asks fail. An actor that stops itself is
 * not waited for; it ends after its current handler.
 */
export const stop = (ref: ActorRef<never>, reason: StopReason = shutdown, options?: StopOptions): Effect.Effect<void> =>
  Effect.withFiberRuntime<void>((fiber) => {
    const cell = cellOf(ref)
    const how = { final: true, reason, ...options }
    if (!cell.isRunBy(fiber as AnyFiber))
      return Effect.async<void>((resume) => halt(cell, how, () => resume(Effect.void)))
    halt(cell, how)
    return Effect.void
  })
