/**
 * The reading side of a connection: one chunk at a time, on demand. Owner of the stream's reading events; the stream is paused
 * whenever nobody asks, so a reader that stops asking stops the peer.
 */

import type { Readable } from "node:stream"
import { Effect } from "effect"

/** The next chunk, or null once the peer sent its last byte or the stream broke. */
export type Inlet = Effect.Effect<Uint8Array | null>

/** `stream` must be in bytes (no encoding set). Only one fiber may ask at a time. */
export const makeInlet = (stream: Readable): Inlet => {
  let ended = stream.readableEnded || stream.destroyed
  let wake: (() => void) | null = null
  const notify = () => {
    const waiting = wake
    wake = null
    waiting?.()
  }
  const finish = () => {
    ended = true
    notify()
  }
  stream.on("readable", notify)
  stream.on("end", finish)
  stream.on("close", finish)
  stream.on("error", finish)

  const next = (): Uint8Array | null => {
    const chunk: unknown = stream.read()
    return chunk instanceof Uint8Array ? chunk : null
  }

  const take: Inlet = Effect.suspend(() => {
    const chunk = next()
    if (chunk !== null || ended) return Effect.succeed(chunk)
    return Effect.flatMap(
      Effect.async<void>((resume) => {
        // Bytes may have come since the look above.
        if (ended || stream.readableLength > 0) return resume(Effect.void)
        wake = () => resume(Effect.void)
        return Effect.sync(() => {
          wake = null
        })
      }),
      () => take,
    )
  })
  return take
}
