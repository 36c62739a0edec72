/**
 * One connection: reads messages, starts a fiber per request in order of arrival, writes answers as they come. It owns its channel and
 * everything that was started on its behalf; all of that ends with it. Bounds: one unfinished message, `requestLimit` running requests,
 * `heavyLimit` of those with large answers, and no reading while the outlet is full.
 */

import { Cause, Deferred, Effect, FiberSet, Option } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import { Busy } from "../../domain/failure.ts"
import type { Channel, Received } from "./channel.ts"
import { errorOf, faultOf, methodNotFound, unauthenticated } from "./errors.ts"
import type { Login } from "./login.ts"
import {
  type Call,
  decodeLine,
  type Incoming,
  type Item,
  parseError,
  type RpcError,
  renderBatch,
  renderError,
  renderResult,
} from "./message.ts"
import { attemptLogin, loginMethod, loginToken, type Methods } from "./methods.ts"
import { makeWatches } from "./watches.ts"

/** Requests of one connection that may run at once; further ones are answered busy. */
const requestLimit = 1024
/** Requests with possibly large answers that run at once; further ones wait. */
const heavyLimit = 8
/** Those that run or wait; while there are as many, no further line is read. */
const heavyQueue = 64
/** Characters that the answers of one batch may have together; further ones are answered busy. */
const batchAnswerLimit = 64 * 1024 * 1024

/** What one request leaves: its answer (null for a notification), and what to do once that is on its way. */
interface Outcome {
  readonly answer: string | null
  readonly afterwards: Effect.Effect<void>
}

const silent: Outcome = { answer: null, afterwards: Effect.void }

const tooBusy = new Busy({
  what: "connection",
  detail: `expected at most ${requestLimit} running requests, wait for some answers`,
  retryAfterMs: null,
})

const batchTooLarge = new Busy({
  what: "connection",
  detail: `expected a batch whose answers have at most ${batchAnswerLimit} characters together, ask one by one`,
  retryAfterMs: null,
})

const readMessage = (message: Received): Incoming =>
  message.type === "text" ? decodeLine(message.text) : { type: "single", item: parseError(message.reason) }

/** Logs a fault under a fresh reference, and says what the client is told. */
const fault = (cause: Cause.Cause<unknown>): Effect.Effect<RpcError> =>
  Effect.gen(function* () {
    const { randomBytes } = yield* Effect.promise(() => import("node:crypto"))
    const reference = randomBytes(6).toString("hex")
    yield* Effect.annotateLogs(Effect.logError("JSON-RPC request failed", cause), { reference })
    return faultOf(reference)
  })

/** What a connection serves, and as whom. */
export interface ConnectionOptions {
  readonly sessions: SessionsService
  readonly methods: Methods
  readonly login: Login
}

