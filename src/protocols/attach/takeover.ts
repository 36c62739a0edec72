/**
 * One `Sessions` whoever owns the database: this process when it can, else the owner over its socket; when that owner goes, the election
 * starts over and calls in flight are repeated. Rules: docs/attach.md. The shell around `election.ts`: one fiber carries out its commands and
 * is the only one that changes the state; callers wait for its changes.
 */
import { type Cause, Clock, Deferred, Effect, ExecutionStrategy, Exit, FiberId, Scope } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import { type Failure, ServiceFailure } from "../../domain/failure.ts"
import type { AttachFailure, Attachment } from "./attachment.ts"
import { deriveSessions, type Use } from "./derive.ts"
import {
  begin,
  type Command,
  type Election,
  type ElectionEvent,
  type Holder,
  holderLine,
  patienceMs,
  type Reason,
  step,
} from "./election.ts"
import { type Current, watchAcross } from "./watch.ts"

/** The lease's refusal: somebody else has it. */
export interface HeldElsewhere extends Holder {
  readonly _tag: "OwnedElsewhere"
}

export interface TakeoverOptions<Lease, EClaim extends { readonly _tag: string }, EOwn> {
  /** Takes the exclusive lease for a scope, or says who has it. */
  readonly claim: Effect.Effect<Lease, HeldElsewhere | EClaim, Scope.Scope>
  /** Builds the node on the lease, recovering what the database holds. Its scope ends before the lease's. */
  readonly own: (lease: Lease) => Effect.Effect<SessionsService, EOwn, Scope.Scope>
  /** Serves the node to others, for a scope that ends before the node's. Runs beside the first calls; its failure is logged only. */
  readonly serve: (
    sessions: SessionsService,
    lease: Lease,
  ) => Effect.Effect<void, { readonly message: string }, Scope.Scope>
  /** Connects to the owner. */
  readonly attach: (holder: Holder) => Effect.Effect<Attachment, AttachFailure, Scope.Scope>
  /** How long a holder may stay without an answer, in milliseconds. */
  readonly patienceMs?: number
  /** Told about every change of state, for logs and tests. */
  readonly onChange?: (state: Election<unknown>["name"]) => void
}

/**
 * The sessions of a database, shared. Completes once this process owns or is attached; fails when the lease or the node fails, or with a
 * {@link ServiceFailure} of code `database_held` that names the holder.
 */
