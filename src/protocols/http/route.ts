/**
 * The shared HTTP interface: a protocol contributes a {@link RouteGroup}; the server owns sockets, limits, authentication, drain and
 * shutdown, and calls a handler only with an authenticated principal. A handler answers with a value; only server-sent events and upgrades
 * touch the connection, and those through a sink that is bounded.
 *
 *   accepted → head read → limits → authenticated → routed → body read (bounded) → handler → reply written
 *
 * A client that leaves interrupts its handler. What a handler admitted durably goes on.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import type { Effect } from "effect"

/** What goes wrong before or in a handler; each group words it in its own protocol's error shape. */
export interface Problem {
  readonly status: number
  /** For programs, for example `invalid_api_key`, `model_not_found`, `body_too_large`, `not_json`, `draining`, `rate_limited`. */
  readonly code: string
  /** One line: what was expected and what came. */
  readonly message: string
  /** The field at fault, where there is one. */
  readonly param?: string
  /** When to come back, in ms: `Retry-After`. */
  readonly retryAfterMs?: number
  /** Finds the cause in the log. */
  readonly reference?: string
}

/** A request whose head was read and whose caller is known. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string
  /** Path and query; the origin is made up. */
  readonly url: URL
  /** What the pattern's `:names` matched, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders
  /** Whose request this is: `local` where no tokens are configured. */
  readonly principal: string
  /** Of this request, in logs and in the `x-request-id` header. */
  readonly requestId: string
  /** Where the client is; a loopback address unless a token is configured. */
  readonly remoteAddress: string
  /** The whole body, at most as long as the route allows. Fails with 413, or 408 when it does not come in time. */
  readonly body: Effect.Effect<Uint8Array, Problem>
  /** The body as JSON. Fails as {@link body} does, or with `400 not_json` and where it stops being JSON. */
  readonly json: Effect.Effect<unknown, Problem>
  /**
   * Whether the client has gone. An interrupted handler asks it to tell a client that left (whose turn may be cancelled) from a server that
   * stops (whose turns go on at the next start).
   */
  readonly clientLeft: () => boolean
}

/** Where server-sent events go. Heartbeats (`: keep-alive` comments) are the server's own business. */
export interface EventSink {
  /**
   * Sends one event. `data` is one line or several; `event` and `id` are left out where undefined. Never waits: what the socket does not
   * take is kept up to the sink's bound, behind which the client counts as stalled and is cut off, which interrupts the handler.
   */
  readonly send: (data: string, options?: { readonly event?: string; readonly id?: string }) => void
  /** Waits until the client has taken most of what was sent. Await it between chunks of an answer that could grow without end. */
  readonly room: Effect.Effect<void>
}

export type HttpHeaders = Readonly<Record<string, string>>

/** What a handler answers with. */
export type HttpReply =
  | { readonly type: "json"; readonly status?: number; readonly body: unknown; readonly headers?: HttpHeaders }
  | {
      readonly type: "text"
      readonly status?: number
      readonly body: string
      /** Default `text/plain; charset=utf-8`. */
      readonly contentType?: string
      readonly headers?: HttpHeaders
    }
  | { readonly type: "empty"; readonly status: number; readonly headers?: HttpHeaders }
  | {
      readonly type: "events"
      readonly status?: number
      readonly headers?: HttpHeaders
      /** It has no end of its own (it follows a conversation), so a server that drains ends it at once instead of waiting for it. */
      readonly endless?: boolean
      /** Runs until the answer is whole; its end ends the response, the client's leaving interrupts it. It words its own failures. */
      readonly run: (sink: EventSink) => Effect.Effect<void>
    }

export type Handler = (request: HttpRequest) => Effect.Effect<HttpReply, Problem>

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** A path such as `/agui/v1/sessions/:id/events`. */
  readonly path: string
  /** Served without a token. Default false. */
  readonly open?: boolean
  /** Bytes of a body. Default: the server's, 32 MiB. */
  readonly maxBody?: number
  readonly handle: Handler
}

/** A request to speak another protocol on this connection, whose head passed the limits. */
export interface UpgradeRequest extends Omit<HttpRequest, "body" | "json" | "params" | "principal"> {
  /** Null where tokens are configured and none was sent: the protocol asks for it by itself. */
  readonly principal: string | null
  readonly incoming: IncomingMessage
  readonly socket: Duplex
  /** The first bytes of the other protocol. */
  readonly head: Buffer
}

/** The connection is the handler's while it runs; it counts as one connection and one stream. Interrupted where the server drains. */
export interface UpgradeRoute {
  readonly path: string
  readonly handle: (request: UpgradeRequest) => Effect.Effect<void>
}

/** The routes of one protocol. */
export interface RouteGroup {
  /** In logs and metrics, for example `openai`. */
  readonly name: string
  /** Path prefixes that are the group's: a problem under them is worded by it, also `404` and `405`. */
  readonly prefixes: ReadonlyArray<string>
  readonly routes: ReadonlyArray<Route>
  readonly upgrades?: ReadonlyArray<UpgradeRoute>
  /** Origins of web pages that may call it while no token is configured, besides those of the settings. Default none. */
  readonly allowsOrigin?: (origin: string) => boolean
  readonly problem: (problem: Problem) => HttpReply
}
