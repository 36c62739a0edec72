/**
 * `fetch` whose answers are bounded: a JSON answer as a whole, an event stream from one event to the next. What is longer fails the read.
 */

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

export const boundedFetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  if (response.body === null) return response
  const stream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  const { headers, status, statusText } = response
  // A `Response` made here may not have the statuses that have no body; they have none.
  return new Response(response.body.pipeThrough(counter(!stream)), { status, statusText, headers })
}
