/**
 * The transport: two byte streams as the stream of messages that the SDK speaks over. It owns the framing and its bounds: one unfinished line
 * of at most {@link maxLine} bytes, {@link maxDepth} levels, {@link requestLimit} requests that are not answered yet, and no reading while
 * the editor does not read. A line that is no message is answered and the connection lives. When the editor has ended its side, what it
 * asked is still answered, prompts excepted.
 */
import type { Readable, Writable } from "node:stream"
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import { isRecord } from "../../domain/json.ts"
import { maxDepth, maxLine, nestsDeeper } from "../jsonrpc/message.ts"
import { makeInlet } from "../socket/inlet.ts"
import { decodeText, type Line, makeLineSplitter } from "../socket/lines.ts"
import { makeOutlet, type Outlet } from "../socket/outlet.ts"
import { firstFault } from "./errors.ts"

/** Requests of an editor that run at once; further ones are answered busy. */
const requestLimit = 256

type Id = string | number | null

type Read =
  | { readonly message: AnyMessage }
  | { readonly id: Id; readonly error: { readonly code: number; readonly message: string } }

const parseError = (reason: string): Read => ({ id: null, error: { code: -32700, message: `Parse error: ${reason}` } })
const invalidRequest = (reason: string, id: Id = null): Read => ({
  id,
  error: { code: -32600, message: `Invalid Request: ${reason}` },
})

const isId = (value: unknown): value is Id =>
  value === null || typeof value === "string" || (typeof value === "number" && Number.isFinite(value))

/** What a line holds; null for a blank one. Never throws. */
export const readLine = (line: Line): Read | null => {
  if (line.type === "tooLong") return parseError(`the line is longer than ${maxLine} bytes`)
  const text = decodeText(line.bytes)
  if (text === null) return parseError("the line is not UTF-8")
  if (text.trim() === "") return null
  if (nestsDeeper(text, maxDepth)) return parseError(`nested deeper than ${maxDepth} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return parseError("the line is not JSON")
  }
  if (Array.isArray(value)) return invalidRequest("expected one message, got an array: batches are not supported")
  if (!isRecord(value)) return invalidRequest("expected an object")
  if ("id" in value && !isId(value.id)) return invalidRequest("id: expected a string, a number or null")
  const id = isId(value.id) ? value.id : null
  if (value.jsonrpc !== "2.0") return invalidRequest('jsonrpc: expected "2.0"', id)
  const isCall = typeof value.method === "string"
  if (!isCall && ("method" in value || !("id" in value))) return invalidRequest("method: expected a string", id)
  // What was checked is what a message is; an answer is checked by who asked.
  return { message: value as unknown as AnyMessage }
}

/** An answer as it goes out: one that refuses parameters says which, and what was expected. */
const told = (message: AnyMessage): AnyMessage => {
  if (!("error" in message) || message.error.code !== -32602) return message
  const fault = firstFault(message.error.data)
  return fault === null ? message : { ...message, error: { ...message.error, message: `Invalid params: ${fault}` } }
}

/** The messages of one connection. `closed` completes when nobody reads any more. */
export const makeStream = (streams: {
  readonly input: Readable
  readonly output: Writable
  readonly endable: boolean
}): { readonly stream: Stream; readonly closed: Effect.Effect<void> } => {
  const outlet: Outlet = makeOutlet(streams.output, { endable: streams.endable })
  const inlet = makeInlet(streams.input)
  const splitter = makeLineSplitter(maxLine)
  /** Requests that are not answered, with whether they are waited for at the end. */
  const open = new Map<unknown, boolean>()
  let answered: (() => void) | null = null
  let lines: ReadonlyArray<Line> = []
  let at = 0
  let ended = false

  const write = (message: unknown) => outlet.write(`${JSON.stringify(message)}\n`)
  const refuse = (id: unknown, error: object) => write({ jsonrpc: "2.0", id, error })

  /** Whether the message is to be handled. */
  const admit = (message: AnyMessage): boolean => {
    if (!("method" in message) || !("id" in message)) return true
    if (open.size >= requestLimit) {
      const text = `connection is busy: expected at most ${requestLimit} running requests, wait for some answers`
      refuse(message.id, { code: -32004, message: text, data: { what: "connection", retryAfterMs: null } })
      return false
    }
    open.set(message.id, message.method !== "session/prompt")
    return true
  }

  const waiting = (): boolean => [...open.values()].some((counts) => counts)

  const settled = Effect.async<void>((resume) => {
    const look = () => {
      if (waiting()) return
      answered = null
      resume(Effect.void)
    }
    answered = look
    look()
  })

  /** The next message, or null at the end. */
  const next: Effect.Effect<AnyMessage | null> = Effect.gen(function* () {
    while (true) {
      const line = lines[at]
      if (line !== undefined) {
        at++
        const read = readLine(line)
        if (read === null) continue
        if ("message" in read) {
          if (admit(read.message)) return read.message
        } else {
          yield* outlet.room
          refuse(read.id, read.error)
        }
        continue
      }
      if (ended) {
        yield* Effect.raceFirst(settled, outlet.closed)
        return null
      }
      yield* outlet.room
      const bytes = yield* inlet
      const last = bytes === null ? splitter.end() : null
      ended = bytes === null
      at = 0
      lines = bytes === null ? (last === null ? [] : [last]) : splitter.push(bytes)
    }
  })

  const readable = new ReadableStream<AnyMessage>(
    {
      pull: async (controller) => {
        const message = await Effect.runPromise(Effect.raceFirst(next, Effect.as(outlet.closed, null)))
        if (message === null) controller.close()
        else controller.enqueue(message)
      },
    },
    { highWaterMark: 0 },
  )
  const writable = new WritableStream<AnyMessage>({
    write: async (message) => {
      write(told(message))
      if ("id" in message && !("method" in message) && open.delete(message.id)) answered?.()
      if (!outlet.hasRoom()) await Effect.runPromise(outlet.room)
    },
  })
  return { stream: { readable, writable }, closed: outlet.closed }
}