export const takeover = <Lease, EClaim extends { readonly _tag: string }, EOwn>(
  options: TakeoverOptions<Lease, EClaim, EOwn>,
): Effect.Effect<SessionsService, ServiceFailure | EClaim | EOwn, Scope.Scope> =>
  Effect.gen(function* () {
    type E = EClaim | EOwn
    const scope = yield* Effect.scope
    const patience = options.patienceMs ?? patienceMs
    const [first, start] = begin<E>(yield* Clock.currentTimeMillis)
    let state: Election<E> = first
    let current: Current | null = null
    /** Completes when the present attachment has ended and is cleared away. */
    let gone: Effect.Effect<void> = Effect.never
    let changed = Deferred.unsafeMake<void>(FiberId.none)
    let closed = false
    /** A fault in what the loop was given; nobody would ever be told otherwise. */
    let crash: Cause.Cause<never> | null = null
    const asked = yield* Effect.makeLatch(false)
    // Everything that the loop acquires; it ends after the loop.
    const work = yield* Scope.fork(scope, ExecutionStrategy.sequential)

    const announce = () => {
      const done = changed
      changed = Deferred.unsafeMake<void>(FiberId.none)
      Deferred.unsafeDone(done, Effect.void)
    }
    const enter = (next: Election<E>) => {
      const isNew = next.name !== state.name
      state = next
      if (next.name === "failed") asked.unsafeClose()
      announce()
      if (isNew) options.onChange?.(next.name)
    }

    /** Runs something in a scope of its own that stays open when it succeeds. */
    const inScope = <A, Err>(use: (own: Scope.CloseableScope) => Effect.Effect<A, Err>): Effect.Effect<A, Err> =>
      Effect.flatMap(Scope.fork(work, ExecutionStrategy.sequential), (own) =>
        Effect.onError(use(own), (cause) => Scope.close(own, Exit.failCause(cause))),
      )

    /** Claims the lease, builds the node on it, and serves that beside (E2, E8). */
    const own = inScope((leased) =>
      Effect.gen(function* () {
        const lease = yield* Scope.extend(options.claim, leased)
        const sessions = yield* Scope.extend(options.own(lease), leased)
        const served = yield* Scope.fork(leased, ExecutionStrategy.sequential)
        const serving = Scope.extend(options.serve(sessions, lease), served).pipe(
          Effect.catchAll((error) => Effect.logWarning(`other processes cannot attach: ${error.message}`)),
        )
        yield* Effect.forkIn(serving, served)
        current = { sessions, instance: "own" }
      }),
    )
    const claim: Effect.Effect<ElectionEvent<E>> = Effect.matchEffect(own, {
      onSuccess: () => Effect.succeed({ type: "claimed" } as const),
      onFailure: (error) =>
        Effect.map(
          Clock.currentTimeMillis,
          (at): ElectionEvent<E> =>
            isHeld(error) ? { type: "held", holder: error, at } : { type: "ownFailed", error },
        ),
    })

    const attach = (holder: Holder): Effect.Effect<ElectionEvent<E>> =>
      inScope((attached) =>
        Effect.map(Scope.extend(options.attach(holder), attached), (attachment) => {
          current = { sessions: attachment.sessions, instance: attachment.owner.instance }
          gone = Effect.zipRight(attachment.gone, Scope.close(attached, Exit.void))
        }),
      ).pipe(
        Effect.matchEffect({
          onSuccess: () => Effect.succeed({ type: "attached" } as const),
          onFailure: (failure) =>
            Effect.map(Clock.currentTimeMillis, (at) => ({ type: "notAttached", failure, at }) as const),
        }),
      )

    /** Waits for what ends the present state. */
    const rest: Effect.Effect<ElectionEvent<E>> = Effect.suspend(() => {
      if (state.name === "owning") return Effect.never
      const wasAttached = state.name === "attached"
      return Effect.flatMap(wasAttached ? gone : asked.await, () => {
        current = null
        return Effect.map(Clock.currentTimeMillis, (at) => ({ type: wasAttached ? "gone" : "asked", at }) as const)
      })
    })

    const perform = (command: Command): Effect.Effect<ElectionEvent<E>> => {
      if (command.type === "claim") return Effect.delay(claim, command.afterMs)
      return command.type === "attach" ? attach(command.holder) : rest
    }

    const loop = (command: Command): Effect.Effect<never> =>
      Effect.flatMap(perform(command), (event) => {
        const [next, then] = step(state, event, patience)
        enter(next)
        return loop(then)
      })
    const crashed = (cause: Cause.Cause<never>) =>
      Effect.sync(() => {
        crash = cause
        announce()
      })
    yield* Effect.forkIn(Effect.onError(loop(start), crashed), scope)

    const noOwner = (reason: Reason<E>): E | ServiceFailure =>
      reason.type === "own"
        ? reason.error
        : new ServiceFailure({
            code: "database_held",
            detail: holderLine(reason.holder, reason.failure),
            reference: `process ${reason.holder.pid}`,
          })

    /** The owner to ask, once there is one other than `not`. */
    const owner = (not: Current | null): Effect.Effect<Current, E | ServiceFailure> =>
      Effect.suspend(() => {
        if (closed) return Effect.fail(leaving)
        if (crash !== null) return Effect.failCause(crash)
        if (state.name === "failed") return Effect.fail(noOwner(state.reason))
        if (state.name !== "electing" && current !== null && current !== not) return Effect.succeed(current)
        return Effect.zipRight(Deferred.await(changed), owner(not))
      })
    yield* owner(null)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closed = true
        announce()
      }),
    )

    /** The same for a call: a failed election is held again first (E7), and its failure is one of the five. */
    const ownerForCall = (not: Current | null): Effect.Effect<Current, Failure> =>
      Effect.suspend(() => {
        if (state.name !== "failed" || closed) return owner(not)
        const left = Deferred.await(changed)
        return Effect.zipRight(asked.open, Effect.zipRight(left, owner(not)))
      }).pipe(Effect.mapError((error) => (error instanceof ServiceFailure ? error : ownFailure(error))))

    const call = <A>(use: Use<A>): Effect.Effect<A, Failure> => {
      const attempt = (not: Current | null): Effect.Effect<A, Failure> =>
        Effect.flatMap(ownerForCall(not), (current) =>
          Effect.catchTag(use(current.sessions, not !== null), "OwnerGone", () => attempt(current)),
        )
      return attempt(null)
    }

    // E10: the same life of the owner still has the tail; another one does not.
    const watch = watchAcross(ownerForCall, "another process took over the database")

    return deriveSessions({ call, watch })
  })

const isHeld = (error: unknown): error is HeldElsewhere =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "OwnedElsewhere"

const leaving = new ServiceFailure({ code: "closed", detail: "this process is leaving", reference: "takeover" })

/** A lease or node that failed at a takeover, for whoever calls at that time. */
const ownFailure = (error: unknown): ServiceFailure =>
  new ServiceFailure({
    code: "takeover_failed",
    detail: error instanceof Error ? error.message : "the database could not be opened",
    reference: "takeover",
  })
