/**
 * `fetch` whose answers are bounded: a JSON answer as a whole, an event stream from one event to the next. What is longer fails the read.
 * The headers that are configured for a server, which may be secrets, go to its own origin only: never to its login service.
 */
import type { McpHttpServer } from "../../domain/mcp.ts"

/** Bytes of an answer, and of one event. */
const maxBytes = 32 * 1024 * 1024

const lineFeed = 10
const carriageReturn = 13

/** Counts bytes since the last blank line, which ends an event; with `whole` all of them. */
const counter = (whole: boolean): TransformStream<Uint8Array, Uint8Array> => {
  let bytes = 0
  let atLineStart = true
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of whole ? [] : chunk) {
        bytes++
        if (byte === lineFeed) {
          if (atLineStart) bytes = 0
          atLineStart = true
        } else if (byte !== carriageReturn) atLineStart = false
      }
      if (whole) bytes += chunk.byteLength
      if (bytes > maxBytes) controller.error(new Error(`the answer is longer than ${maxBytes} bytes`))
      else controller.enqueue(chunk)
    },
  })
}

const boundedFetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  if (response.body === null) return response
  const stream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  const { headers, status, statusText } = response
  // A `Response` made here may not have the statuses that have no body; they have none.
  return new Response(response.body.pipeThrough(counter(!stream)), { status, statusText, headers })
}

/** What was sent for the answer, in the header `authorization`. */
const sent = new WeakMap<Response, string>()
export const sentAuthorization = (response: Response): string | null => sent.get(response) ?? null

/** The `fetch` for everything that has to do with a server. */
export const fetchFor = ({ headers: configured = {}, url }: McpHttpServer): typeof boundedFetch => {
  const { origin } = new URL(url)
  return async (address, init) => {
    if (new URL(address).origin !== origin) return boundedFetch(address, init)
    const headers = new Headers(configured)
    new Headers(init?.headers).forEach((value, name) => {
      headers.set(name, value)
    })
    const response = await boundedFetch(address, { ...init, headers })
    sent.set(response, headers.get("authorization") ?? "")
    return response
  }
}
