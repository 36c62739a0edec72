/** Server-sent events: frames, heartbeats, clients that leave or take nothing, and the end of a server. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, LogLevel, Scope } from "effect"
import fc from "fast-check"
import { formatEvent } from "../../../src/protocols/http/events.ts"
import { silentLog } from "../../../src/protocols/http/log.ts"
import type { EventSink, Route } from "../../../src/protocols/http/route.ts"
import { eventually, get, raw, serve } from "./support.ts"

const events = (run: (sink: EventSink) => Effect.Effect<void>, endless = false): Route => ({
  method: "GET",
  path: "/t/events",
  handle: () => Effect.succeed({ type: "events", endless, run }),
})

const ask = "GET /t/events HTTP/1.1\r\nHost: localhost\r\n\r\n"

/** The events of a stream's text, as a browser reads them. */
const parse = (text: string) =>
  text
    .split("\n\n")
    .filter((frame) => frame !== "" && !frame.startsWith(":"))
    .map((frame) => {
      const fields = frame
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(": ") + 2)])
      const all = (name: string) => fields.flatMap(([key, value]) => (key === name ? [value] : []))
      return { data: all("data").join("\n"), event: all("event")[0], id: all("id")[0] }
    })

describe("an event", () => {
  it("says its data, name and id so that nothing in them begins another field", () => {
    expect(formatEvent("{}", undefined, undefined)).toBe("data: {}\n\n")
    expect(formatEvent("a\nb\r\nc\rd", "x", "7")).toBe("event: x\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n")
    expect(formatEvent("", "x\ndata: forged", "1\r\n2")).toBe("event: xdata: forged\nid: 12\ndata: \n\n")
  })

  it("of any text comes back as it was, with its line ends as newlines", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.option(fc.string(), { nil: undefined }), (data, event) => {
        const [only, ...more] = parse(formatEvent(data, event, undefined))
        expect(more).toEqual([])
        expect(only?.data).toBe(data.replace(/\r\n|\r/g, "\n"))
      }),
    )
  })
})

