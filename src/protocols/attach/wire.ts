/**
 * Messages of the attach protocol on a connection, both sides: `@effect/rpc` messages as JSON, one per line, after one greeting
 * line each way. (The library's own line format decodes every chunk of bytes for itself, which breaks a character that two chunks share.)
 */
import type { Socket } from "node:net"
import { Effect } from "effect"
import { type Inlet, makeInlet } from "../socket/inlet.ts"
import { decodeText, type Line, makeLineSplitter } from "../socket/lines.ts"
import { makeOutlet, type Outlet } from "../socket/outlet.ts"

/** Bytes that a message may have: 256 MiB; both sides are this program, and a transcript may be long. */
const maxMessage = 256 * 1024 * 1024

export interface Wire {
  readonly outlet: Outlet
  /** Sends a message once there is room. */
  readonly send: (message: object) => Effect.Effect<void>
  /** The text of the next line; null once the peer is gone or sent something that is no line of ours. */
  readonly line: Effect.Effect<string | null>
  /** From now on lines may be as long as a message. */
  readonly widen: () => void
  readonly close: Effect.Effect<void>
}

/** The wire of one socket. Only one fiber may read. Lines may have `limit` bytes, default those of a message. */
export const makeWire = (socket: Socket, limit: number = maxMessage): Wire => {
  const outlet = makeOutlet(socket, { endable: true })
  const inlet: Inlet = makeInlet(socket)
  let splitter = makeLineSplitter(limit)
  let lines: Array<Line> = []

  const line: Effect.Effect<string | null> = Effect.suspend(() => {
    const next = lines.shift()
    if (next !== undefined) return Effect.succeed(next.type === "line" ? decodeText(next.bytes) : null)
    return Effect.flatMap(inlet, (chunk) => {
      if (chunk === null) return Effect.succeed(null)
      lines = [...splitter.push(chunk)]
      return line
    })
  })

  return {
    outlet,
    send: (message) => Effect.andThen(outlet.room, () => outlet.write(`${JSON.stringify(message)}\n`)),
    line,
    widen: () => {
      const begun = splitter.end()
      splitter = makeLineSplitter(maxMessage)
      if (begun?.type === "line") splitter.push(begun.bytes)
    },
    close: Effect.sync(() => socket.destroy()),
  }
}

/** Hands over the messages of the other side, one after the other, until there are no more or one is not `expected`. */
export const receive = <M>(
  wire: Wire,
  expected: (message: { readonly _tag: string }) => message is { readonly _tag: string } & M,
  handle: (message: M) => Effect.Effect<void>,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (true) {
      const line = yield* wire.line
      const message = line === null ? null : parseMessage(line)
      if (message === null || !expected(message)) return
      yield* handle(message)
    }
  })

/** A message of the other side, or null when the line is none. */
const parseMessage = (line: string): { readonly _tag: string } | null => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "object" && value !== null && "_tag" in value && typeof value._tag === "string"
      ? { ...value, _tag: value._tag }
      : null
  } catch {
    return null
  }
}
