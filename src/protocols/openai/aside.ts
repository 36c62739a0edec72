/**
 * Questions that a client asks beside its session (OpenCode's titles and summaries): each has a conversation of its own, without tools, which
 * is deleted when it was answered.
 */
import { Effect, Schedule } from "effect"
import type { ProtocolService } from "../service.ts"
import type { ChatAsked } from "./chat-request.ts"
import type { Room } from "./session.ts"

/** A conversation is busy for a moment after its answer. */
const soon = Schedule.spaced("100 millis").pipe(Schedule.intersect(Schedule.recurs(50)))

/** Deletes the conversation behind an aside, whatever became of it. */
export const forget =
  ({ sessions }: ProtocolService, { aside }: Pick<ChatAsked, "aside">, { target }: Pick<Room, "target">) =>
  <A, E, R>(answered: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    aside
      ? Effect.ensuring(answered, Effect.forkDaemon(Effect.ignore(Effect.retry(sessions.remove(target), soon))))
      : answered
