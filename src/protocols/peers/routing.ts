/**
 * One `Sessions` for the whole cluster: calls about a conversation go to the node that holds its place, this one or another; what only
 * reads the database, or creates something in it, is done here. A node that goes, or a place that moves, is met by asking again at the next
 * holder; calls are made so that repeating changes nothing twice (see `attach/derive.ts`). A call that finds no holder within
 * {@link patienceMs} fails as `Busy`.
 */
import { Clock, Effect, Fiber } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import type { Holder } from "../../domain/cluster.ts"
import { Busy, type Failure } from "../../domain/failure.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import { isMoved } from "../../domain/moved.ts"
import type { SessionsOver } from "../attach/attachment.ts"
import { OwnerGone } from "../attach/attachment.ts"
import { deriveSessions, type Use } from "../attach/derive.ts"
import { type Current, watchAcross } from "../attach/watch.ts"
import type { PeersService } from "./service.ts"

/** How long a call waits for a place to have a holder that answers, in ms. */
const patienceMs = 30_000
/** How long a connection is waited for before it is asked anew who holds the place, in ms: it may be another node by then. */
const linkMs = 250
/** Between two attempts, in ms. */
const pauseMs = 50

/** Where conversations and tasks are at work. */
export interface Whereabouts {
  /** Epoch of this node. */
  readonly self: number
  readonly ofConversation: (id: ConversationId) => Effect.Effect<Holder, Failure>
  readonly ofTask: (id: TaskId) => Effect.Effect<Holder, Failure>
  /** The conversation of a task; null where it has none or is not there. */
  readonly conversationOf: (id: TaskId) => Effect.Effect<ConversationId | null, Failure>
}

export interface RoutingParts {
  /** The sessions of this node; fails `moved` for what is elsewhere. */
  readonly here: SessionsService
  readonly whereabouts: Whereabouts
  readonly link: PeersService["link"]
}

const notServed = new Busy({
  what: "cluster",
  detail: "no node holds the place of this conversation right now",
  retryAfterMs: 1_000,
})

export const routedSessions = ({ here, link, whereabouts }: RoutingParts): SessionsService => {
  const hereNow: Current = { sessions: here, instance: String(whereabouts.self) }

  /** Whoever holds a place now, once somebody does that can be reached. */
  const holder = (find: Effect.Effect<Holder, Failure>, until: number): Effect.Effect<Current, Failure> =>
    Effect.flatMap(find, (found): Effect.Effect<Current, Failure> => {
      if (found === "here") return Effect.succeed(hereNow)
      if (found === "nobody") return again(find, until)
      // In a fiber of its own: a caller that may not be interrupted would otherwise wait for as long as there is no connection.
      const wait = Effect.timeoutFail(link(found.epoch), { duration: linkMs, onTimeout: () => "slow" as const })
      const linked = Effect.flatMap(Effect.forkDaemon(Effect.interruptible(wait)), Fiber.join)
      return Effect.matchEffect(linked, {
        onFailure: () => again(find, until),
        onSuccess: (sessions: SessionsOver<OwnerGone>) =>
          Effect.succeed({ sessions, instance: String(found.epoch) } satisfies Current),
      })
    })

  const again = (find: Effect.Effect<Holder, Failure>, until: number): Effect.Effect<Current, Failure> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now >= until ? Effect.fail(notServed) : Effect.delay(holder(find, until), pauseMs),
    )

  const callAt =
    (find: Effect.Effect<Holder, Failure>) =>
    <A>(use: Use<A>): Effect.Effect<A, Failure> => {
      const attempt = (repeated: boolean, until: number): Effect.Effect<A, Failure> =>
        Effect.flatMap(holder(find, until), ({ sessions }) =>
          Effect.catchAll(use(sessions, repeated), (error): Effect.Effect<A, Failure> => {
            if (error instanceof OwnerGone) return Effect.delay(attempt(true, until), pauseMs)
            if (!isMoved(error)) return Effect.fail(error)
            return Effect.flatMap(Clock.currentTimeMillis, (now) =>
              now >= until ? Effect.fail(notServed) : Effect.delay(attempt(repeated, until), pauseMs),
            )
          }),
        )
      return Effect.flatMap(Clock.currentTimeMillis, (now) => attempt(false, now + patienceMs))
    }

  const via = (find: Effect.Effect<Holder, Failure>): SessionsService =>
    deriveSessions({
      call: callAt(find),
      watch: watchAcross(
        (not) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            not === null ? holder(find, now + patienceMs) : Effect.delay(holder(find, now + patienceMs), pauseMs),
          ),
        "another node took the conversation over",
      ),
    })

  // Asked anew at every attempt.
  const at = (id: ConversationId): SessionsService => via(Effect.suspend(() => whereabouts.ofConversation(id)))
  /** Where the conversation of a task is; here where there is none, which says so. */
  const atTask = (id: TaskId): Effect.Effect<SessionsService, Failure> =>
    Effect.map(whereabouts.conversationOf(id), (conversation) => (conversation === null ? here : at(conversation)))

  return {
    ...here,
    open: (payload) =>
      payload.conversationId === null ? here.open(payload) : at(payload.conversationId).open(payload),
    submit: (payload) => at(payload.conversationId).submit(payload),
    write: (payload) => at(payload.conversationId).write(payload),
    reset: (payload) => at(payload.conversationId).reset(payload),
    withdraw: (payload) => at(payload.conversationId).withdraw(payload),
    awaitSubmission: (payload) => at(payload.conversationId).awaitSubmission(payload),
    watch: (payload) => at(payload.conversationId).watch(payload),
    cancel: (payload) => at(payload.conversationId).cancel(payload),
    state: (payload) => at(payload.conversationId).state(payload),
    configure: (payload) => at(payload.conversationId).configure(payload),
    remove: (payload) => at(payload.conversationId).remove(payload),
    compact: (payload) => at(payload.conversationId).compact(payload),
    retry: (payload) => at(payload.conversationId).retry(payload),
    undo: (payload) => at(payload.conversationId).undo(payload),
    answer: (payload) => Effect.flatMap(atTask(payload.questionId), (sessions) => sessions.answer(payload)),
    settleEffect: (payload) => Effect.flatMap(atTask(payload.taskId), (sessions) => sessions.settleEffect(payload)),
    changeTask: (payload) => via(Effect.suspend(() => whereabouts.ofTask(payload.change.task))).changeTask(payload),
    addMcpServers: (payload) => at(payload.conversationId).addMcpServers(payload),
    mcpServers: (payload) =>
      payload.conversationId === null ? here.mcpServers(payload) : at(payload.conversationId).mcpServers(payload),
    restartMcpServer: (payload) =>
      payload.conversationId === null
        ? here.restartMcpServer(payload)
        : at(payload.conversationId).restartMcpServer(payload),
  }
}
