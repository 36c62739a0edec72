/**
 * Answers of the official package as replies of the gateway. An answer that is one message goes out as JSON where the client takes it; one
 * that says more (progress, questions to the client), or takes long, is streamed where the client takes that.
 */
import { Effect, Fiber, Option } from "effect"
import { isRecord } from "../../../domain/json.ts"
import type { EventSink, HttpHeaders, HttpReply } from "../../http/route.ts"
import { type Frame, type FrameReader, frameReader } from "./sse.ts"

/** What the client takes. */
export interface Accepts {
  readonly json: boolean
  readonly events: boolean
}

/** How long a call may work before its answer becomes a stream, whose heartbeats keep the connection open. In ms. */
const streamAfterMs = 5_000

/** What an `Accept` header takes; without one everything. */
export const acceptsOf = (header: string | undefined): Accepts => {
  if (header === undefined || header.trim() === "") return { json: true, events: true }
  const types = header.split(",").map((part) => part.split(";", 1)[0]?.trim().toLowerCase() ?? "")
  const every = types.includes("*/*")
  return {
    json: every || types.includes("application/json") || types.includes("application/*"),
    events: every || types.includes("text/event-stream") || types.includes("text/*"),
  }
}

/** Headers of ours that an answer may carry. */
const carried = ["mcp-session-id", "mcp-protocol-version", "allow", "www-authenticate"]

const headersOf = (response: Response): HttpHeaders =>
  Object.fromEntries(
    carried.flatMap((name) => {
      const value = response.headers.get(name)
      return value === null ? [] : [[name, value] as const]
    }),
  )

/** Whether a frame holds the answer itself and not something on the way to it. */
const isFinal = ({ data }: Frame): boolean => {
  try {
    const message: unknown = JSON.parse(data)
    return isRecord(message) && !Object.hasOwn(message, "method")
  } catch {
    return false
  }
}

const pump =
  (reader: FrameReader, first: ReadonlyArray<Frame>, waiting: Fiber.Fiber<Frame | null> | null) =>
  (sink: EventSink): Effect.Effect<void> =>
    Effect.gen(function* () {
      const send = ({ data, event, id }: Frame) => {
        sink.send(data, { ...(event === undefined ? {} : { event }), ...(id === undefined ? {} : { id }) })
        return sink.room
      }
      for (const frame of first) yield* send(frame)
      let frame = waiting === null ? null : yield* Fiber.join(waiting)
      if (waiting !== null && frame === null) return
      while (true) {
        if (frame !== null) yield* send(frame)
        frame = yield* Effect.promise(reader.next)
        if (frame === null) return
      }
    }).pipe(Effect.ensuring(Effect.promise(reader.cancel)))

/** All answers of a batch. */
const batchOf = (reader: FrameReader, headers: HttpHeaders): Effect.Effect<HttpReply> =>
  Effect.promise(async () => {
    const answers: Array<string> = []
    for (let frame = await reader.next(); frame !== null; frame = await reader.next()) {
      if (isFinal(frame)) answers.push(frame.data)
    }
    return answers.length === 0
      ? { type: "empty", status: 202, headers }
      : { type: "text", body: `[${answers.join(",")}]`, contentType: "application/json; charset=utf-8", headers }
  })

const streamed = (response: Response, body: ReadableStream<Uint8Array>, accepts: Accepts, batch: boolean) =>
  Effect.gen(function* () {
    const reader = frameReader(body)
    const headers = headersOf(response)
    const events = (first: ReadonlyArray<Frame>, waiting: Fiber.Fiber<Frame | null> | null): HttpReply => ({
      type: "events",
      status: response.status,
      headers,
      run: pump(reader, first, waiting),
    })
    if (!accepts.json) return events([], null)
    if (batch) return yield* Effect.onInterrupt(batchOf(reader, headers), () => Effect.promise(reader.cancel))
    // Not a child of the handler: where the answer becomes a stream, its run goes on waiting for it.
    const waiting = yield* Effect.forkDaemon(Effect.promise(reader.next))
    const wait = accepts.events
      ? Effect.timeoutOption(Fiber.join(waiting), streamAfterMs)
      : Effect.asSome(Fiber.join(waiting))
    const inTime = yield* Effect.onInterrupt(wait, () => Effect.promise(reader.cancel))
    if (Option.isNone(inTime)) return events([], waiting)
    let frame = inTime.value
    if (frame !== null && !isFinal(frame) && accepts.events) return events([frame], null)
    while (frame !== null && !isFinal(frame)) {
      frame = yield* Effect.onInterrupt(Effect.promise(reader.next), () => Effect.promise(reader.cancel))
    }
    yield* Effect.promise(reader.cancel)
    // A request that was cancelled has no answer.
    const reply: HttpReply =
      frame === null
        ? { type: "empty", status: 202, headers }
        : {
            type: "text",
            status: response.status,
            body: frame.data,
            contentType: "application/json; charset=utf-8",
            headers,
          }
    return reply
  })

/** The reply of an answer. `batch`: it answers several messages. */
export const replyOf = (response: Response, accepts: Accepts, batch: boolean): Effect.Effect<HttpReply> => {
  const { body, status } = response
  if (body === null) return Effect.succeed({ type: "empty", status, headers: headersOf(response) })
  if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
    return streamed(response, body, accepts, batch)
  }
  return Effect.map(
    Effect.promise(() => response.text()),
    (text): HttpReply => {
      const headers = headersOf(response)
      if (text === "") return { type: "empty", status, headers }
      if (!accepts.json && status < 300) {
        return { type: "events", headers, run: (sink) => Effect.sync(() => sink.send(text, { event: "message" })) }
      }
      return { type: "text", status, body: text, contentType: "application/json; charset=utf-8", headers }
    },
  )
}
