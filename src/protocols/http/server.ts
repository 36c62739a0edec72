/**
 * The HTTP server under every protocol. It owns the listening socket, its connections and the fiber of every request; all of it ends with
 * the scope.
 *
 *   listening → draining (scope closes: 503 for what is new, endless streams end) → deadline (the rest is interrupted) → closed
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Clock, Deferred, Effect, FiberSet, Schedule, type Scope } from "effect"
import { errorCode } from "../../domain/error-code.ts"
import type { Observer } from "../../observability/observer.ts"
import type { Authenticator } from "../auth/tokens.ts"
import { type ListenFailed, listenFailure } from "../socket/listen.ts"
import { type Head, makeAdmissions, readTarget, worded } from "./admission.ts"
import { makeConnections } from "./connections.ts"
import type { EventStream } from "./events.ts"
import { type ExchangeHost, type RunningExchange, runExchange } from "./exchange.ts"
import type { HttpLimits } from "./limits.ts"
import { type GatewayLog, silentLog } from "./log.ts"
import { draining, tooManyPipelined, tooManyStreams } from "./problems.ts"
import { problemHeaders, type ReplyContext, sendRaw, sendReply } from "./reply.ts"
import type { Problem, RouteGroup, UpgradeRequest } from "./route.ts"

export interface HttpOptions {
  readonly groups: ReadonlyArray<RouteGroup>
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly auth: Authenticator
  readonly limits: HttpLimits
  readonly allowedOrigins?: ReadonlyArray<string>
  readonly allowedHosts?: ReadonlyArray<string>
  readonly log?: GatewayLog
  /** Who counts requests. Default nobody. */
  readonly observer?: Observer | null
  /** How long running requests may go on once the scope closes, in ms, asked for then. Default `limits.drainMs`. */
  readonly drainMs?: () => number
}

export interface HttpServer {
  readonly host: string
  readonly port: number
  /** Without a slash at its end. */
  readonly url: string
  /** What is open and runs right now. */
  readonly load: () => { readonly connections: number; readonly requests: number; readonly streams: number }
}

/** For handlers that were interrupted to end, before their connections are closed under them. In ms. */
const finalizersLimit = 5000

/** What clients are told whose bytes are not a request, by the parser's code. */
const parserProblems: Readonly<
  Record<string, readonly [status: number, reason: string, code: string, message: string]>
> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "head_too_large", "head: expected fewer bytes"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "head_timeout", "head: expected all of it sooner"],
}

const requestIdOf = (incoming: IncomingMessage, next: () => string): string => {
  const given = incoming.headers["x-request-id"]
  return typeof given === "string" && /^[\w.:-]{1,100}$/.test(given) ? given : next()
}

const urlOf = (host: string, port: number) => `http://${host.includes(":") ? `[${host}]` : host}:${port}`

