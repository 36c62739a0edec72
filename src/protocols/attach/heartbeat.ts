/**
 * Tells when the other side of a connection has been silent for too long. One belongs to one connection.
 */
import { Effect } from "effect"

/**
 * Beats in a row without a sign of life after which the other side is taken for gone. More than one, since a process that was stopped itself
 * finds its timer before the answers that wait for it.
 */
const missesLimit = 2

export interface Heartbeat {
  /** Something came from the other side. */
  readonly sign: () => void
  /** Completes once the other side has been silent for two to three beats. */
  readonly silence: Effect.Effect<void>
}

/** A beat each `everyMs` milliseconds, the first one at once; `beat` may ask the other side for a sign. */
export const makeHeartbeat = (everyMs: number, beat?: () => void): Heartbeat => {
  let misses = 0
  const silence: Effect.Effect<void> = Effect.suspend(() => {
    if (misses >= missesLimit) return Effect.void
    misses++
    beat?.()
    return Effect.zipRight(Effect.sleep(everyMs), silence)
  })
  return {
    sign: () => {
      misses = 0
    },
    silence,
  }
}