/** Serves one connection until the client is gone, or has ended its side and has all its answers. Interruption ends it at once. */
export const serveConnection = (channel: Channel, options: ConnectionOptions): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { login, methods, sessions } = options
      const { outlet } = channel
      const watches = yield* makeWatches({ sessions, outlet, fault })
      /** Done when too many tokens were wrong: the connection ends behind the answer that says so. */
      const turnedAway = yield* Deferred.make<void>()
      const names = [loginMethod, ...methods.keys()]
      const heavyPermits = yield* Effect.makeSemaphore(heavyLimit)
      const heavyPlaces = yield* Effect.makeSemaphore(heavyQueue)
      const fibers = yield* FiberSet.make<void>()
      const fork = yield* FiberSet.runtime(fibers)<never>()
      let running = 0

      const logIn = (request: Call, failed: (error: RpcError) => Outcome): Effect.Effect<Outcome> =>
        Effect.gen(function* () {
          const result = yield* attemptLogin(login, yield* loginToken(request.params))
          switch (result.type) {
            case "principal": {
              const answer = request.id === undefined ? null : renderResult(request.id, { principal: result.principal })
              return { answer, afterwards: Effect.void }
            }
            case "refused":
              return failed(errorOf(result.failure))
            case "wrong": {
              const outcome = failed(unauthenticated(true))
              return result.last ? { ...outcome, afterwards: Deferred.succeed(turnedAway, undefined) } : outcome
            }
          }
        }).pipe(Effect.catchAll((error) => Effect.succeed(failed(errorOf(error)))))

      const call = (request: Call): Effect.Effect<Outcome> => {
        const id = request.id
        const failed = (error: RpcError): Outcome =>
          id === undefined ? silent : { answer: renderError(id, error), afterwards: Effect.void }
        if (request.method === loginMethod) return logIn(request, failed)
        const principal = login.principal()
        if (principal === null) return Effect.succeed(failed(unauthenticated(false)))
        const method = methods.get(request.method)
        if (method === undefined) return Effect.succeed(failed(methodNotFound(request.method, names)))
        return Effect.suspend(() => method.run(request.params, { principal, watches })).pipe(
          Effect.map(
            (answer): Outcome => ({
              answer: id === undefined ? null : renderResult(id, answer.result),
              afterwards: answer.afterwards ?? Effect.void,
            }),
          ),
          Effect.catchAllCause((cause) => {
            const failure = Cause.failureOption(cause)
            return Option.isSome(failure)
              ? Effect.succeed(failed(errorOf(failure.value)))
              : Effect.map(fault(cause), failed)
          }),
        )
      }

      const isHeavy = (item: Item): boolean => item.type === "call" && methods.get(item.method)?.heavy === true

      /** Counts a request from its start to its end, and lets only so many heavy ones run. `use` gets its outcome. */
      const admitted = (item: Item, use: (done: Outcome) => Effect.Effect<void>): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (item.type === "invalid") return use({ answer: renderError(item.id, item.error), afterwards: Effect.void })
          if (running >= requestLimit) {
            return use(
              item.id === undefined
                ? silent
                : { answer: renderError(item.id, errorOf(tooBusy)), afterwards: Effect.void },
            )
          }
          running++
          const answered = Effect.flatMap(call(item), use)
          return Effect.ensuring(
            isHeavy(item) ? heavyPermits.withPermits(1)(answered) : answered,
            Effect.sync(() => running--),
          )
        })

      const say = (text: string | null): Effect.Effect<void> =>
        text === null ? Effect.void : Effect.andThen(outlet.room, () => outlet.write(text))

      const handle = (incoming: Incoming): Effect.Effect<void> => {
        if (incoming.type === "nothing") return Effect.void
        if (incoming.type === "single") {
          return admitted(incoming.item, (done) => Effect.zipRight(say(done.answer), done.afterwards))
        }
        return Effect.gen(function* () {
          const outcomes: Array<Outcome> = []
          let size = 0
          const keep = (item: Item) => (done: Outcome) =>
            Effect.sync(() => {
              size += done.answer?.length ?? 0
              const fits = size <= batchAnswerLimit || item.type === "invalid" || item.id === undefined
              outcomes.push(fits ? done : { ...done, answer: renderError(item.id, errorOf(batchTooLarge)) })
            })
          yield* Effect.forEach(incoming.items, (item) => admitted(item, keep(item)), {
            concurrency: "unbounded",
            discard: true,
          })
          yield* say(renderBatch(outcomes.flatMap(({ answer }) => (answer === null ? [] : [answer]))))
          for (const { afterwards } of outcomes) yield* afterwards
        })
      }

      const read = Effect.gen(function* () {
        while (true) {
          yield* outlet.room
          const messages = yield* channel.receive
          if (messages === null) return
          for (const message of messages) {
            yield* outlet.room
            const incoming = readMessage(message)
            if (incoming.type === "single" && isHeavy(incoming.item)) {
              yield* heavyPlaces.take(1)
              fork(Effect.ensuring(handle(incoming), heavyPlaces.release(1)))
            } else fork(handle(incoming))
          }
        }
      })

      const conversation = Effect.gen(function* () {
        yield* read
        yield* FiberSet.awaitEmpty(fibers)
        yield* outlet.end
      })
      const ended = Effect.raceFirst(outlet.closed, Effect.zipRight(Deferred.await(turnedAway), outlet.end))
      yield* Effect.raceFirst(conversation, ended)
    }),
  ).pipe(Effect.ensuring(channel.destroy))
