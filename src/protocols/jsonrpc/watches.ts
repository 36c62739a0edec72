/**
 * The watches of one connection. Each owns a subscription fiber that reads the conversation's events as fast as they come and a buffer
 * (`watch-buffer.ts`) that says what goes out when. Three things send: an event that came, an acknowledgement, and room in the outlet. All
 * of them run on the one event loop without yielding between looking at a buffer and replacing it.
 */

import type { Scope } from "effect"
import { Cause, Effect, Exit, Fiber, FiberSet, Option, Stream } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import { Busy, type Failure, NotFound } from "../../domain/failure.ts"
import type { Outlet } from "../socket/outlet.ts"
import { errorOf } from "./errors.ts"
import { type RpcError, renderNotification } from "./message.ts"
import {
  acknowledge,
  canResume,
  type Delivery,
  emptyBuffer,
  inFlight,
  offer,
  resume,
  take,
  type WatchBuffer,
} from "./watch-buffer.ts"

/** Watches that one connection may have. */
const watchLimit = 64

/** What is watched, from which event on, and whether the client can answer questions. */
type WatchTarget = Target & { readonly after: number | null; readonly interactive?: boolean }

export interface Watches {
  /** Registers a watch; its events start with `start`, which comes after the answer that names it. */
  readonly open: (
    target: WatchTarget,
  ) => Effect.Effect<{ readonly watchId: string; readonly start: Effect.Effect<void> }, Failure>
  readonly acknowledge: (
    watchId: string,
    delivery: number,
  ) => Effect.Effect<{ readonly acknowledged: number; readonly inFlight: number }, Failure>
  readonly close: (watchId: string) => Effect.Effect<{ readonly stopped: boolean }>
}

interface Watch {
  readonly id: string
  readonly target: WatchTarget
  buffer: WatchBuffer
  subscription: Fiber.RuntimeFiber<void> | null
  /** How the stream ended, to be told once everything before it is out. */
  ended: { readonly error: RpcError | null } | null
}

/** What the watches need of the connection. */
export interface WatchesOptions {
  readonly sessions: SessionsService
  readonly outlet: Outlet
  /** Logs a fault and answers what the client is told. */
  readonly fault: (cause: Cause.Cause<unknown>) => Effect.Effect<RpcError>
}

/** The watches of one connection; the scope's end ends them all. */
export const makeWatches = (options: WatchesOptions): Effect.Effect<Watches, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { sessions, outlet, fault } = options
    const fork = yield* FiberSet.makeRuntime<never>()
    const watches = new Map<string, Watch>()
    let counter = 0

    const send = (watch: Watch, { delivery, gap, events }: Delivery) => {
      const head = `{"watchId":${JSON.stringify(watch.id)},"conversationId":${watch.target.conversationId}`
      const params = `${head},"delivery":${delivery},"gap":${gap},"events":[${events.join(",")}]}`
      outlet.write(renderNotification("session.event", params))
    }

    /** Sends what the rules allow, as long as the outlet has room. */
    const flush = (watch: Watch) => {
      while (outlet.hasRoom() && watches.has(watch.id)) {
        const next = take(watch.buffer)
        if (next === null) break
        watch.buffer = next[1]
        send(watch, next[0])
      }
      if (watch.ended === null || watch.buffer.waiting.length > 0 || !watches.delete(watch.id)) return
      const ended = { watchId: watch.id, conversationId: watch.target.conversationId, error: watch.ended.error }
      outlet.write(renderNotification("session.watch_ended", JSON.stringify(ended)))
    }

    /** How a subscription's end is told, or that it was lost and may start over. */
    const finish = (watch: Watch, exit: Exit.Exit<void, Failure>): Effect.Effect<void> =>
      Effect.gen(function* () {
        watch.subscription = null
        if (!watches.has(watch.id)) return
        if (watch.buffer.lost) return revive(watch)
        if (Exit.isSuccess(exit)) watch.ended = { error: null }
        else {
          const failure = Cause.failureOption(exit.cause)
          watch.ended = { error: Option.isSome(failure) ? errorOf(failure.value) : yield* fault(exit.cause) }
        }
        flush(watch)
      })

    /** Reads events until the stream ends, the buffer is lost or the watch is closed. Never waits for the client. */
    const subscribe = (watch: Watch, after: number | null) => {
      const events = sessions.watch({ ...watch.target, after }).pipe(
        // By chunk: a step per event would cost more than the event.
        Stream.runForEachChunk((events) =>
          Effect.suspend(() => {
            for (const event of events) {
              watch.buffer = offer(watch.buffer, JSON.stringify(event))
              flush(watch)
              if (watch.buffer.lost) return Effect.interrupt
            }
            return Effect.void
          }),
        ),
        Effect.exit,
        Effect.flatMap((exit) => finish(watch, exit)),
      )
      watch.subscription = fork(Effect.zipRight(Effect.yieldNow(), events))
    }

    /** Starts a lost watch over once a delivery could go out and its old subscription has ended. */
    const revive = (watch: Watch) => {
      if (!canResume(watch.buffer) || watch.subscription !== null || !outlet.hasRoom()) return
      watch.buffer = resume(watch.buffer)
      subscribe(watch, null)
    }

    outlet.onRoom(() => {
      for (const watch of [...watches.values()]) {
        flush(watch)
        revive(watch)
      }
    })

    const find = (watchId: string): Effect.Effect<Watch, NotFound> =>
      Effect.suspend(() => {
        const watch = watches.get(watchId)
        return watch === undefined ? new NotFound({ what: `watch ${watchId.slice(0, 60)}` }) : Effect.succeed(watch)
      })

    return {
      open: (target) =>
        Effect.suspend(() => {
          if (watches.size >= watchLimit) {
            const detail = `expected at most ${watchLimit} watches, end one with session.unwatch`
            return new Busy({ what: "connection", detail, retryAfterMs: null })
          }
          const watch: Watch = { id: `w${++counter}`, target, buffer: emptyBuffer, subscription: null, ended: null }
          watches.set(watch.id, watch)
          return Effect.succeed({ watchId: watch.id, start: Effect.sync(() => subscribe(watch, target.after)) })
        }),
      acknowledge: (watchId, delivery) =>
        Effect.gen(function* () {
          const watch = yield* find(watchId)
          watch.buffer = acknowledge(watch.buffer, delivery)
          flush(watch)
          revive(watch)
          return { acknowledged: watch.buffer.acknowledged, inFlight: inFlight(watch.buffer) }
        }),
      close: (watchId) =>
        Effect.gen(function* () {
          const watch = watches.get(watchId)
          if (watch === undefined) return { stopped: false }
          watches.delete(watchId)
          if (watch.subscription !== null) yield* Fiber.interruptFork(watch.subscription)
          return { stopped: true }
        }),
    }
  })
