/**
 * Replies onto responses: heads, bodies, and the end of a connection whose request was not read to its end.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import type { HttpHeaders, HttpReply, Problem } from "./route.ts"

/** How long what a client still sends is read and thrown away, so that it finds the reply; then the connection ends. In ms. */
const lingerMs = 1000

/** What each reply of one request carries besides its own headers. */
export interface ReplyContext {
  readonly requestId: string
  /** The origin that may read it, or null. */
  readonly cors: string | null
  /** Whether the connection ends behind it. */
  readonly close: boolean
  readonly stalledMs: number
}

const always: HttpHeaders = { "x-content-type-options": "nosniff" }

const corsHeaders = (origin: string | null, own: HttpHeaders): HttpHeaders =>
  origin === null
    ? {}
    : {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": [...new Set(["x-request-id", "retry-after", ...Object.keys(own)])].join(", "),
        vary: "Origin",
      }

/** Headers that follow from a problem, whoever words it. */
export const problemHeaders = (problem: Problem): HttpHeaders => ({
  ...(problem.status === 401 ? { "www-authenticate": "Bearer" } : {}),
  ...(problem.retryAfterMs === undefined
    ? {}
    : { "retry-after": String(Math.max(1, Math.ceil(problem.retryAfterMs / 1000))) }),
})

const headersOf = (reply: HttpReply, context: ReplyContext, extra: HttpHeaders): Record<string, string> => {
  const own = { ...extra, ...reply.headers }
  return {
    ...always,
    "cache-control": "no-store",
    "x-request-id": context.requestId,
    ...(context.close ? { connection: "close" } : {}),
    ...corsHeaders(context.cors, own),
    ...own,
  }
}

/** The text of a reply that is not a stream, with its type. */
const contentOf = (reply: HttpReply): { readonly text: string; readonly type: string } | null => {
  switch (reply.type) {
    case "json":
      return { text: JSON.stringify(reply.body) ?? "null", type: "application/json; charset=utf-8" }
    case "text":
      return { text: reply.body, type: reply.contentType ?? "text/plain; charset=utf-8" }
    default:
      return null
  }
}

/** Whether a request says that a body comes. The end of one without is only seen a moment after its head. */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0

export const statusOf = (reply: HttpReply): number => reply.status ?? 200

/** Writes a whole reply and ends the response; a client that does not take it in time is cut off. Throws where the reply cannot be written. */
export const sendReply = (
  incoming: IncomingMessage,
  response: ServerResponse,
  reply: HttpReply,
  context: ReplyContext,
  extra: HttpHeaders = {},
): void => {
  const content = contentOf(reply)
  const unread = !incoming.complete && hasBody(incoming)
  const headers = headersOf(reply, unread ? { ...context, close: true } : context, extra)
  const bytes = content === null ? null : Buffer.from(content.text)
  const status = statusOf(reply)
  response.writeHead(status, {
    ...(content === null ? {} : { "content-type": content.type }),
    ...(bytes === null
      ? status === 204 || status === 304
        ? {}
        : { "content-length": "0" }
      : { "content-length": String(bytes.length) }),
    ...headers,
  })
  response.setTimeout(context.stalledMs, () => response.destroy())
  if (!unread) {
    response.end(bytes ?? undefined)
    return
  }
  // The reply is whole for the client; the connection ends once the rest was read, or after a while.
  if (bytes !== null) response.write(bytes)
  else response.flushHeaders()
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  incoming.on("end", end).on("close", end)
  incoming.resume()
}

/** Writes the head of a stream. */
export const beginStream = (
  response: ServerResponse,
  reply: Extract<HttpReply, { readonly type: "events" }>,
  context: ReplyContext,
): void => {
  response.writeHead(statusOf(reply), {
    "content-type": "text/event-stream; charset=utf-8",
    ...headersOf(reply, context, {}),
    "cache-control": "no-cache, no-transform",
    // Proxies that buffer would hold events back.
    "x-accel-buffering": "no",
    ...reply.headers,
  })
  response.flushHeaders()
  response.socket?.setNoDelay(true)
}

/** A reply on a connection that has no response of its own: one that is refused, or does not speak HTTP. Ends it. */
export const sendRaw = (socket: Duplex, status: number, reason: string, problem: Problem): void => {
  if (socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const body = JSON.stringify({ error: { code: problem.code, message: problem.message } })
  const headers = Object.entries({
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...problemHeaders(problem),
  })
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  socket.end(`HTTP/1.1 ${status} ${reason}\r\n${head}\r\n${body}`, () => socket.destroy())
}
