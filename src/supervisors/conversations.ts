/**
 * The conversations of a node: each in memory at most once, under a keeper of its own, so that one that keeps crashing never takes a
 * neighbour along. A keeper restarts its conversation up to five times a minute; beyond that it ends, and the next message starts a
 * new one. A conversation that hibernates takes its keeper with it.
 */
import { Cause, Deferred, Effect, Option } from "effect"
import { newReference, noConversation } from "../actors/conversation/failures.ts"
import { type ConversationNeeds, conversation } from "../actors/conversation/index.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import { type ActorRef, ActorSystem, behavior, SpawnError, spawn } from "../actors/kernel/index.ts"
import type { Failure } from "../domain/failure.ts"
import { ServiceFailure } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import { annotated } from "../observability/log-context.ts"

export type ConversationRef = ActorRef<ConversationMessage>

const nameOf = (id: ConversationId): string => `conversation-${id}`

/** Restarts of one conversation within a minute before its keeper gives up. */
const intensity = { maxRestarts: 5, withinMs: 60_000 }

const keeper = (id: ConversationId) => ({
  ...behavior<null, never, ConversationNeeds>({
    name: "keeper",
    init: (self) =>
      Effect.gen(function* () {
        const ref = yield* self
          .spawn(conversation(id), {
            name: "machine",
            childSpec: { restart: "transient", shutdownMs: 5_000, ...intensity },
          })
          .pipe(annotated({ conversation_id: id }))
        yield* self.system.registry.register(nameOf(id), ref)
        yield* self.watch(ref)
        return null
      }),
    receive: (state) => Effect.succeed(state),
    onDown: (state, _down, self) => Effect.as(self.stop(), state),
    describe: () => "one_for_one",
  }),
  kind: "supervisor" as const,
})

export interface Conversations {
  /** The conversation's actor, started from storage where it is not in memory. */
  readonly get: (id: ConversationId) => Effect.Effect<ConversationRef, Failure>
  /** The conversation's actor where it is in memory. */
  readonly peek: (id: ConversationId) => Effect.Effect<Option.Option<ConversationRef>>
}

/** `parent` is the dynamic supervisor of the keepers. */
export const makeConversations = (
  parent: ActorRef<never>,
): Effect.Effect<Conversations, never, ActorSystem | ConversationNeeds> =>
  Effect.gen(function* () {
    const system = yield* ActorSystem
    const context = yield* Effect.context<ActorSystem | ConversationNeeds>()
    /** Starts in progress: a second caller waits for the first. */
    const starting = new Map<ConversationId, Deferred.Deferred<ConversationRef, Failure>>()

    const peek: Conversations["peek"] = (id) => system.registry.whereis<ConversationMessage>(nameOf(id))

    const start = (id: ConversationId): Effect.Effect<ConversationRef, Failure> =>
      spawn(keeper(id), { name: nameOf(id), parent, childSpec: { restart: "temporary" } }).pipe(
        Effect.provide(context),
        Effect.catchAll((error) => Effect.flatMap(spawnFailure(id, error), (failure) => Effect.fail(failure))),
        Effect.zipRight(peek(id)),
        Effect.flatMap(
          Option.match({
            onNone: () => Effect.fail<Failure>(noConversation(id)),
            onSome: (ref) => Effect.succeed(ref),
          }),
        ),
      )

    const startOnce = (id: ConversationId): Effect.Effect<ConversationRef, Failure> =>
      Effect.suspend(() => {
        const known = starting.get(id)
        if (known !== undefined) return Deferred.await(known)
        const mine = Deferred.unsafeMake<ConversationRef, Failure>(fiberId)
        starting.set(id, mine)
        // Detached, so that an interrupted caller does not fail the others that wait.
        const run = Effect.exit(start(id)).pipe(
          Effect.flatMap((exit) => {
            starting.delete(id)
            return Deferred.done(mine, exit)
          }),
        )
        return Effect.zipRight(Effect.forkDaemon(run), Deferred.await(mine))
      })
    const fiberId = yield* Effect.fiberId

    return {
      peek,
      get: (id) =>
        Effect.flatMap(peek(id), Option.match({ onNone: () => startOnce(id), onSome: (ref) => Effect.succeed(ref) })),
    }
  })

/** What a start that failed tells the caller. */
const spawnFailure = (id: ConversationId, error: SpawnError): Effect.Effect<Failure> => {
  const cause = rootOf(error)
  if (hasTag(cause, "UnknownConversation")) return Effect.succeed(noConversation(id))
  const reference = newReference()
  const message = cause instanceof Error ? cause.message : String(cause)
  const failure = hasTag(cause, "CorruptRow")
    ? new ServiceFailure({
        code: "corrupt",
        detail: `conversation ${id} cannot go on: ${message}; restore the row from a copy, or remove the conversation with: super-pi session rm ${id}`,
        reference,
      })
    : new ServiceFailure({
        code: "conversation_failed",
        detail: `conversation ${id} did not start: ${message}`,
        reference,
      })
  return Effect.as(
    Effect.logError(`conversation ${id} did not start`, error.cause ?? error).pipe(Effect.annotateLogs({ reference })),
    failure,
  )
}

/** What made a start fail at last: a keeper fails because its machine did. */
const rootOf = (error: SpawnError): unknown => {
  const inner = error.cause === null ? error : Cause.squash(error.cause)
  return inner !== error && inner instanceof SpawnError ? rootOf(inner) : inner
}

const hasTag = (value: unknown, tag: string): boolean =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === tag
