/**
 * MCP over Streamable HTTP: `POST /mcp` and `DELETE /mcp` of the gateway.
 *
 *   body read → era decided → session found or opened | stateless → answered by the official package → replied
 *
 * A client of the stateless protocol that leaves gives its request up. One of a session does not: it cancels, and its request goes on.
 */
import { Clock, Effect, Schedule, type Scope } from "effect"
import { ExecutionMode } from "../../../domain/document.ts"
import type { Failure } from "../../../domain/failure.ts"
import { isRecord } from "../../../domain/json.ts"
import { isLoopback } from "../../http/origin.ts"
import type { HttpReply, HttpRequest, Problem, RouteGroup } from "../../http/route.ts"
import { maxDepth, nestsDeeper } from "../../jsonrpc/message.ts"
import { decodeText } from "../../socket/lines.ts"
import { type McpService, makeConnection } from "./connection.ts"
import type { EndpointParts, ServerExtension } from "./endpoint.ts"
import { type Accepts, acceptsOf, replyOf } from "./http-reply.ts"
import { type HttpSession, makeSessionTable, type SessionTable } from "./http-sessions.ts"

export interface McpHttpOptions extends McpService {
  /** A session that is not used for this long is ended, in ms. Default 3,600,000. */
  readonly sessionTtlMs?: number | undefined
  /** Sessions at once. Default 1,000. */
  readonly maxSessions?: number | undefined
  /** Origins of web pages that may call while no token is configured, besides loopback ones. */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
  /** Tools of an application, beside those of the node. */
  readonly extend?: ServerExtension | undefined
}

/** Bytes of a body: 16 MiB. */
const maxBody = 16 * 1024 * 1024
const sessionHeader = "mcp-session-id"
const modeHeader = "x-super-pi-mode"

const code = { parse: -32700, invalidRequest: -32600, invalidParams: -32602, refused: -32000, sessionNotFound: -32001 }

/** JSON-RPC codes of problems; another is `refused`. */
const problemCodes: Readonly<Record<string, number>> = { not_json: code.parse, invalid_params: code.invalidParams }

const problemReply = (problem: Problem): HttpReply => {
  const { message, param, reference } = problem
  const data = {
    code: problem.code,
    ...(param === undefined ? {} : { param }),
    ...(reference === undefined ? {} : { reference }),
  }
  const error = { code: problemCodes[problem.code] ?? code.refused, message, data }
  return { type: "json", status: problem.status, body: { jsonrpc: "2.0", error, id: null } }
}

const rpcError = (status: number, number: number, message: string): HttpReply => ({
  type: "json",
  status,
  body: { jsonrpc: "2.0", error: { code: number, message }, id: null },
})

const oneOf = (values: ReadonlyArray<string>) => values.map((value) => `"${value}"`).join(", ")

const header = (request: HttpRequest, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === "string" ? value : value?.[0]
}

/** The head of a request as the package reads it; the body is handed over as it was parsed. */
const webRequest = (request: HttpRequest, signal: AbortSignal): Request => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name === "content-length" || name === "transfer-encoding") continue
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one)
  }
  // What the client takes is looked at here; the package wants to hear both.
  headers.set("accept", "application/json, text/event-stream")
  return new Request(request.url, { method: request.method, headers, signal })
}

const parse = (request: HttpRequest): Effect.Effect<unknown, Problem> =>
  Effect.flatMap(request.body, (bytes): Effect.Effect<unknown, Problem> => {
    const wrong = (message: string): Effect.Effect<never, Problem> =>
      Effect.fail({ status: 400, code: "not_json", message: `Parse error: ${message}` })
    const text = decodeText(bytes)
    if (text === null) return wrong("the body is not UTF-8")
    if (nestsDeeper(text, maxDepth)) return wrong(`nested deeper than ${maxDepth} levels`)
    try {
      return Effect.succeed(JSON.parse(text))
    } catch (cause) {
      return wrong(cause instanceof Error ? cause.message : "the body is not JSON")
    }
  })

const failureProblem = (failure: Failure): Problem => ({
  status: failure._tag === "Busy" || failure._tag === "ServiceFailure" ? 503 : 400,
  code: failure._tag === "InvalidRequest" ? "invalid_params" : "refused",
  message: failure.message,
})

