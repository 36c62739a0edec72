/** Who may call, from where and how much: tokens, origins, rates, connections, slow clients; and bytes of any kind. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Either } from "effect"
import fc from "fast-check"
import { type Authenticator, authenticatorOf } from "../../../src/protocols/auth/tokens.ts"
import { readTarget } from "../../../src/protocols/http/admission.ts"
import { isLoopback, judgeOrigin } from "../../../src/protocols/http/origin.ts"
import { type Bucket, makeRateTable, take } from "../../../src/protocols/http/rate.ts"
import type { Route } from "../../../src/protocols/http/route.ts"
import { matchPath } from "../../../src/protocols/http/router.ts"
import { eventually, get, raw, serve } from "./support.ts"

const auth = (tokens: Record<string, string>): Authenticator =>
  Either.getOrThrowWith(authenticatorOf({ tokens }, undefined), (fault) => new Error(fault))

const whoami: Route = {
  method: "GET",
  path: "/t/whoami",
  handle: ({ principal }) => Effect.succeed({ type: "json", body: principal }),
}
const open: Route = {
  method: "GET",
  path: "/t/open",
  open: true,
  handle: ({ principal }) => Effect.succeed({ type: "json", body: principal }),
}
const read: Route = {
  method: "POST",
  path: "/t/read",
  handle: ({ body }) => Effect.map(body, (bytes) => ({ type: "json", body: bytes.length })),
}

const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } })

describe("tokens", () => {
  it("stand for principals, also those without a name; the variable takes the place of the settings", () => {
    const named = Either.getOrThrow(authenticatorOf({ tokens: { alice: "key-a", bob: "key-b" } }, ""))
    expect(["key-a", "key-b", "key-c", "", "key-aa"].map(named.principalOf)).toEqual(["alice", "bob", null, null, null])
    const listed = Either.getOrThrow(authenticatorOf({ tokens: ["key-one", "key-two"] }, undefined))
    const again = Either.getOrThrow(authenticatorOf({}, " key-two ,key-one,carol=key-c=="))
    expect(listed.principalOf("key-one")).toMatch(/^token-[0-9a-f]{12}$/)
    expect(again.principalOf("key-one")).toBe(listed.principalOf("key-one"))
    expect(again.principalOf("key-c==")).toBe("carol")
    const replaced = Either.getOrThrow(authenticatorOf({ tokens: { alice: "key-a" } }, "key-b"))
    expect(replaced.principalOf("key-a")).toBeNull()
    expect(Either.getOrThrow(authenticatorOf({}, undefined)).required).toBe(false)
  })

  it("that two principals share, or that no header can carry, are refused without being shown", () => {
    const shared = Either.flip(authenticatorOf({ tokens: { alice: "same-key", bob: "same-key" } }, undefined))
    expect(Either.getOrThrow(shared)).toBe(
      "gateway tokens: expected a token of its own for each principal, alice and bob share one",
    )
    const spaced = Either.getOrThrow(Either.flip(authenticatorOf({}, "fine,alice=not fine")))
    expect(spaced).toBe("SUPER_PI_GATEWAY_TOKEN: item 2: expected visible ASCII characters without spaces")
  })

  it.scopedLive("open every route but those that are open, and a wrong one opens none", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami, open], { auth: auth({ alice: "key-a" }) })
      expect((yield* get(server, "/t/whoami", bearer("key-a"))).json()).toBe("alice")
      for (const init of [{}, bearer("key-b"), bearer(""), { headers: { authorization: "Basic key-a" } }]) {
        const answer = yield* get(server, "/t/whoami", init)
        expect([answer.status, answer.headers.get("www-authenticate"), answer.json()]).toMatchObject([
          401,
          "Bearer",
          { wrong: "invalid_api_key" },
        ])
      }
      // What there is and what not is told to nobody.
      expect((yield* get(server, "/t/nothing")).status).toBe(401)
      expect((yield* get(server, "/t/open")).json()).toBe("")
    }),
  )

  it.scopedLive("that are wrong too often block their address for a while, right ones too", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami], { auth: auth({ alice: "key-a" }), limits: { loginsPerMinute: 3 } })
      for (let i = 0; i < 3; i++) expect((yield* get(server, "/t/whoami", bearer(`guess-${i}`))).status).toBe(401)
      const blocked = yield* get(server, "/t/whoami", bearer("key-a"))
      expect(blocked.status).toBe(429)
      expect(Number(blocked.headers.get("retry-after"))).toBeGreaterThan(0)
    }),
  )
})

describe("the origin of a request", () => {
  const rules = { tokens: false, origins: ["https://app.example"], hosts: ["gate.local"] }
  it.each([
    ["localhost:4000", undefined, true],
    ["127.0.0.1:4000", undefined, true],
    ["[::1]:4000", undefined, true],
    ["GATE.local", undefined, true],
    ["evil.example:4000", undefined, false],
    ["127.0.0.1.evil.example", undefined, false],
    ["localhost:4000", "http://localhost:4000", true],
    ["localhost:4000", "http://localhost:3000", false],
    ["localhost:4000", "https://app.example", true],
    ["localhost:4000", "https://app.example.evil", false],
    ["localhost:4000", "null", false],
    ["evil.example", "http://evil.example", false],
  ] as const)("with host %s and origin %s may call without tokens: %s", (host, origin, may) => {
    expect(judgeOrigin(rules, host, origin).ok).toBe(may)
  })

  it("does not matter where a token decides, but only an allowed page may read the answer", () => {
    const tokens = { ...rules, tokens: true }
    expect(judgeOrigin(tokens, "evil.example", "http://evil.example")).toEqual({ ok: true, cors: null })
    expect(judgeOrigin(tokens, "x", "https://app.example")).toEqual({ ok: true, cors: "https://app.example" })
  })

  it.each([
    ["127.0.0.1", true],
    ["127.8.0.1", true],
    ["localhost", true],
    ["::1", true],
    ["0.0.0.0", false],
    ["::", false],
    ["192.168.0.7", false],
    ["127.0.0.1.example.com", false],
    ["localhost.example.com", false],
  ] as const)("%s is loopback: %s", (host, loopback) => {
    expect(isLoopback(host)).toBe(loopback)
  })

  it.scopedLive("that is allowed gets its preflight and may read answers and their headers", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami], { origins: ["https://app.example"] })
      const from = (origin: string, more: Record<string, string> = {}) => ({ headers: { origin, ...more } })
      const preflight = yield* get(server, "/t/whoami", {
        method: "OPTIONS",
        ...from("https://app.example", {
          "access-control-request-method": "GET",
          "access-control-request-headers": "authorization, x-session-id",
        }),
      })
      expect(preflight.status).toBe(204)
      expect(preflight.headers.get("access-control-allow-origin")).toBe("https://app.example")
      expect(preflight.headers.get("access-control-allow-headers")).toBe("authorization, x-session-id")
      expect(preflight.headers.get("access-control-allow-methods")).toBe("GET, HEAD, OPTIONS")
      const answer = yield* get(server, "/t/whoami", from("https://app.example"))
      expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example")
      expect(answer.headers.get("vary")).toBe("Origin")
      expect(answer.headers.get("access-control-expose-headers")).toContain("x-request-id")
      const stranger = yield* get(server, "/t/whoami", from("https://evil.example"))
      expect([stranger.status, stranger.json()]).toMatchObject([403, { wrong: "origin_not_allowed" }])
      expect(stranger.headers.get("access-control-allow-origin")).toBeNull()
    }),
  )

  it.scopedLive("is this machine under a loopback name; a name that was rebound is refused", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami])
      const client = yield* raw(server.port)
      client.send("GET /t/whoami HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n")
      expect(yield* Effect.promise(() => client.ended)).toMatch(/^HTTP\/1\.1 403 [\s\S]*host_not_allowed/)
    }),
  )
})

describe("a rate", () => {
  it("lets through the burst and then its rate, and says how long to wait", () => {
    const rate = { rate: 2, burst: 3 }
    let bucket: Bucket | undefined
    const takeAt = (now: number) => {
      const next = take(bucket, now, rate)
      bucket = next.bucket
      return next.waitMs
    }
    expect([takeAt(0), takeAt(0), takeAt(0), takeAt(0)]).toEqual([0, 0, 0, 500])
    expect([takeAt(499), takeAt(500), takeAt(500)]).toEqual([1, 0, 500])
    expect([takeAt(60_000), takeAt(60_000), takeAt(60_000), takeAt(60_000)]).toEqual([0, 0, 0, 500])
  })

  it("never lets more through in any time than burst and rate allow, also when the clock goes back", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -50, max: 400 }), { maxLength: 200 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 10 }),
        (steps, rate, burst) => {
          let now = 0
          let bucket: Bucket | undefined
          let through = 0
          let forward = 0
          for (const step of steps) {
            now += step
            forward += Math.max(0, step)
            const next = take(bucket, now, { rate, burst })
            bucket = next.bucket
            if (next.waitMs === 0) through++
          }
          expect(through).toBeLessThanOrEqual(burst + (forward * rate) / 1000 + 1e-6)
        },
      ),
    )
  })

  it("is kept for a bounded number of callers", () => {
    const table = makeRateTable({ rate: 0.001, burst: 1 })
    expect(table.take("first", 0)).toBe(0)
    expect(table.take("first", 0)).toBeGreaterThan(0)
    for (let i = 0; i < 10_000; i++) table.take(`other ${i}`, 0)
    expect(table.peek("first", 0)).toBe(0)
  })

  it.scopedLive("is one principal's, not that of everybody", () =>
    Effect.gen(function* () {
      const options = {
        auth: auth({ alice: "key-a", bob: "key-b" }),
        limits: { requestsPerSecond: 0.01, requestBurst: 2 },
      }
      const server = yield* serve([whoami], options)
      for (let i = 0; i < 2; i++) expect((yield* get(server, "/t/whoami", bearer("key-a"))).status).toBe(200)
      const over = yield* get(server, "/t/whoami", bearer("key-a"))
      expect([over.status, over.json()]).toMatchObject([429, { wrong: "rate_limited" }])
      expect(Number(over.headers.get("retry-after"))).toBeGreaterThan(50)
      expect((yield* get(server, "/t/whoami", bearer("key-b"))).json()).toBe("bob")
    }),
  )
})

describe("connections", () => {
  it.scopedLive("are limited per address; one more is told so and closed", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami], { limits: { connectionsPerAddress: 2 } })
      const clients = [yield* raw(server.port), yield* raw(server.port)]
      yield* eventually(() => server.load().connections === 2)
      const third = yield* raw(server.port)
      expect(yield* Effect.promise(() => third.ended)).toMatch(/^HTTP\/1\.1 503 [\s\S]*too_many_connections/)
      clients[0]?.socket.destroy()
      yield* eventually(() => server.load().connections === 1)
      const fourth = yield* raw(server.port)
      fourth.send("GET /t/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* Effect.promise(() => fourth.until(/200 OK/))
    }),
  )

  it.scopedLive("that send their head too slowly, or too much of it, are cut off", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami], { limits: { headerMs: 200, headerBytes: 4096 } })
      const loris = yield* raw(server.port)
      loris.send("GET /t/whoami HTTP/1.1\r\nHost: loc")
      expect(yield* Effect.promise(() => loris.ended)).toMatch(/^HTTP\/1\.1 408 [\s\S]*head_timeout/)
      const long = yield* raw(server.port)
      long.send(`GET /t/whoami HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(8192)}\r\n\r\n`)
      expect(yield* Effect.promise(() => long.ended)).toMatch(/^HTTP\/1\.1 431 [\s\S]*head_too_large/)
      const fine = yield* get(server, "/t/whoami")
      expect(fine.status).toBe(200)
    }),
  )

  it.scopedLive("that send their body too slowly are told, and the connection ends", () =>
    Effect.gen(function* () {
      const server = yield* serve([read], { limits: { bodyMs: 100 } })
      const slow = yield* raw(server.port)
      slow.send("POST /t/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
      expect(yield* Effect.promise(() => slow.ended)).toMatch(/^HTTP\/1\.1 408 [\s\S]*body_timeout/)
    }),
  )

  it.scopedLive("end when they are idle for long", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami], { limits: { keepAliveMs: 100 } })
      const client = yield* raw(server.port)
      client.send("GET /t/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
      expect(yield* Effect.promise(() => client.ended)).toMatch(/200 OK/)
    }),
  )

  it.scopedLive("that pipeline without end are told to wait for answers", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const server = yield* serve([
        {
          method: "GET",
          path: "/t/wait",
          handle: () => Effect.as(Deferred.await(go), { type: "json" as const, body: 1 }),
        },
      ])
      const client = yield* raw(server.port)
      client.send("GET /t/wait HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(40))
      yield* eventually(() => server.load().requests === 32)
      yield* Deferred.succeed(go, undefined)
      yield* Effect.promise(() => client.until(/503 Service Unavailable[\s\S]*too_many_requests/))
    }),
  )
})

describe("bytes of any kind", () => {
  const arbitraryHead = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc
      .record({
        method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "BREW"),
        target: fc.oneof(
          fc.webPath(),
          fc.string({ maxLength: 40 }),
          fc.constantFrom("*", "//", "http://[::", "/%", "/t/%ff"),
        ),
        headers: fc.array(fc.tuple(fc.string({ maxLength: 12 }), fc.string({ maxLength: 20 })), { maxLength: 4 }),
        length: fc.constantFrom(
          "",
          "Content-Length: 5\r\n",
          "Content-Length: -1\r\n",
          "Transfer-Encoding: chunked\r\n",
        ),
        body: fc.string({ maxLength: 40 }),
      })
      .map(
        ({ method, target, headers, length, body }) =>
          `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}${length}\r\n${body}`,
      ),
  )

  it.scopedLive("never end the server, and the next request is answered", () =>
    Effect.gen(function* () {
      const server = yield* serve([whoami, read], { limits: { headerMs: 5000, bodyMs: 50, requestBurst: 1e6 } })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(arbitraryHead, async (head) => {
            await Effect.runPromise(
              Effect.scoped(
                Effect.gen(function* () {
                  const client = yield* raw(server.port)
                  client.send(Buffer.from(head, "latin1"))
                  client.socket.end()
                  const answer = yield* Effect.promise(() => client.ended)
                  expect(answer === "" || answer.startsWith("HTTP/1.1 ")).toBe(true)
                }),
              ),
            )
          }),
          { numRuns: 150 },
        ),
      )
      expect((yield* get(server, "/t/whoami")).json()).toBe("local")
      yield* eventually(() => server.load().requests === 0)
    }),
  )

  it("as a target give a path or nothing", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.webPath()), (target) => {
        const url = readTarget(target)
        expect(url === null || url.origin === "http://gateway").toBe(true)
      }),
    )
    expect(readTarget("//evil.example/x")?.pathname).toBe("//evil.example/x")
    expect(readTarget("http://other/x?y=1")?.search).toBe("?y=1")
  })

  it("as a path match a pattern or not", () => {
    fc.assert(
      fc.property(fc.string(), (segment) => {
        const params = matchPath("/a/:b/c", `/a/${encodeURIComponent(segment)}/c`)
        expect(params).toEqual(segment === "" ? null : { b: segment })
      }),
    )
    expect(matchPath("/a/:b", "/a/%ff")).toBeNull()
  })
})
