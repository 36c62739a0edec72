/**
 * A watch that outlives whoever serves it: when that one goes, it goes on with the next. The same life of an owner still has the tail (it
 * resumes behind the last event that was seen); another one does not, so its snapshot comes behind a `stream_reset`.
 */
import { Effect, Stream } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import type { Event } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"
import { isMoved } from "../../domain/moved.ts"
import type { OwnerGone, SessionsOver } from "./attachment.ts"

/** The service that is current, for one generation of ownership. */
export interface Current {
  readonly sessions: SessionsOver<OwnerGone>
  /** Two generations with the same instance are the same life of one owner. */
  readonly instance: string
}

/** `owner` gives the one to ask now, other than `not`; `reason` is told to whoever watches when it is another one. */
export const watchAcross =
  (owner: (not: Current | null) => Effect.Effect<Current, Failure>, reason: string): SessionsService["watch"] =>
  (payload) => {
    let last = payload.after
    let seen: string | null = null
    const segment = (not: Current | null): Stream.Stream<Event, Failure> =>
      Stream.unwrap(
        Effect.map(owner(not), (current) => {
          const fresh = seen !== null && seen !== current.instance
          seen = current.instance
          let marked = !fresh
          return current.sessions.watch({ ...payload, after: fresh ? null : last }).pipe(
            Stream.mapConcat((event): ReadonlyArray<Event> => {
              last = event.seq_no
              if (marked) return [event]
              marked = true
              return [resetBefore(event, reason), event]
            }),
            Stream.catchAll((error) =>
              error._tag === "OwnerGone" || isMoved(error) ? segment(current) : Stream.fail(error),
            ),
          )
        }),
      )
    return Stream.suspend(() => segment(null))
  }

/** Marks that what follows is told by another owner: whatever was streamed before and not completed is void. */
const resetBefore = (event: Event, reason: string): Event => ({
  type: "stream_reset",
  reason,
  v: 1,
  conversation_id: event.conversation_id,
  turn_id: null,
  timestamp_ms: event.timestamp_ms,
  seq_no: event.seq_no,
})