describe("a stream", () => {
  it.scopedLive("comes as it is sent, and ends with its handler", () =>
    Effect.gen(function* () {
      const server = yield* serve([
        events((sink) =>
          Effect.gen(function* () {
            sink.send('{"n":1}')
            sink.send('{"n":2}', { event: "two", id: "2" })
            yield* sink.room
            sink.send("[DONE]")
          }),
        ),
      ])
      const answer = yield* get(server, "/t/events")
      expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
      expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform")
      expect(answer.headers.get("x-accel-buffering")).toBe("no")
      expect(parse(answer.text)).toEqual([
        { data: '{"n":1}', event: undefined, id: undefined },
        { data: '{"n":2}', event: "two", id: "2" },
        { data: "[DONE]", event: undefined, id: undefined },
      ])
      yield* eventually(() => server.load().streams === 0)
    }),
  )

  it.scopedLive("is kept open by heartbeats while nothing is said", () =>
    Effect.gen(function* () {
      const server = yield* serve([events(() => Effect.never)], { limits: { heartbeatMs: 30 } })
      const client = yield* raw(server.port)
      client.send(ask)
      yield* Effect.promise(() => client.until(/(: keep-alive\n\n[\s\S]*){3}/))
    }),
  )

  it.scopedLive("whose client leaves interrupts its handler, and what is sent after that is dropped", () =>
    Effect.gen(function* () {
      const interrupted = yield* Deferred.make<void>()
      const server = yield* serve([
        events((sink) =>
          Effect.sync(() => sink.send("first")).pipe(
            Effect.zipRight(Effect.never),
            Effect.onInterrupt(() => {
              sink.send("too late")
              return Deferred.succeed(interrupted, undefined)
            }),
          ),
        ),
      ])
      const client = yield* raw(server.port)
      client.send(ask)
      yield* Effect.promise(() => client.until(/data: first/))
      client.socket.destroy()
      yield* Deferred.await(interrupted)
      yield* eventually(() => server.load().streams === 0 && server.load().requests === 0)
    }),
  )

  it.scopedLive("to a client that takes nothing is bounded and cut off, and room waits for one that is slow", () =>
    Effect.gen(function* () {
      const notices: Array<string> = []
      let sent = 0
      const interrupted = yield* Deferred.make<void>()
      const server = yield* serve(
        [
          events((sink) =>
            Effect.sync(() => {
              for (let i = 0; i < 64; i++) sink.send("x".repeat(16 * 1024))
              if (notices.length === 0) sent += 64
            }).pipe(
              Effect.zipRight(Effect.yieldNow()),
              Effect.forever,
              Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined)),
            ),
          ),
          {
            method: "GET",
            path: "/t/patient",
            handle: () =>
              Effect.succeed({
                type: "events",
                run: (sink) =>
                  Effect.forever(
                    Effect.zipRight(
                      sink.room,
                      Effect.sync(() => {
                        sink.send("y".repeat(16 * 1024))
                        sent++
                      }),
                    ),
                  ),
              }),
          },
        ],
        { log: { ...silentLog, notice: (line) => void notices.push(line) }, limits: { stalledMs: 100 } },
      )
      const stalled = yield* raw(server.port)
      stalled.socket.pause()
      stalled.send(ask)
      yield* Deferred.await(interrupted)
      // What the kernel took, and the bound.
      expect(sent * 16).toBeLessThan(64 * 1024)
      expect(notices.join()).toContain("took nothing and was cut off")
      sent = 0
      const slow = yield* raw(server.port)
      slow.socket.pause()
      slow.send("GET /t/patient HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* eventually(() => server.load().streams === 0 && sent > 0)
      expect(sent * 16).toBeLessThan(64 * 1024)
    }),
  )

  it.scopedLive("takes a place of its principal, and there is only so much room", () =>
    Effect.gen(function* () {
      const server = yield* serve([events(() => Effect.never)], { limits: { streamsPerPrincipal: 2 } })
      const clients = [yield* raw(server.port), yield* raw(server.port)]
      for (const client of clients) {
        client.send(ask)
        yield* Effect.promise(() => client.until(/text\/event-stream/))
      }
      const refused = yield* get(server, "/t/events")
      expect([refused.status, refused.headers.get("retry-after"), refused.json()]).toMatchObject([
        503,
        "1",
        { wrong: "too_many_streams" },
      ])
      clients[0]?.socket.destroy()
      yield* eventually(() => server.load().streams === 1)
      const next = yield* raw(server.port)
      next.send(ask)
      yield* Effect.promise(() => next.until(/text\/event-stream/))
    }),
  )

  it.scopedLive("that fails unforeseen ends suddenly, so that its client does not take it for whole", () =>
    Effect.gen(function* () {
      const server = yield* serve([
        events((sink) =>
          Effect.zipRight(
            Effect.sync(() => sink.send("part")),
            Effect.zipRight(Effect.sleep(20), Effect.die("x")),
          ),
        ),
      ])
      const outcome = yield* Effect.promise(async () => {
        const response = await fetch(`${server.url}/t/events`)
        return response.text().then(
          () => "whole",
          () => "cut",
        )
      })
      expect(outcome).toBe("cut")
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )
})

describe("a server that stops", () => {
  /** A server in a scope of its own. */
  const stoppable = (routes: ReadonlyArray<Route>, drainMs: number) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const server = yield* Scope.extend(serve(routes, { limits: { drainMs } }), scope)
      return { server, stop: Scope.close(scope, Exit.void) }
    })

  it.scopedLive("lets what runs end, and sends new requests away", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const slow: Route = {
        method: "GET",
        path: "/t/slow",
        handle: () =>
          Deferred.succeed(started, undefined).pipe(
            Effect.zipRight(Deferred.await(go)),
            Effect.as({ type: "json" as const, body: "done" }),
          ),
      }
      const quick: Route = { method: "GET", path: "/t/quick", handle: () => Effect.succeed({ type: "json", body: 1 }) }
      const { server, stop } = yield* stoppable([slow, quick], 60_000)
      const idle = yield* raw(server.port)
      idle.send("GET /t/quick HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* Effect.promise(() => idle.until(/\r\n\r\n1/))
      const running = yield* raw(server.port)
      running.send("GET /t/slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* Deferred.await(started)
      const stopping = yield* Effect.fork(stop)
      yield* Effect.yieldNow()
      const late = yield* get(server, "/t/quick")
      expect([late.status, late.headers.get("retry-after"), late.json()]).toMatchObject([
        503,
        "2",
        { wrong: "draining" },
      ])
      expect(late.headers.get("connection")).toBe("close")
      yield* Deferred.succeed(go, undefined)
      expect(yield* Effect.promise(() => running.ended)).toMatch(/200 OK[\s\S]*"done"/)
      yield* Fiber.join(stopping)
      yield* Effect.promise(() => idle.ended)
    }),
  )

  it.scopedLive("ends streams that have no end of their own at once, and properly", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable(
        [
          events(
            (sink) =>
              Effect.sync(() => sink.send("hello")).pipe(
                Effect.zipRight(Effect.never),
                Effect.onInterrupt(() => Effect.sync(() => sink.send("bye"))),
              ),
            true,
          ),
        ],
        60_000,
      )
      const client = yield* raw(server.port)
      client.send(ask)
      yield* Effect.promise(() => client.until(/hello/))
      yield* stop
      expect(yield* Effect.promise(() => client.ended)).toMatch(/data: hello\n\n[\s\S]*data: bye\n\n\r\n0\r\n\r\n$/)
    }),
  )

  it.scopedLive("interrupts the rest at the deadline and says so; the client has not left", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      let left: boolean | null = null
      const { server, stop } = yield* stoppable(
        [
          {
            method: "GET",
            path: "/t/forever",
            handle: (request) =>
              Deferred.succeed(started, undefined).pipe(
                Effect.zipRight(Effect.never),
                Effect.onInterrupt(() =>
                  Effect.sync(() => {
                    left = request.clientLeft()
                  }),
                ),
              ),
          },
        ],
        30,
      )
      const client = yield* raw(server.port)
      client.send("GET /t/forever HTTP/1.1\r\nHost: localhost\r\n\r\n")
      yield* Deferred.await(started)
      yield* stop
      expect(yield* Effect.promise(() => client.ended)).toMatch(/^HTTP\/1\.1 503 [\s\S]*"wrong":"draining"/)
      expect(left).toBe(false)
      const gone = yield* Effect.promise(() =>
        fetch(`${server.url}/t/forever`).then(
          () => "answered",
          () => "refused",
        ),
      )
      expect(gone).toBe("refused")
    }),
  )
})