/** The mode that a client asks for, where it asks for one. */
const modeOf = (request: HttpRequest): Effect.Effect<ExecutionMode | undefined, Problem> => {
  const asked = header(request, modeHeader)
  const mode = ExecutionMode.literals.find((one) => one === asked)
  if (asked === undefined || mode !== undefined) return Effect.succeed(mode)
  const message = `${modeHeader}: expected ${oneOf(ExecutionMode.literals)}, got ${JSON.stringify(asked.slice(0, 60))}`
  return Effect.fail({ status: 400, code: "invalid_params", message })
}

/** What a protocol version a host asks for, for the log. */
const versionAsked = (body: unknown): string => {
  const params = isRecord(body) && isRecord(body.params) ? body.params : {}
  return typeof params.protocolVersion === "string" ? params.protocolVersion : "unknown"
}

const tooMany: Problem = {
  status: 503,
  code: "too_many_sessions",
  message: "too many sessions: end some with DELETE, or come back later",
  retryAfterMs: 30_000,
}

/** The routes, and the sessions behind them, which end with the scope. */
export const mcpRoutes = (options: McpHttpOptions): Effect.Effect<RouteGroup, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { allowedOrigins = [], extend, maxSessions = 1_000, sessionTtlMs = 3_600_000 } = options
    const limits = { ttlMs: sessionTtlMs, max: maxSessions }
    const sessions = makeSessionTable(limits)
    const stateless = makeSessionTable(limits)
    const runtime = yield* Effect.runtime<never>()
    const listing = options.service.sessions.harnesses
    /** The package and what is built on it. */
    const engine = yield* Effect.cached(
      Effect.map(
        Effect.promise(() => import("./endpoint.ts")),
        (loaded) => ({ ...loaded, answers: loaded.makeAnswers(runtime) }),
      ),
    )
    const swept = Effect.map(Clock.currentTimeMillis, (now) => {
      sessions.sweep(now)
      stateless.sweep(now)
    })
    const period = Math.max(50, Math.min(60_000, sessionTtlMs / 4))
    yield* Effect.forkScoped(Effect.repeat(swept, Schedule.spaced(period)))
    yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([sessions.leave(), stateless.leave()])))

    /** What a new client is served with. */
    const partsFor = (request: HttpRequest): Effect.Effect<EndpointParts, Problem> =>
      Effect.gen(function* () {
        const mode = yield* modeOf(request)
        const { answers } = yield* engine
        const listed = yield* Effect.mapError(listing, failureProblem)
        const harness = request.url.searchParams.get("harness")
        const connection = makeConnection(options, { principal: request.principal, harness, mode })
        yield* Effect.mapError(connection.check(listed.harnesses.map(({ id }) => id)), failureProblem)
        return { connection, listing: listed, answers, extend }
      })

    /** The answer of a session's server. The session is in use until the reply is whole. */
    const ask = (
      table: SessionTable,
      id: string,
      request: HttpRequest,
      body: unknown,
      accepts: Accepts,
      givesUp: boolean,
    ): Effect.Effect<HttpReply> =>
      Effect.gen(function* () {
        const used = table.use(id, request.principal, yield* Clock.currentTimeMillis)
        if (used === null) {
          return rpcError(
            404,
            code.sessionNotFound,
            "Session not found: it is unknown or was ended; initialize another",
          )
        }
        return yield* answer(
          used.session,
          request,
          body,
          accepts,
          givesUp,
          Effect.map(Clock.currentTimeMillis, used.done),
        )
      })

    const answer = (
      { endpoint }: Pick<HttpSession, "endpoint">,
      request: HttpRequest,
      body: unknown,
      accepts: Accepts,
      givesUp: boolean,
      done: Effect.Effect<void>,
    ): Effect.Effect<HttpReply> =>
      Effect.suspend(() => {
        const controller = new AbortController()
        const left = Effect.sync(() => {
          if (givesUp && request.clientLeft()) controller.abort()
        })
        const web = webRequest(request, controller.signal)
        return Effect.promise(() => endpoint.handle(web, body)).pipe(
          Effect.flatMap((response) => replyOf(response, accepts, Array.isArray(body))),
          Effect.onInterrupt(() => left),
          Effect.onError(() => done),
          Effect.flatMap((reply) =>
            reply.type === "events"
              ? Effect.succeed<HttpReply>({
                  ...reply,
                  run: (sink) =>
                    Effect.ensuring(
                      Effect.onInterrupt(reply.run(sink), () => left),
                      done,
                    ),
                })
              : Effect.as(done, reply),
          ),
        )
      })

    const open = (request: HttpRequest, body: unknown, accepts: Accepts): Effect.Effect<HttpReply, Problem> =>
      Effect.gen(function* () {
        yield* Effect.logDebug(`MCP client asks for protocol version ${versionAsked(body)}`)
        if (!sessions.hasRoom(yield* Clock.currentTimeMillis)) return yield* Effect.fail(tooMany)
        const parts = yield* partsFor(request)
        const { sessionEndpoint } = yield* engine
        const clock = yield* Clock.clockWith(Effect.succeed)
        const endpoint = yield* sessionEndpoint(parts, {
          opened: (id, opened) =>
            sessions.add(id, { connection: parts.connection, endpoint: opened }, clock.unsafeCurrentTimeMillis()),
          closed: sessions.remove,
        })
        return yield* answer({ endpoint }, request, body, accepts, false, Effect.void)
      })

    /** The stateless requests of a principal share a connection for each harness and mode that it names. */
    const statelessId = (request: HttpRequest): Effect.Effect<string, Problem> =>
      Effect.gen(function* () {
        const named = [request.principal, request.url.searchParams.get("harness"), header(request, modeHeader)]
        const id = JSON.stringify(named)
        if (stateless.has(id)) return id
        const now = yield* Clock.currentTimeMillis
        if (!stateless.hasRoom(now)) return yield* Effect.fail(tooMany)
        const parts = yield* partsFor(request)
        const { statelessEndpoint } = yield* engine
        // Another request of the same client may have been faster.
        if (stateless.has(id)) return id
        stateless.add(id, { connection: parts.connection, endpoint: statelessEndpoint(parts) }, now)
        return id
      })

    const post = (request: HttpRequest): Effect.Effect<HttpReply, Problem> =>
      Effect.gen(function* () {
        const accepts = acceptsOf(header(request, "accept"))
        if (!accepts.json && !accepts.events) {
          return rpcError(406, code.refused, "Not Acceptable: expected application/json or text/event-stream in Accept")
        }
        const type = header(request, "content-type")?.split(";", 1)[0]?.trim().toLowerCase()
        if (type !== "application/json") {
          return rpcError(415, code.refused, "Unsupported Media Type: expected the Content-Type application/json")
        }
        const body = yield* parse(request)
        const { initializes, isLegacyRequest } = yield* engine
        const probe = webRequest(request, new AbortController().signal)
        if (!(yield* Effect.promise(() => isLegacyRequest(probe, body)))) {
          return yield* ask(stateless, yield* statelessId(request), request, body, accepts, true)
        }
        const id = header(request, sessionHeader)
        if (id !== undefined) return yield* ask(sessions, id, request, body, accepts, false)
        if (initializes(body)) return yield* open(request, body, accepts)
        return rpcError(400, code.refused, `Bad Request: expected the header ${sessionHeader}, which initialize gives`)
      })

    const end = (request: HttpRequest): Effect.Effect<HttpReply> => {
      const id = header(request, sessionHeader)
      return id === undefined
        ? Effect.succeed(rpcError(400, code.refused, `Bad Request: expected the header ${sessionHeader}`))
        : ask(sessions, id, request, undefined, { json: true, events: true }, false)
    }

    return {
      name: "mcp",
      prefixes: ["/mcp"],
      routes: [
        { method: "POST", path: "/mcp", maxBody, handle: post },
        { method: "DELETE", path: "/mcp", handle: end },
      ],
      problem: problemReply,
      allowsOrigin: (origin) =>
        allowedOrigins.includes(origin) || (URL.canParse(origin) && isLoopback(new URL(origin).hostname)),
    }
  })
