/**
 * The span and the counts around one HTTP request.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { traced } from "../../src/domain/traced.ts"
import { type GatewayRequest, gatewayRequest } from "../../src/observability/http.ts"
import type { HttpEnd, Observer } from "../../src/observability/observer.ts"
import { Recorder } from "./recorder.ts"

const request: GatewayRequest = {
  group: "openai",
  method: "POST",
  route: "/v1/chat/completions",
  requestId: "r-1",
  traceparent: undefined,
}

const counting = () => {
  const ends: Array<HttpEnd> = []
  const streams: Array<number> = []
  const unused = () => {}
  const observer: Observer = {
    turnEnded: unused,
    requestEnded: unused,
    toolEnded: unused,
    retried: unused,
    compacted: unused,
    asked: unused,
    questionEnded: unused,
    node: unused,
    conversations: unused,
    watchers: unused,
    committed: unused,
    httpEnded: (end) => void ends.push(end),
    streams: (_group, change) => void streams.push(change),
  }
  return { observer, ends, streams }
}

describe("an HTTP request", () => {
  it.effect("is a server span that goes on with the caller's trace, and what its handler does is below it", () =>
    Effect.gen(function* () {
      const recorder = new Recorder()
      const traceparent = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`
      const handler = Effect.succeed({ type: "json", status: 201, body: {} }).pipe(traced("inside", {}))
      yield* handler.pipe(gatewayRequest({ ...request, traceparent }, null), Effect.withTracer(recorder.tracer))
      const [inside] = recorder.named("inside")
      const [span] = recorder.named("super_pi.gateway.request")
      expect(span).toMatchObject({ traceId: "ab".repeat(16), parentId: "cd".repeat(8), kind: "server" })
      expect(span?.attributes).toEqual({
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 201,
        "super_pi.gateway.group": "openai",
        "super_pi.request_id": "r-1",
      })
      expect(inside?.parentId).toBe(span?.spanId)
    }),
  )

  it.effect("begins a trace of its own where the header is malformed", () =>
    Effect.gen(function* () {
      const recorder = new Recorder()
      for (const traceparent of ["", "00-xyz", `00-${"0".repeat(32)}-${"cd".repeat(8)}-01`, ["a", "b"]]) {
        yield* Effect.void.pipe(gatewayRequest({ ...request, traceparent }, null), Effect.withTracer(recorder.tracer))
      }
      expect(recorder.spans.map((span) => span.parentId)).toEqual([null, null, null, null])
    }),
  )

  it.effect("that is streamed ends its span with the head, and its stream still belongs to it", () =>
    Effect.gen(function* () {
      const recorder = new Recorder()
      const { ends, observer, streams } = counting()
      const work = Effect.sync(() => expect(streams).toEqual([1])).pipe(traced("later", {}))
      const reply = yield* Effect.succeed({ type: "events" as const, run: (_sink: null) => work }).pipe(
        gatewayRequest(request, observer),
        Effect.withTracer(recorder.tracer),
      )
      expect(recorder.spans).toHaveLength(1)
      expect(ends).toMatchObject([{ group: "openai", route: "/v1/chat/completions", status: 200 }])
      yield* Effect.withTracer(reply.run(null), recorder.tracer)
      expect(recorder.named("later")[0]?.parentId).toBe(recorder.spans[0]?.spanId)
      expect(streams).toEqual([1, -1])
    }),
  )

  it.effect("that fails on our side is an error by its status, and its message is not told", () =>
    Effect.gen(function* () {
      const recorder = new Recorder()
      const { ends, observer } = counting()
      const failing = <E>(error: E) =>
        Effect.fail(error).pipe(gatewayRequest(request, observer), Effect.withTracer(recorder.tracer), Effect.exit)
      yield* failing({ status: 503, code: "draining", message: "a secret" })
      yield* failing({ status: 400, code: "not_json", message: "a secret" })
      yield* Effect.die(new Error("a secret")).pipe(
        gatewayRequest(request, observer),
        Effect.withTracer(recorder.tracer),
        Effect.exit,
      )
      expect(ends.map(({ status }) => status)).toEqual([503, 400, 500])
      expect(recorder.spans.map(({ exit }) => Exit.isFailure(exit))).toEqual([true, false, true])
      expect(recorder.spans.map(({ attributes }) => attributes["error.type"])).toEqual(["503", undefined, "500"])
      expect(JSON.stringify(recorder.spans)).not.toContain("secret")
    }),
  )

  it.effect("whose client leaves is no error", () =>
    Effect.gen(function* () {
      const recorder = new Recorder()
      const { ends, observer } = counting()
      const fiber = yield* Effect.fork(
        Effect.never.pipe(gatewayRequest(request, observer), Effect.withTracer(recorder.tracer)),
      )
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      expect(ends).toMatchObject([{ status: 499 }])
      expect(recorder.spans[0]?.attributes).toMatchObject({ "super_pi.interrupted": true })
      expect(recorder.spans.every(({ exit }) => Exit.isSuccess(exit))).toBe(true)
    }),
  )

  it("costs nothing where nobody looks: the handler is run as it is", () => {
    const handle = Effect.succeed({ type: "empty", status: 204 })
    expect(Effect.runSync(handle.pipe(gatewayRequest(request, null)))).toEqual({ type: "empty", status: 204 })
  })
})
