/** A server with the routes of a test, and clients that see every byte: fetch for what is ordinary, a raw socket for what is not. */
import { createConnection, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import type { GatewaySettings } from "../../../src/domain/gateway-settings.ts"
import { type Authenticator, openAuthenticator } from "../../../src/protocols/auth/tokens.ts"
import { type HttpLimits, limitsOf } from "../../../src/protocols/http/limits.ts"
import { type GatewayLog, silentLog } from "../../../src/protocols/http/log.ts"
import type { Route, RouteGroup } from "../../../src/protocols/http/route.ts"
import { type HttpServer, serveHttp } from "../../../src/protocols/http/server.ts"

export const testGroup = (routes: ReadonlyArray<Route>, over: Partial<RouteGroup> = {}): RouteGroup => ({
  name: "test",
  prefixes: ["/t"],
  routes,
  problem: (problem) => ({
    type: "json",
    status: problem.status,
    body: { wrong: problem.code, said: problem.message },
  }),
  ...over,
})

export interface ServeOptions {
  readonly groups?: ReadonlyArray<RouteGroup>
  readonly limits?: Partial<HttpLimits>
  readonly auth?: Authenticator
  readonly origins?: ReadonlyArray<string>
  readonly hosts?: ReadonlyArray<string>
  readonly log?: GatewayLog
}

export const serve = (
  routes: ReadonlyArray<Route>,
  options: ServeOptions = {},
): Effect.Effect<HttpServer, never, Scope.Scope> =>
  Effect.orDie(
    serveHttp({
      groups: [testGroup(routes), ...(options.groups ?? [])],
      host: "127.0.0.1",
      port: 0,
      auth: options.auth ?? openAuthenticator,
      limits: { ...limitsOf({}), drainMs: 200, ...options.limits },
      allowedOrigins: options.origins ?? [],
      allowedHosts: options.hosts ?? [],
      log: options.log ?? silentLog,
    }),
  )

/** Settings in the words of the file, as limits. */
export const limits = (settings: NonNullable<GatewaySettings["limits"]>): HttpLimits => limitsOf({ limits: settings })

export interface Fetched {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: () => Record<string, unknown>
}

export const get = (server: HttpServer, path: string, init: RequestInit = {}): Effect.Effect<Fetched> =>
  Effect.promise(async () => {
    const response = await fetch(`${server.url}${path}`, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) }
  })

export interface RawClient {
  readonly socket: Socket
  readonly send: (text: string | Uint8Array) => void
  /** Everything that came, once it matches. Rejects where the connection ends before. */
  readonly until: (pattern: RegExp) => Promise<string>
  /** Everything that came until the connection ended. */
  readonly ended: Promise<string>
  readonly soFar: () => string
}

/** A connection to the port; every client is taken away with the scope. */
export const raw = (port: number): Effect.Effect<RawClient, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<RawClient>((resume) => {
      const socket = createConnection({ host: "127.0.0.1", port })
      let text = ""
      let closed = false
      const watchers = new Set<() => void>()
      const look = () => {
        for (const watcher of [...watchers]) watcher()
      }
      socket.setEncoding("latin1")
      socket.on("data", (chunk: string) => {
        text += chunk
        look()
      })
      socket.on("error", () => {})
      const ended = new Promise<string>((done) => {
        socket.on("close", () => {
          closed = true
          look()
          done(text)
        })
      })
      const client: RawClient = {
        socket,
        send: (data) => void socket.write(data),
        ended,
        soFar: () => text,
        until: (pattern) =>
          new Promise((done, fail) => {
            const watcher = () => {
              if (!pattern.test(text) && !closed) return
              watchers.delete(watcher)
              if (pattern.test(text)) done(text)
              else fail(new Error(`ended before ${pattern}: ${JSON.stringify(text)}`))
            }
            watchers.add(watcher)
            watcher()
          }),
      }
      socket.on("connect", () => resume(Effect.succeed(client)))
    }),
    ({ socket }) => Effect.sync(() => socket.destroy()),
  )

/** Waits until something holds that no event tells of. */
export const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!holds()) await new Promise((next) => setTimeout(next, 5))
  })
