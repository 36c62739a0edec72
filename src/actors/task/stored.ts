/**
 * Storage for code that nobody waits for: what is unavailable is tried again until it is back, everything else is a defect.
 */
import { Effect } from "effect"
import type { CommitError, ReadError } from "../../storage/errors.ts"

/** First wait before another attempt, doubled up to the second figure, in ms. */
const retryMs = [100, 2_000] as const

/** `Conflict` and `Fenced` stay failures where the effect declares them. */
export const untilStored = <A, E extends CommitError | ReadError>(
  effect: Effect.Effect<A, E>,
): Effect.Effect<A, Exclude<E, { readonly _tag: "StorageUnavailable" | "CorruptRow" }>> => {
  type Rest = Exclude<E, { readonly _tag: "StorageUnavailable" | "CorruptRow" }>
  const attempt = (waitMs: number): Effect.Effect<A, Rest> =>
    Effect.catchAll(effect, (error): Effect.Effect<A, Rest> => {
      switch (error._tag) {
        case "StorageUnavailable": {
          const log = Effect.logWarning(`storage is out of order (${error.message}); it is tried again`)
          return log.pipe(
            Effect.zipRight(Effect.sleep(waitMs)),
            Effect.zipRight(attempt(Math.min(waitMs * 2, retryMs[1]))),
          )
        }
        case "CorruptRow":
          return Effect.die(error)
        default:
          return Effect.fail(error as Rest) // what the two cases above leave
      }
    })
  return attempt(retryMs[0])
}
