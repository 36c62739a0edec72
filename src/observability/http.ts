/**
 * What an HTTP server calls around a handler: the span `super_pi.gateway.request`, which goes on with the caller's `traceparent`, and the counts
 * of requests and streams. The span of a streamed answer ends with its head; what the stream does afterwards still belongs to it.
 */
import { Cause, Context, Effect, Exit, Option, Tracer } from "effect"
import { parentOf, parseTraceparent } from "../domain/trace-context.ts"
import { codeOfCause, endSpan, isSilent } from "../domain/traced.ts"
import type { Observer } from "./observer.ts"

/** A routed request: nothing that the caller wrote but its method and its trace. */
export interface GatewayRequest {
  /** Name of the route group. */
  readonly group: string
  readonly method: string
  /** The pattern, not the path: `/agui/v1/sessions/:id/events`. */
  readonly route: string
  readonly requestId: string
  /** The header as it came. */
  readonly traceparent: string | ReadonlyArray<string> | undefined
}

type Reply =
  | { readonly type: "events"; readonly status?: number; readonly run: (sink: never) => Effect.Effect<void> }
  | { readonly type: "json" | "text" | "empty"; readonly status?: number }

const isReply = (value: unknown): value is Reply => typeof value === "object" && value !== null && "type" in value

const statusOf = (value: unknown): number =>
  typeof value === "object" && value !== null && "status" in value && typeof value.status === "number"
    ? value.status
    : 200

/** The reply with a stream that is counted, and whose work is part of the request's trace. */
const streamed = <R>(reply: R, group: string, observer: Observer | null, span: Tracer.Span | null): R => {
  if (!isReply(reply) || reply.type !== "events") return reply
  const run = (sink: never): Effect.Effect<void> => {
    const work = reply.run(sink)
    const under = span === null ? work : Effect.provideService(work, Tracer.ParentSpan, span)
    if (observer === null) return under
    return Effect.acquireUseRelease(
      Effect.sync(() => observer.streams(group, 1)),
      () => under,
      () => Effect.sync(() => observer.streams(group, -1)),
    )
  }
  // The same reply, with another `run` of the same type.
  return { ...reply, run } as R
}

/**
 * Wraps the handling of one request. The handler may answer or fail with anything that has a `status` (default 200, and 500 for a failure
 * without one); a defect counts as 500. Adds nothing where there is neither a tracer nor an observer.
 */
export const gatewayRequest =
  (request: GatewayRequest, observer: Observer | null) =>
  <A, E, R>(handle: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tracerWith((tracer) => {
      const silent = isSilent(tracer)
      if (silent && observer === null) return handle
      return Effect.flatMap(Effect.clock, (clock) => {
        const startedAt = clock.unsafeCurrentTimeNanos()
        const span = silent ? null : beginRequest(request, tracer, startedAt)
        const ended = (status: number, code: string | null) => {
          const { group, method, route } = request
          if (span !== null) {
            span.attribute("http.response.status_code", status)
            endSpan(span, clock, code)
          }
          const durationMs = Number(clock.unsafeCurrentTimeNanos() - startedAt) / 1e6
          observer?.httpEnded({ group, method, route, status, durationMs })
        }
        const under =
          span === null ? handle : (Effect.provideService(handle, Tracer.ParentSpan, span) as Effect.Effect<A, E, R>)
        return Effect.onExit(under, (exit) =>
          Effect.sync(() => {
            const code = Exit.isFailure(exit) ? codeOfCause(exit.cause) : null
            const status = Exit.isSuccess(exit) ? statusOf(exit.value) : failureStatus(exit.cause)
            ended(status, code === "interrupted" ? code : status >= 500 ? String(status) : null)
          }),
        ).pipe(Effect.map((reply) => streamed(reply, request.group, observer, span)))
      })
    })

/** 499: the client left before it was answered, as some servers log it. */
const failureStatus = (cause: Cause.Cause<unknown>): number => {
  const failure = Cause.failureOption(cause)
  if (Option.isNone(failure)) return Cause.isInterruptedOnly(cause) ? 499 : 500
  const { value } = failure
  return typeof value === "object" && value !== null && "status" in value ? statusOf(value) : 500
}

const beginRequest = (request: GatewayRequest, tracer: Tracer.Tracer, at: bigint): Tracer.Span => {
  const { group, method, requestId, route, traceparent } = request
  const trace = parseTraceparent(traceparent)
  const parent = trace === null || /^0+$/.test(trace.spanId) ? Option.none<Tracer.AnySpan>() : parentOf(trace)
  const span = tracer.span("super_pi.gateway.request", parent, Context.empty(), [], at, "server")
  span.attribute("http.request.method", method)
  span.attribute("http.route", route)
  span.attribute("super_pi.gateway.group", group)
  span.attribute("super_pi.request_id", requestId)
  return span
}
