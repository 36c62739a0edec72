/**
 * One request and its answer: a state machine of callbacks around the handler's fiber. It owns the response.
 *
 *   admitted → handler runs → reply written → ended
 *        client leaves (response closed) → handler interrupted → ended
 *        server stops → endless streams interrupted at once, the rest at the deadline → told so → ended
 */
import type { ServerResponse } from "node:http"
import { Cause, Effect, Exit, type Fiber, FiberId } from "effect"
import { gatewayRequest } from "../../observability/http.ts"
import type { Observer } from "../../observability/observer.ts"
import { type Admission, type Head, worded } from "./admission.ts"
import { type BodyBudget, bodyOf, decodeJson } from "./body.ts"
import { type EventStream, makeEventStream } from "./events.ts"
import type { HttpLimits } from "./limits.ts"
import type { GatewayLog } from "./log.ts"
import { draining, internal, tooManyStreams } from "./problems.ts"
import { beginStream, problemHeaders, type ReplyContext, sendReply, statusOf } from "./reply.ts"
import type { HttpReply, HttpRequest, Problem, RouteGroup } from "./route.ts"

/** What exchanges need of their server. */
export interface ExchangeHost {
  readonly limits: HttpLimits
  readonly log: GatewayLog
  readonly budget: BodyBudget
  /** Who counts requests; null: nobody. */
  readonly observer: Observer | null
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, E>
  readonly isDraining: () => boolean
  /** Takes the place of one stream of a principal; null where there is none. */
  readonly takeStream: (principal: string) => (() => void) | null
  /** Streams that the server's timer looks after. */
  readonly streams: Set<EventStream>
  /** Exchanges that run, with what ends them early. */
  readonly running: Set<RunningExchange>
  /** In ms. */
  readonly now: () => number
}

export interface RunningExchange {
  /** Whether it would never end by itself. */
  readonly endless: () => boolean
  /** Interrupts the handler; the client is told that the server stops. */
  readonly interrupt: () => void
}

type Admitted = Extract<Admission, { readonly type: "route" }>

/** Serves an admitted request. `ended` is called once, whatever becomes of it. */
export const runExchange = (
  host: ExchangeHost,
  head: Head,
  admitted: Admitted,
  context: ReplyContext,
  response: ServerResponse,
  ended: (status: number) => void,
): void => {
  const { incoming } = head
  const { group, params, principal, route } = admitted
  const { limits, now } = host
  let left = false
  let stream: EventStream | null = null
  let isEndless = false
  let release = () => {}

  const bytes = bodyOf(incoming, {
    maxBytes: Math.min(route.maxBody ?? limits.bodyBytes, limits.bodyBytes),
    timeoutMs: limits.bodyMs,
    budget: host.budget,
    begin: () => {
      if (incoming.headers.expect !== undefined && !response.headersSent) response.writeContinue()
    },
  })
  const request: HttpRequest = {
    method: head.method,
    url: head.url,
    params,
    headers: incoming.headers,
    principal,
    requestId: context.requestId,
    remoteAddress: head.address,
    body: bytes,
    json: Effect.flatMap(bytes, decodeJson),
    clientLeft: () => left,
  }

  const openStream = (reply: Extract<HttpReply, { readonly type: "events" }>): Effect.Effect<void, Problem> =>
    Effect.suspend(() => {
      const place = host.takeStream(principal)
      if (place === null) return Effect.fail(tooManyStreams)
      if (reply.endless === true && host.isDraining()) {
        place()
        return Effect.fail(draining)
      }
      beginStream(response, reply, context)
      const opened = makeEventStream(response, {
        heartbeatMs: limits.heartbeatMs,
        stalledMs: limits.stalledMs,
        now,
        onStalled: () => host.log.notice(`${context.requestId}: the client took nothing and was cut off`),
      })
      release = () => {
        place()
        host.streams.delete(opened)
      }
      stream = opened
      isEndless = reply.endless === true
      host.streams.add(opened)
      return reply.run(opened.sink)
    })

  const observed = {
    group: group.name,
    method: head.method,
    route: route.path,
    requestId: context.requestId,
    traceparent: incoming.headers.traceparent,
  }
  const handled = Effect.suspend(() => route.handle(request)).pipe(
    gatewayRequest(observed, host.observer),
    Effect.flatMap((reply): Effect.Effect<HttpReply | null, Problem> => {
      if (reply.type !== "events") return Effect.succeed(reply)
      // A `HEAD` is answered with the head alone.
      if (head.method === "HEAD") return Effect.succeed({ type: "empty", status: statusOf(reply) })
      return Effect.as(openStream(reply), null)
    }),
  )

  const say = (reply: HttpReply, problem?: Problem) => {
    try {
      sendReply(incoming, response, reply, context, problem === undefined ? {} : problemHeaders(problem))
      return true
    } catch (cause) {
      host.log.notice(`${context.requestId}: the reply could not be written: ${String(cause)}`)
      if (response.headersSent) response.destroy()
      return false
    }
  }
  const wordedBy = (owner: RouteGroup | null, problem: Problem) => say(worded(owner, problem), problem)

  /** Whatever the handler came to. Runs once, when its fiber is done. */
  const finish = (exit: Exit.Exit<HttpReply | null, Problem>): void => {
    release()
    host.running.delete(entry)
    if (left || response.destroyed) {
      ended(499)
      return
    }
    if (Exit.isSuccess(exit)) {
      if (exit.value === null) stream?.end()
      else if (!say(exit.value)) fault(new Error("the reply could not be written"))
    } else {
      const failure = Cause.failureOption(exit.cause)
      if (failure._tag === "Some") wordedBy(group, failure.value)
      else if (!Cause.isInterruptedOnly(exit.cause)) fault(exit.cause)
      // What was sent so far stays true; the end of a stream that was interrupted is an ordinary one.
      else if (stream !== null) stream.end()
      else wordedBy(group, draining)
    }
    ended(response.statusCode)
  }

  const fault = (cause: unknown): void => {
    const reference = context.requestId
    host.log.notice(`${reference}: a handler of ${group.name} failed`)
    host.fork(Effect.annotateLogs(Effect.logError(`HTTP handler of ${group.name} failed`, cause), { reference }))
    // In a stream that has begun only its sudden end tells the client that it is not whole.
    if (response.headersSent) response.destroy()
    else wordedBy(group, internal(reference))
  }

  const interrupt = () => fiber.unsafeInterruptAsFork(FiberId.none)
  const entry: RunningExchange = { endless: () => isEndless, interrupt }
  host.running.add(entry)
  response.on("close", () => {
    if (response.writableFinished) return
    left = true
    interrupt()
  })
  const fiber = host.fork(handled)
  fiber.addObserver(finish)
}
