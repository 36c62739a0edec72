/**
 * A watch that a slow reader cannot hold up: events are taken as fast as they come into a buffer of at most `capacity`. When more wait
 * than fit, all that wait are dropped and the subscription ends; once the reader asks again, a new one starts, whose first event is a
 * fresh snapshot. One reader per relay.
 */
import { Cause, Chunk, Effect, Exit, FiberSet, Option, Stream } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { Event } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"

/** Events that wait for a reader before it gets a snapshot instead. */
const relayCapacity = 4096

export const relayWatch = (
  sessions: Pick<SessionsService, "watch">,
  payload: Target & { readonly after: number | null; readonly interactive?: boolean },
  capacity: number = relayCapacity,
): Stream.Stream<Event, Failure> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const fork = yield* FiberSet.makeRuntime<never>()
      const available = yield* Effect.makeLatch(false)
      let waiting: Array<Event> = []
      let lost = false
      let ended: Exit.Exit<void, Failure> | null = null

      const subscribe = (after: number | null) => {
        lost = false
        let dropped = false
        const read = sessions.watch({ ...payload, after }).pipe(
          // By chunk: a step per event would cost more than the event.
          Stream.runForEachChunk((events) =>
            Effect.suspend(() => {
              available.unsafeOpen()
              for (const event of events) {
                if (waiting.length < capacity) waiting.push(event)
                else dropped = true
              }
              if (!dropped) return Effect.void
              waiting = []
              lost = true
              return Effect.interrupt
            }),
          ),
          Effect.exit,
          Effect.flatMap((exit) =>
            Effect.sync(() => {
              if (!dropped) ended = exit
              available.unsafeOpen()
            }),
          ),
        )
        fork(read)
      }

      subscribe(payload.after)

      const pull: Effect.Effect<Chunk.Chunk<Event>, Option.Option<Failure>> = Effect.suspend(() => {
        if (waiting.length > 0) {
          const chunk = Chunk.unsafeFromArray(waiting)
          waiting = []
          return Effect.succeed(chunk)
        }
        if (ended !== null) {
          return Exit.isSuccess(ended)
            ? Effect.fail(Option.none())
            : Effect.failCause(Cause.map(ended.cause, Option.some))
        }
        if (lost) subscribe(null)
        available.unsafeClose()
        return Effect.zipRight(available.await, pull)
      })
      return Stream.repeatEffectChunkOption(pull)
    }),
  )
