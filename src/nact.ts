/**
 * `super-pi/nact`: a bridge to nact 7 (an optional peer dependency), so that a nact system can address our actors and ours nact's.
 *
 * It uses nact's public functions only. What nact does not have, the bridge cannot add: nact's mailboxes are unbounded, a message to
 * a stopped nact actor vanishes, and a nact actor cannot be watched.
 */
import { Data, Effect, Exit, Runtime, type Scope } from "effect"
import { dispatch, query, type Ref, spawn as spawnNact, stop as stopNact } from "nact"
import {
  type ActorRef,
  type ActorSystem,
  behavior,
  type ReplyTo,
  type SpawnError,
  type SpawnOptions,
  spawn,
  tell,
  watch,
} from "./actors/kernel/index.ts"

/** nact gave no answer: the limit has passed, or the actor is stopped. The message is nact's own. */
export class NactQueryError extends Data.TaggedError("NactQueryError")<{ readonly message: string }> {}

/**
 * A nact actor under `parent` that hands every message to our actor, in order. It takes the next one when our mailbox has taken the
 * last, so messages wait in nact's (unbounded) mailbox. It stops when our actor ends, or the scope closes.
 */
export const toNact = <M>(
  parent: Ref<never>,
  ref: ActorRef<M>,
  name?: string,
): Effect.Effect<Ref<M>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<never>()
    const forward = (_state: null | undefined, message: M): Promise<null> =>
      Runtime.runPromise(runtime)(Effect.as(tell(ref, message), null))
    const proxy: Ref<M> = yield* Effect.acquireRelease(
      Effect.sync(() => spawnNact(parent, forward, name)),
      (spawned) => Effect.sync(() => stopNact(spawned)),
    )
    const down = yield* watch(ref)
    yield* Effect.forkScoped(
      Effect.zipRight(
        down,
        Effect.sync(() => stopNact(proxy)),
      ),
    )
    return proxy
  })

/**
 * The reply port for a nact reference, so that `query` works on an actor of ours:
 * `query(proxy, (temp) => ({ _tag: "Get", reply: replyTo(temp) }), 1_000)`. The first answer counts; a defect is never answered.
 */
export const replyTo = <A>(reference: Ref<A>): ReplyTo<A> =>
  once((exit) => Exit.isSuccess(exit) && send(reference, exit.value))

/** The same for a message whose reply port may fail: nact has no error channel, so the answer is an Exit. */
export const replyExitTo = <A, E>(reference: Ref<Exit.Exit<A, E>>): ReplyTo<A, E> =>
  once((exit) => send(reference, exit))

const send = <A>(reference: Ref<A>, value: A): boolean => {
  dispatch(reference, value)
  return true
}

const once = <A, E>(answer: (exit: Exit.Exit<A, E>) => boolean): ReplyTo<A, E> => {
  let open = true
  const reply = (exit: Exit.Exit<A, E>): boolean => {
    if (!open) return false
    open = false
    return answer(exit)
  }
  return {
    succeed: (value) => reply(Exit.succeed(value)),
    fail: (error) => reply(Exit.fail(error)),
    die: (defect) => reply(Exit.die(defect)),
  }
}

/** An actor of ours that hands every message to a nact actor. The nact actor outlives it. */
export const fromNact = <M>(
  reference: Ref<M>,
  options?: SpawnOptions & { readonly parent?: ActorRef<never> },
): Effect.Effect<ActorRef<M>, SpawnError, ActorSystem> =>
  spawn(
    behavior<null, M>({
      name: "nact",
      init: () => null,
      receive: (state, message) => {
        dispatch(reference, message)
        return Effect.succeed(state)
      },
    }),
    options,
  )

/** nact's `query` as an Effect: `message` gets the temporary reference to answer to. */
export const queryNact = <M, A>(
  reference: Ref<M>,
  message: (temporary: Ref<A>) => M,
  timeoutMs: number,
): Effect.Effect<A, NactQueryError> =>
  Effect.tryPromise({
    try: (): Promise<A> => query<M, (temporary: Ref<A>) => M>(reference, message, timeoutMs),
    catch: (error) => new NactQueryError({ message: error instanceof Error ? error.message : String(error) }),
  })
