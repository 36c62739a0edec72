/** The server with routes of a test's own: what reaches a handler, and what is answered for it. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger, LogLevel } from "effect"
import type { LoggedRequest } from "../../../src/protocols/http/log.ts"
import { silentLog } from "../../../src/protocols/http/log.ts"
import { plainProblem } from "../../../src/protocols/http/problems.ts"
import type { HttpRequest, Route } from "../../../src/protocols/http/route.ts"
import { get, raw, serve, testGroup } from "./support.ts"

const ok = (body: unknown) => Effect.succeed({ type: "json" as const, body })

const echo: Route = {
  method: "POST",
  path: "/t/echo",
  handle: (request) => Effect.map(request.json, (body) => ({ type: "json", body })),
}

const post = (body: string, headers: Record<string, string> = {}): RequestInit => ({ method: "POST", body, headers })

describe("a request", () => {
  it.scopedLive("reaches its handler with its parts, and is answered under its id", () =>
    Effect.gen(function* () {
      let seen: HttpRequest | null = null
      const server = yield* serve([
        {
          method: "GET",
          path: "/t/:one/of/:two",
          handle: (request) => {
            seen = request
            return ok({ fine: true })
          },
        },
      ])
      const answer = yield* get(server, "/t/a%20b/of/c?q=1", { headers: { "x-request-id": "mine-1", "X-Some": "y" } })
      expect(answer.status).toBe(200)
      expect(answer.headers.get("x-request-id")).toBe("mine-1")
      expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8")
      expect(seen).toMatchObject({
        method: "GET",
        params: { one: "a b", two: "c" },
        principal: "local",
        requestId: "mine-1",
        remoteAddress: "127.0.0.1",
        headers: { "x-some": "y" },
      })
      expect(String((seen as unknown as HttpRequest).url.searchParams)).toBe("q=1") // set by the handler above
      const other = yield* get(server, "/t/x/of/y", { headers: { "x-request-id": "not an id" } })
      expect(other.headers.get("x-request-id")).toMatch(/^req_/)
    }),
  )

  it.scopedLive("is answered with JSON, text, nothing, or what its own headers say", () =>
    Effect.gen(function* () {
      const server = yield* serve([
        { method: "GET", path: "/t/text", handle: () => Effect.succeed({ type: "text", body: "é" }) },
        {
          method: "GET",
          path: "/t/metrics",
          handle: () => Effect.succeed({ type: "text", body: "a 1", contentType: "text/plain; version=0.0.4" }),
        },
        { method: "DELETE", path: "/t/gone", handle: () => Effect.succeed({ type: "empty", status: 204 }) },
        {
          method: "PUT",
          path: "/t/made",
          handle: () => Effect.succeed({ type: "json", status: 201, body: {}, headers: { location: "/t/1" } }),
        },
      ])
      expect(yield* get(server, "/t/text")).toMatchObject({ status: 200, text: "é" })
      expect((yield* get(server, "/t/metrics")).headers.get("content-type")).toBe("text/plain; version=0.0.4")
      expect(yield* get(server, "/t/gone", { method: "DELETE" })).toMatchObject({ status: 204, text: "" })
      const made = yield* get(server, "/t/made", { method: "PUT" })
      expect([made.status, made.headers.get("location")]).toEqual([201, "/t/1"])
    }),
  )

  it.scopedLive("with HEAD is answered like GET without a body, and with OPTIONS by what is allowed", () =>
    Effect.gen(function* () {
      const server = yield* serve([
        { method: "GET", path: "/t/x", handle: () => ok({ a: 1 }) },
        {
          method: "GET",
          path: "/t/stream",
          handle: () => Effect.succeed({ type: "events", run: () => Effect.never }),
        },
        { method: "POST", path: "/t/x", handle: () => ok({ a: 2 }) },
      ])
      const head = yield* get(server, "/t/x", { method: "HEAD" })
      expect([head.status, head.text, head.headers.get("content-length")]).toEqual([200, "", "7"])
      expect((yield* get(server, "/t/stream", { method: "HEAD" })).status).toBe(200)
      const options = yield* get(server, "/t/x", { method: "OPTIONS" })
      expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, HEAD, POST, OPTIONS"])
    }),
  )

  it.scopedLive("for another path or method is worded by the group that the path belongs to", () =>
    Effect.gen(function* () {
      const server = yield* serve([{ method: "GET", path: "/t/x", handle: () => ok(1) }], {
        groups: [testGroup([], { name: "inner", prefixes: ["/t/inner"], problem: plainProblem })],
      })
      const missing = yield* get(server, "/t/nothing")
      expect([missing.status, missing.json()]).toMatchObject([404, { wrong: "not_found" }])
      expect((yield* get(server, "/t/inner/x")).json()).toMatchObject({ error: { code: "not_found" } })
      expect((yield* get(server, "/tx")).json()).toMatchObject({ error: { code: "not_found" } })
      const wrong = yield* get(server, "/t/x", { method: "DELETE" })
      expect([wrong.status, wrong.json()]).toMatchObject([
        405,
        { wrong: "method_not_allowed", said: "method: expected GET or HEAD or OPTIONS, got DELETE" },
      ])
    }),
  )

  it.scopedLive("is logged once, under the pattern of its route, with what became of it", () =>
    Effect.gen(function* () {
      const lines: Array<LoggedRequest> = []
      const log = { ...silentLog, request: (line: LoggedRequest) => void lines.push(line) }
      const server = yield* serve(
        [
          { method: "GET", path: "/t/secret/:token", handle: () => ok(1) },
          { method: "GET", path: "/t/bad", handle: () => Effect.fail({ status: 400, code: "x", message: "y" }) },
        ],
        { log },
      )
      yield* get(server, "/t/secret/hunter2?also=this")
      yield* get(server, "/t/bad")
      yield* get(server, "/t/none")
      expect(lines.map(({ method, path, status }) => `${method} ${path} ${status}`)).toEqual([
        "GET /t/secret/:token 200",
        "GET /t/bad 400",
        "GET /t/none 404",
      ])
    }),
  )
})

describe("a body", () => {
  it.scopedLive.each([
    ["", 400, "not_json", "body: expected JSON, got nothing"],
    ['{"a": 1,\n"b" 2}', 400, "not_json", "body: expected JSON, which ends at line 2, column 5"],
    ["[1, 2", 400, "not_json", "body: expected JSON, which ends at line 1, column 6"],
    ["[".repeat(300), 400, "not_json", "body: expected JSON, nested at most 256 levels deep"],
  ] as const)("of %j is %i %s", ([body, status, code, message]) =>
    Effect.gen(function* () {
      const server = yield* serve([echo])
      const answer = yield* get(server, "/t/echo", post(body))
      expect([answer.status, answer.json()]).toEqual([status, { wrong: code, said: message }])
      expect((yield* get(server, "/t/echo", post("[1]"))).json()).toEqual([1])
    }),
  )

  it.scopedLive("that is not UTF-8, or is encoded, is refused", () =>
    Effect.gen(function* () {
      const server = yield* serve([echo])
      const bytes = yield* get(server, "/t/echo", { method: "POST", body: new Uint8Array([0x22, 0xff, 0x22]) })
      expect([bytes.status, bytes.json()]).toMatchObject([400, { wrong: "not_json" }])
      const encoded = yield* get(server, "/t/echo", post("{}", { "content-encoding": "gzip" }))
      expect([encoded.status, encoded.json()]).toMatchObject([415, { wrong: "body_encoded" }])
    }),
  )

  it.scopedLive("in pieces and chunks is put together; asked for twice it is the same", () =>
    Effect.gen(function* () {
      const server = yield* serve([
        {
          method: "POST",
          path: "/t/twice",
          handle: (request) =>
            Effect.zipWith(request.json, request.json, (one, two) => ({ type: "json", body: [one, two] })),
        },
      ])
      const client = yield* raw(server.port)
      client.send('POST /t/twice HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n')
      client.send("3\r\n:1}\r\n0\r\n\r\n")
      expect(yield* Effect.promise(() => client.until(/\[.*\]$/))).toContain('[{"a":1},{"a":1}]')
    }),
  )

  it.scopedLive("longer than its route allows is 413, told before it is sent where the client asks", () =>
    Effect.gen(function* () {
      const server = yield* serve([{ ...echo, maxBody: 10 }])
      const long = yield* get(server, "/t/echo", post(JSON.stringify("x".repeat(20))))
      expect([long.status, long.json()]).toEqual([
        413,
        { wrong: "body_too_large", said: "body: expected at most 10 bytes" },
      ])
      const asks = yield* raw(server.port)
      asks.send("POST /t/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
      expect(yield* Effect.promise(() => asks.ended)).toMatch(/^HTTP\/1\.1 413 /)
      const may = yield* raw(server.port)
      may.send("POST /t/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      yield* Effect.promise(() => may.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/))
      may.send("[1]")
      expect(yield* Effect.promise(() => may.until(/\[1\]$/))).toContain("HTTP/1.1 200 OK")
      const chunked = yield* raw(server.port)
      chunked.send("POST /t/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n")
      chunked.send("x".repeat(100))
      expect(yield* Effect.promise(() => chunked.until(/\r\n\r\n\{.*\}/))).toMatch(/^HTTP\/1\.1 413 /)
    }),
  )
})

describe("a handler", () => {
  it.scopedLive("that dies is answered with a reference that the log has, and no more", () =>
    Effect.gen(function* () {
      const logged: Array<unknown> = []
      const capture = Logger.make(({ annotations, message }) => {
        logged.push([message, [...annotations].map(([key, value]) => `${key}=${String(value)}`)])
      })
      const program = Effect.gen(function* () {
        const server = yield* serve([
          { method: "GET", path: "/t/die", handle: () => Effect.die(new Error("secret")) },
          {
            method: "GET",
            path: "/t/throw",
            handle: () => {
              throw new Error("secret")
            },
          },
          { method: "GET", path: "/t/cycle", handle: () => ok(10n) },
        ])
        for (const path of ["/t/die", "/t/throw", "/t/cycle"]) {
          const answer = yield* get(server, path)
          expect([path, answer.status]).toEqual([path, 500])
          expect(answer.text).not.toContain("secret")
          expect(answer.json()).toMatchObject({ wrong: "internal" })
          expect(JSON.stringify(logged)).toContain(`reference=${answer.headers.get("x-request-id")}`)
        }
      })
      yield* program.pipe(Effect.provide(Logger.replace(Logger.defaultLogger, capture)))
    }),
  )

  it.scopedLive("is interrupted when its client leaves, and can tell that from a server that stops", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const told = yield* Deferred.make<boolean>()
      const wait: Route = {
        method: "GET",
        path: "/t/wait",
        handle: (request) =>
          Deferred.succeed(started, undefined).pipe(
            Effect.zipRight(Effect.never),
            Effect.onInterrupt(() => Deferred.succeed(told, request.clientLeft())),
          ),
      }
      const server = yield* serve([wait])
      const client = yield* raw(server.port)
      client.send("GET /t/wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* Deferred.await(started)
      client.socket.destroy()
      expect(yield* Deferred.await(told)).toBe(true)
    }),
  )

  it.scopedLive("may fail with a problem, which says when to come back", () =>
    Effect.gen(function* () {
      const server = yield* serve([
        {
          method: "GET",
          path: "/t/busy",
          handle: () => Effect.fail({ status: 503, code: "busy", message: "later", retryAfterMs: 1500 }),
        },
      ])
      const answer = yield* get(server, "/t/busy")
      expect([answer.status, answer.headers.get("retry-after"), answer.json()]).toEqual([
        503,
        "2",
        { wrong: "busy", said: "later" },
      ])
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("of one request does not wait for that of another on the same connection", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const both = yield* Deferred.make<void>()
      let running = 0
      const server = yield* serve([
        {
          method: "GET",
          path: "/t/:n",
          handle: ({ params }) =>
            Effect.gen(function* () {
              if (++running === 2) yield* Deferred.succeed(both, undefined)
              yield* Deferred.await(go)
              return { type: "json" as const, body: params.n }
            }),
        },
      ])
      const client = yield* raw(server.port)
      client.send("GET /t/1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /t/2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* Deferred.await(both)
      const text = yield* Effect.fork(Effect.promise(() => client.until(/"1"[\s\S]*"2"/)))
      yield* Deferred.succeed(go, undefined)
      expect(yield* Fiber.join(text)).toMatch(/"1"[\s\S]*"2"/)
    }),
  )
})
