/**
 * The `fetch` that provider packages use: adds a token that is fetched per request, ends a connection on which nothing moves, and
 * follows no redirect (a redirect would carry a key to another host). It retries nothing but one request with an outdated token.
 */
import { StreamStalled } from "./failure.ts"

/** Where a request's bearer token comes from. */
export interface TokenSource {
  readonly token: () => Promise<string>
  /** Drops a token that the service refused; false when a new one would be no other. */
  readonly refused: (token: string) => boolean
}

export interface TransportOptions {
  /** Milliseconds without a byte, from the request on, after which it fails with {@link StreamStalled}. */
  readonly idleMs: number
  readonly tokens?: TokenSource
}

type Fetch = typeof globalThis.fetch

/** The body, each read of which must bring something within `idleMs`. */
const watched = (body: ReadableStream<Uint8Array>, idleMs: number, stall: () => void): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const timer = setTimeout(stall, idleMs)
        try {
          const next = await reader.read()
          if (next.done) controller.close()
          else controller.enqueue(next.value)
        } catch (error) {
          controller.error(error)
        } finally {
          clearTimeout(timer)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

const withToken = (init: RequestInit | undefined, token: string): RequestInit => {
  const headers = new Headers(init?.headers)
  headers.set("authorization", `Bearer ${token}`)
  return { ...init, headers }
}

/** A `fetch` with these options; `base` is the platform's unless a test gives another. */
export const transport = (options: TransportOptions, base: Fetch = globalThis.fetch): Fetch => {
  const send: Fetch = async (input, init) => {
    const stalled = new AbortController()
    const stall = () => stalled.abort(new StreamStalled(options.idleMs))
    const signal = init?.signal == null ? stalled.signal : AbortSignal.any([init.signal, stalled.signal])
    const timer = setTimeout(stall, options.idleMs)
    let response: Response
    try {
      response = await base(input, { ...init, signal, redirect: "manual" })
    } finally {
      clearTimeout(timer)
    }
    if (response.body === null) return response
    return new Response(watched(response.body, options.idleMs, stall), {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    })
  }

  const { tokens } = options
  if (tokens === undefined) return send
  return async (input, init) => {
    const token = await tokens.token()
    const response = await send(input, withToken(init, token))
    if (response.status !== 401 || !tokens.refused(token)) return response
    await response.body?.cancel()
    return send(input, withToken(init, await tokens.token()))
  }
}
