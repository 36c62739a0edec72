/**
 * The sessions of a node that can stop taking turns. What is begun goes on, what is read is answered, and whoever wants a new turn is told to
 * come back.
 *
 *   open → closed (for good): calls that begin a turn fail `Busy` at once; those that were let in are counted until they have answered
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { Busy, type Failure } from "../domain/failure.ts"

/** When a client that was sent away comes back, in ms: to another node, or to the next life of this one. */
const comeBackMs = 2_000

const draining = new Busy({
  what: "node",
  detail: "it is draining and takes no new turns",
  retryAfterMs: comeBackMs,
})

export interface Gate {
  readonly sessions: SessionsService
  readonly close: () => void
  /** Calls that were let in and have not answered yet. */
  readonly inFlight: () => number
}

export const makeGate = (sessions: SessionsService): Gate => {
  let closed = false
  let running = 0
  const gated = <A>(call: Effect.Effect<A, Failure>): Effect.Effect<A, Failure> =>
    Effect.suspend(() => {
      if (closed) return Effect.fail(draining)
      running += 1
      return Effect.ensuring(
        call,
        Effect.sync(() => {
          running -= 1
        }),
      )
    })
  return {
    close: () => {
      closed = true
    },
    inFlight: () => running,
    sessions: {
      ...sessions,
      open: (payload) => (payload.conversationId === null ? gated(sessions.open(payload)) : sessions.open(payload)),
      fork: (payload) => gated(sessions.fork(payload)),
      submit: (payload) => gated(sessions.submit(payload)),
      compact: (payload) => gated(sessions.compact(payload)),
      retry: (payload) => gated(sessions.retry(payload)),
    },
  }
}