/** Serves until the scope closes; completes once it listens. */
export const serveHttp = (options: HttpOptions): Effect.Effect<HttpServer, ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { auth, groups, limits, log = silentLog, observer = null } = options
    const clock = yield* Clock.clockWith(Effect.succeed)
    const now = () => clock.unsafeCurrentTimeMillis()
    const fibers = yield* FiberSet.make<unknown, unknown>()
    const fork = yield* FiberSet.runtime(fibers)<never>()
    const idle = yield* Deferred.make<void>()
    const origins = { tokens: auth.required, origins: options.allowedOrigins ?? [], hosts: options.allowedHosts ?? [] }
    const admissions = makeAdmissions({ groups, auth, limits, origins })
    const connections = makeConnections(limits)
    const streams = new Set<EventStream>()
    const running = new Set<RunningExchange>()
    const streamsOf = new Map<string, number>()
    let streamCount = 0
    let isDraining = false
    let counter = 0
    const prefix = `req_${now().toString(36)}_`
    const nextId = () => `${prefix}${(++counter).toString(36)}`

    const takeStream = (principal: string) => {
      const own = streamsOf.get(principal) ?? 0
      if (streamCount >= limits.streams || own >= limits.streamsPerPrincipal) return null
      streamCount++
      streamsOf.set(principal, own + 1)
      let given = true
      return () => {
        if (!given) return
        given = false
        streamCount--
        const left = (streamsOf.get(principal) ?? 1) - 1
        if (left === 0) streamsOf.delete(principal)
        else streamsOf.set(principal, left)
      }
    }

    const host: ExchangeHost = {
      limits,
      log,
      observer,
      budget: { limit: Math.max(limits.bodyBytes, 512 * 1024 * 1024), used: 0 },
      fork,
      isDraining: () => isDraining,
      takeStream,
      streams,
      running,
      now,
    }

    const settled = () => {
      if (isDraining && running.size === 0) Deferred.unsafeDone(idle, Effect.void)
    }

    const onRequest = (incoming: IncomingMessage, response: ServerResponse) => {
      const started = now()
      const { socket } = incoming
      const requestId = requestIdOf(incoming, nextId)
      const method = incoming.method ?? "GET"
      const target = readTarget(incoming.url)
      const done = connections.begin(socket)
      let principal = ""
      let path = target?.pathname ?? "?"
      let logged = false
      const ended = (status: number) => {
        done?.()
        settled()
        if (logged) return
        logged = true
        log.request({ requestId, principal, method, path, status, durationMs: now() - started })
      }
      const context = (cors: string | null): ReplyContext => ({
        requestId,
        cors,
        close: isDraining,
        stalledMs: limits.stalledMs,
      })
      const refuse = (group: RouteGroup | null, problem: Problem, cors: string | null = null) => {
        sendReply(incoming, response, worded(group, problem), context(cors), problemHeaders(problem))
        const { status } = problem
        observer?.httpEnded({ group: group?.name ?? "", method, route: "", status, durationMs: now() - started })
        ended(status)
      }
      if (target === null) {
        refuse(null, { status: 400, code: "bad_request", message: "request line: expected a path that begins with /" })
        return
      }
      if (done === null) {
        refuse(null, tooManyPipelined)
        return
      }
      const head: Head = { method, url: target, address: socket.remoteAddress ?? "", incoming }
      const admission = admissions.request(head, started)
      if (admission.type === "preflight") {
        sendReply(incoming, response, admission.reply, context(admission.cors))
        ended(204)
        return
      }
      principal = admission.principal
      if (admission.type === "problem") {
        refuse(admission.group, admission.problem, admission.cors)
        return
      }
      // The pattern, since what a path names may be a secret.
      path = admission.route.path
      if (isDraining) refuse(admission.group, draining, admission.cors)
      else runExchange(host, head, admission, context(admission.cors), response, ended)
    }

    const onUpgrade = (incoming: IncomingMessage, socket: Duplex, first: Buffer) => {
      const started = now()
      const requestId = requestIdOf(incoming, nextId)
      const url = readTarget(incoming.url)
      socket.on("error", () => socket.destroy())
      const refuse = (problem: Problem) => {
        sendRaw(socket, problem.status, "Refused", problem)
        log.request({ requestId, principal: "", method: "UPGRADE", path: "?", status: problem.status, durationMs: 0 })
      }
      if (url === null) {
        refuse({ status: 400, code: "bad_request", message: "request line: expected a path that begins with /" })
        return
      }
      const head: Head = {
        method: incoming.method ?? "GET",
        url,
        address: incoming.socket.remoteAddress ?? "",
        incoming,
      }
      const admission = admissions.upgrade(head, started)
      if (admission.type === "problem") {
        refuse(admission.problem)
        return
      }
      if (isDraining) {
        refuse(draining)
        return
      }
      const place = takeStream(admission.principal ?? `address ${head.address}`)
      if (place === null) {
        refuse(tooManyStreams)
        return
      }
      const request: UpgradeRequest = {
        method: head.method,
        url,
        headers: incoming.headers,
        principal: admission.principal,
        requestId,
        remoteAddress: head.address,
        clientLeft: () => socket.destroyed,
        incoming,
        socket,
        head: first,
      }
      const { path } = admission.route
      const fiber = fork(admission.route.handle(request))
      const entry: RunningExchange = { endless: () => true, interrupt: () => fiber.unsafeInterruptAsFork(fiber.id()) }
      running.add(entry)
      fiber.addObserver(() => {
        place()
        running.delete(entry)
        socket.destroy()
        settled()
        const principal = admission.principal ?? ""
        log.request({ requestId, principal, method: "UPGRADE", path, status: 101, durationMs: now() - started })
      })
    }

    const server = yield* Effect.acquireRelease(
      Effect.async<ReturnType<typeof createServer>, ListenFailed>((resume) => {
        const created = createServer({
          maxHeaderSize: limits.headerBytes,
          headersTimeout: limits.headerMs,
          // Bodies have a deadline of their own; this one ends what nobody reads.
          requestTimeout: limits.headerMs + limits.bodyMs + 1000,
          keepAliveTimeout: limits.keepAliveMs,
          connectionsCheckingInterval: Math.max(100, Math.min(1000, limits.headerMs / 4)),
          noDelay: true,
        })
        created.on("request", onRequest)
        created.on("checkContinue", onRequest)
        created.on("upgrade", onUpgrade)
        created.on("connection", (socket: Socket) => {
          if (connections.accept(socket)) return
          const problem = {
            status: 503,
            code: "too_many_connections",
            message: "too many connections",
            retryAfterMs: 1000,
          }
          sendRaw(socket, 503, "Service Unavailable", problem)
        })
        created.on("clientError", (error: Error, socket: Duplex) => {
          const [status, reason, code, message] = parserProblems[errorCode(error)] ?? [
            400,
            "Bad Request",
            "bad_request",
            "expected an HTTP/1.1 request",
          ]
          if (errorCode(error) === "ECONNRESET") socket.destroy()
          else sendRaw(socket, status, reason, { status, code, message })
        })
        created.on("error", (cause) => resume(Effect.fail(listenFailure(`${options.host}:${options.port}`, cause))))
        created.on("listening", () => resume(Effect.succeed(created)))
        created.listen({ host: options.host, port: options.port })
      }),
      (created) =>
        Effect.sync(() => {
          created.close()
          created.closeAllConnections()
        }),
    )

    const period = Math.max(20, Math.min(1000, limits.heartbeatMs / 4, limits.stalledMs / 4))
    const tick = Effect.sync(() => {
      const at = now()
      for (const stream of [...streams]) stream.tick(at)
    })
    yield* Effect.forkScoped(Effect.repeat(tick, Schedule.spaced(period)))

    // Added last, so that it is what the scope runs first.
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        isDraining = true
        for (const one of [...running]) if (one.endless()) one.interrupt()
        settled()
        const drainMs = options.drainMs?.() ?? limits.drainMs
        yield* Effect.timeoutOption(Effect.interruptible(Deferred.await(idle)), drainMs)
        for (const one of [...running]) one.interrupt()
        yield* Effect.timeoutOption(Effect.interruptible(Deferred.await(idle)), finalizersLimit)
        yield* Effect.promise(() => written(server))
      }),
    )

    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : options.port
    return {
      host: options.host,
      port,
      url: urlOf(options.host, port),
      load: () => ({ connections: connections.count(), requests: running.size, streams: streamCount }),
    }
  })

/** Stops listening and closes what is idle; resolves once every answer went out, or after a moment. */
const written = (server: ReturnType<typeof createServer>): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, 1000)
    server.close(() => {
      clearTimeout(timer)
      resolve()
    })
    server.closeIdleConnections()
  })
