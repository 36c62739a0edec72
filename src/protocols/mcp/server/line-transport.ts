/**
 * MCP over two streams: one message a line. A line that is no message is answered with the protocol's error and ends nothing. Bounds: one
 * unfinished line, `maxRequests` requests at work, and no reading while the peer does not read.
 *
 *   started → reading → the input ended → the last answers, for a while at most → over
 */
import type { Readable, Writable } from "node:stream"
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from "@modelcontextprotocol/server"
import { Deferred, Effect, FiberId } from "effect"
import { isRecord } from "../../../domain/json.ts"
import { maxDepth, maxLine, nestsDeeper } from "../../jsonrpc/message.ts"
import { makeInlet } from "../../socket/inlet.ts"
import { decodeText, type Line, makeLineSplitter } from "../../socket/lines.ts"
import { makeOutlet } from "../../socket/outlet.ts"

/** Requests of one client that are at work at once. */
const maxRequests = 256
/** Messages of one batch, which only the oldest clients send. */
const maxBatch = 100
/** How long requests may still work once the client said its last, in ms: clients wait for 2,000 before they send a signal. */
const defaultLastAnswersMs = 1_500

const parseError = -32700
const invalidRequest = -32600
const internalError = -32603

export interface LineTransport extends Transport {
  /** Reads until the client has ended its side and has its answers, or is gone. */
  readonly run: Effect.Effect<void>
}

interface Refusal {
  readonly id: string | number | null
  readonly code: number
  readonly message: string
}

type Read =
  | { readonly type: "messages"; readonly values: ReadonlyArray<unknown> }
  | { readonly type: "refused"; readonly refusal: Refusal }
  | { readonly type: "nothing" }

const refused = (code: number, message: string, id: Refusal["id"] = null): Read => ({
  type: "refused",
  refusal: { id, code, message },
})

/** What a line holds. Pure. */
const readLine = (line: Line): Read => {
  if (line.type === "tooLong") return refused(parseError, `Parse error: the line is longer than ${maxLine} bytes`)
  const text = decodeText(line.bytes)
  if (text === null) return refused(parseError, "Parse error: the line is not UTF-8")
  if (text.trim() === "") return { type: "nothing" }
  if (nestsDeeper(text, maxDepth)) return refused(parseError, `Parse error: nested deeper than ${maxDepth} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    return refused(parseError, `Parse error: ${cause instanceof Error ? cause.message : "not JSON"}`)
  }
  if (!Array.isArray(value)) return { type: "messages", values: [value] }
  const values: ReadonlyArray<unknown> = value
  return values.length >= 1 && values.length <= maxBatch
    ? { type: "messages", values }
    : refused(invalidRequest, `Invalid Request: batch: expected 1 to ${maxBatch} messages, got ${values.length}`)
}

/** The id under which an invalid message can be answered. */
const idOf = (value: unknown): Refusal["id"] => {
  const id = isRecord(value) ? value.id : null
  return typeof id === "string" || (typeof id === "number" && Number.isSafeInteger(id)) ? id : null
}

const messageOf = (value: unknown): JSONRPCMessage | Refusal => {
  try {
    return parseJSONRPCMessage(value)
  } catch {
    const message = "Invalid Request: expected a JSON-RPC 2.0 request, notification or response"
    return { id: idOf(value), code: invalidRequest, message }
  }
}

export interface LineStreams {
  readonly input: Readable
  readonly output: Writable
  /** How long requests may still work once the input has ended, in ms. Default 1,500. */
  readonly lastAnswersMs?: number
}

export const makeLineTransport = (streams: LineStreams): LineTransport => {
  const { lastAnswersMs = defaultLastAnswersMs } = streams
  const outlet = makeOutlet(streams.output, { endable: false })
  const inlet = makeInlet(streams.input)
  const splitter = makeLineSplitter(maxLine)
  const closed = Deferred.unsafeMake<void>(FiberId.none)
  const open = new Set<string | number>()
  let isClosed = false
  let quiet: (() => void) | null = null

  const settle = (id: unknown): void => {
    if (typeof id === "string" || typeof id === "number") open.delete(id)
    if (open.size === 0) quiet?.()
  }

  const write = (message: unknown): Effect.Effect<void> =>
    Effect.andThen(outlet.room, () => outlet.write(`${JSON.stringify(message)}\n`))

  const refuse = ({ code, id, message }: Refusal) => write({ jsonrpc: "2.0", id, error: { code, message } })

  const deliver = (value: unknown): Effect.Effect<void> =>
    Effect.suspend(() => {
      const message = messageOf(value)
      if ("code" in message) return refuse(message)
      if ("method" in message && "id" in message) {
        if (open.size >= maxRequests) {
          const busy = `expected at most ${maxRequests} requests at once, wait for some answers`
          return refuse({ id: message.id, code: internalError, message: busy })
        }
        open.add(message.id)
      } else if ("method" in message && message.method === "notifications/cancelled") {
        // A request that was cancelled is not answered any more.
        settle(message.params?.requestId)
      }
      transport.onmessage?.(message)
      return Effect.void
    })

  const take = (line: Line): Effect.Effect<void> => {
    const read = readLine(line)
    if (read.type === "nothing") return Effect.void
    if (read.type === "refused") return refuse(read.refusal)
    return Effect.forEach(read.values, deliver, { discard: true })
  }

  const reading = Effect.gen(function* () {
    while (true) {
      yield* outlet.room
      const chunk = yield* inlet
      const last = chunk === null ? splitter.end() : null
      for (const line of chunk === null ? (last === null ? [] : [last]) : splitter.push(chunk)) yield* take(line)
      if (chunk === null) return
    }
  })

  const answered = Effect.async<void>((resume) => {
    if (open.size === 0) return resume(Effect.void)
    quiet = () => resume(Effect.void)
    return Effect.sync(() => {
      quiet = null
    })
  })

  const transport: LineTransport = {
    run: Effect.raceFirst(
      Effect.raceFirst(Effect.zipRight(reading, Effect.timeoutOption(answered, lastAnswersMs)), outlet.closed),
      Deferred.await(closed),
    ).pipe(Effect.asVoid, Effect.ensuring(Effect.interruptible(outlet.end))),
    start: () => Promise.resolve(),
    send: (message) => {
      if (isClosed) return Promise.reject(new Error("the connection is closed"))
      return Effect.runPromise(
        Effect.zipRight(
          write(message),
          Effect.sync(() => ("method" in message ? undefined : settle(message.id))),
        ),
      )
    },
    close: () => {
      if (isClosed) return Promise.resolve()
      isClosed = true
      Deferred.unsafeDone(closed, Effect.void)
      transport.onclose?.()
      return Promise.resolve()
    },
  }
  return transport
}
