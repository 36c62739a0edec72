/**
 * The writing side of a connection with back-pressure. Owner of the stream's `drain`, `close` and `error` events. Once more than
 * `highWater` bytes wait in the stream, `room` waits until they have gone out; after the stream closed everything written is dropped and
 * `room` completes, since nobody is there to read it.
 */

import type { Writable } from "node:stream"
import { Deferred, Effect, FiberId } from "effect"
import { makeRoom } from "./room.ts"

/** Bytes that may wait in a stream before its connection stops reading requests: 1 MiB. */
const highWater = 1024 * 1024

export interface Outlet {
  /** Hands text over to the stream at once; it waits there. Callers wait for `room` first, or are bounded otherwise. */
  readonly write: (text: string) => void
  /** Whether less than the high water mark waits. */
  readonly hasRoom: () => boolean
  /** Waits until there is room, or the stream is closed. */
  readonly room: Effect.Effect<void>
  /** Completes when the stream is closed. */
  readonly closed: Effect.Effect<void>
  /** Sends what waits and ends the stream; completes when it went out or the stream closed. */
  readonly end: Effect.Effect<void>
  /** Registers something to call whenever there is room again. */
  readonly onRoom: (listener: () => void) => void
}

/** `endable: false` leaves the stream open at `end` (a process's stdout). */
export const makeOutlet = (stream: Writable, options: { readonly endable: boolean }): Outlet => {
  const closed = Deferred.unsafeMake<void>(FiberId.none)
  let isClosed = stream.destroyed
  const listeners: Array<() => void> = []
  const hasRoom = () => isClosed || stream.writableLength < highWater
  const { wait, wake } = makeRoom(hasRoom)
  const close = () => {
    if (isClosed) return
    isClosed = true
    Deferred.unsafeDone(closed, Effect.void)
    wake()
  }
  if (isClosed) Deferred.unsafeDone(closed, Effect.void)
  stream.on("close", close)
  // A peer that went away (EPIPE, ECONNRESET) is an ordinary end.
  stream.on("error", close)

  // `drain` may only come once the stream's own mark is passed and all is out, so every write looks again when it has gone out.
  const sent = () => {
    if (!hasRoom()) return
    wake()
    for (const listener of listeners) listener()
  }

  return {
    write: (text) => {
      if (!isClosed && !stream.writableEnded) stream.write(text, sent)
    },
    hasRoom,
    room: wait,
    closed: Deferred.await(closed),
    end: Effect.suspend(() => {
      if (isClosed) return Effect.void
      const flushed = Effect.async<void>((resume) => {
        if (options.endable) stream.end(() => resume(Effect.void))
        else stream.write("", () => resume(Effect.void))
      })
      return Effect.raceFirst(flushed, Deferred.await(closed))
    }),
    onRoom: (listener) => {
      listeners.push(listener)
    },
  }
}
