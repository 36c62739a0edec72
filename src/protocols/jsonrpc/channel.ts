/**
 * What a JSON-RPC connection runs over: messages in, messages out, with back-pressure in both directions. Here as lines over two streams;
 * `websocket.ts` has the other kind.
 */
import type { Readable, Writable } from "node:stream"
import { Effect } from "effect"
import { makeInlet } from "../socket/inlet.ts"
import { decodeText, type Line, makeLineSplitter } from "../socket/lines.ts"
import { makeOutlet, type Outlet } from "../socket/outlet.ts"
import { maxLine } from "./message.ts"

/** One message as it came, or why it cannot be read. */
export type Received =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "unreadable"; readonly reason: string }

export interface Channel {
  /** The next messages, or null at their end. Not asked, it stops the peer. */
  readonly receive: Effect.Effect<ReadonlyArray<Received> | null>
  /** Its `write` takes one whole message. */
  readonly outlet: Outlet
  /** Ends it at once, whatever waits. Safe to call again. */
  readonly destroy: Effect.Effect<void>
}

export interface Duplex {
  readonly input: Readable
  readonly output: Writable
  /** Whether the output is ended with the connection (not a process's stdout). */
  readonly endable: boolean
}

const received = (line: Line): Received => {
  if (line.type === "tooLong") return { type: "unreadable", reason: `the line is longer than ${maxLine} bytes` }
  const text = decodeText(line.bytes)
  return text === null ? { type: "unreadable", reason: "the line is not UTF-8" } : { type: "text", text }
}

/** One message per line, of at most {@link maxLine} bytes. */
export const lineChannel = (duplex: Duplex): Channel => {
  const outlet = makeOutlet(duplex.output, { endable: duplex.endable })
  const inlet = makeInlet(duplex.input)
  const splitter = makeLineSplitter(maxLine)
  let ended = false
  return {
    outlet: { ...outlet, write: (text) => outlet.write(`${text}\n`) },
    receive: Effect.suspend(() => {
      if (ended) return Effect.succeed(null)
      return Effect.map(inlet, (chunk) => {
        if (chunk !== null) return splitter.push(chunk).map(received)
        ended = true
        const last = splitter.end()
        return last === null ? null : [received(last)]
      })
    }),
    destroy: Effect.sync(() => {
      if (!duplex.endable) return
      duplex.input.destroy()
      duplex.output.destroy()
    }),
  }
}
