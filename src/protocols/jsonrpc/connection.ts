/**
 * One connection: reads lines, starts a fiber per request in order of arrival, writes answers as they come. It owns its two streams
 * and everything that was started on its behalf; all of that ends with it. Bounds: one unfinished line, `requestLimit` running requests,
 * `heavyLimit` of those with large answers, and no reading while the outlet is full.
 */

import type { Readable, Writable } from "node:stream"
import { Cause, Effect, FiberSet, Option } from "effect"
import { Busy } from "../../domain/failure.ts"
import { makeInlet } from "../socket/inlet.ts"
import { decodeText, type Line, makeLineSplitter } from "../socket/lines.ts"
import { makeOutlet } from "../socket/outlet.ts"
import { errorOf, faultOf, methodNotFound } from "./errors.ts"
import {
  type Call,
  decodeLine,
  type Incoming,
  type Item,
  maxLine,
  parseError,
  type RpcError,
  renderBatch,
  renderError,
  renderResult,
} from "./message.ts"
import { makeMethods, type Service } from "./methods.ts"
import { makeWatches } from "./watches.ts"

/** Requests of one connection that may run at once; further ones are answered busy. */
const requestLimit = 1024
/** Requests with possibly large answers that run at once; further ones wait. */
const heavyLimit = 8
/** Those that run or wait; while there are as many, no further line is read. */
const heavyQueue = 64
/** Characters that the answers of one batch may have together; further ones are answered busy. */
const batchAnswerLimit = 64 * 1024 * 1024

export interface Duplex {
  readonly input: Readable
  readonly output: Writable
  /** Whether the output is ended with the connection (not a process's stdout). */
  readonly endable: boolean
}

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

const readLine = (line: Line): Incoming => {
  if (line.type === "tooLong") return { type: "single", item: parseError(`the line is longer than ${maxLine} bytes`) }
  const text = decodeText(line.bytes)
  return text === null ? { type: "single", item: parseError("the line is not UTF-8") } : decodeLine(text)
}

/** Logs a fault under a fresh reference, and says what the client is told. */
const fault = (cause: Cause.Cause<unknown>): Effect.Effect<RpcError> =>
  Effect.gen(function* () {
    const { randomBytes } = yield* Effect.promise(() => import("node:crypto"))
    const reference = randomBytes(6).toString("hex")
    yield* Effect.annotateLogs(Effect.logError("JSON-RPC request failed", cause), { reference })
    return faultOf(reference)
  })

/** Serves one connection until the client is gone, or has ended its side and has all its answers. Interruption ends it at once. */
export const serveConnection = (duplex: Duplex, service: Service): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      const outlet = makeOutlet(duplex.output, { endable: duplex.endable })
      const inlet = makeInlet(duplex.input)
      const watches = yield* makeWatches({ sessions: service.sessions, outlet, fault })
      const methods = makeMethods(service, watches)
      const names = [...methods.keys()]
      const heavyPermits = yield* Effect.makeSemaphore(heavyLimit)
      const heavyPlaces = yield* Effect.makeSemaphore(heavyQueue)
      const fibers = yield* FiberSet.make<void>()
      const fork = yield* FiberSet.runtime(fibers)<never>()
      let running = 0

      const call = (request: Call): Effect.Effect<Outcome> => {
        const id = request.id
        const failed = (error: RpcError): Outcome =>
          id === undefined ? silent : { answer: renderError(id, error), afterwards: Effect.void }
        const method = methods.get(request.method)
        if (method === undefined) return Effect.succeed(failed(methodNotFound(request.method, names)))
        return Effect.suspend(() => method.run(request.params)).pipe(
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
        text === null ? Effect.void : Effect.andThen(outlet.room, () => outlet.write(`${text}\n`))

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

      const splitter = makeLineSplitter(maxLine)
      const read = Effect.gen(function* () {
        while (true) {
          yield* outlet.room
          const chunk = yield* inlet
          const last = chunk === null ? splitter.end() : null
          for (const line of chunk === null ? (last === null ? [] : [last]) : splitter.push(chunk)) {
            yield* outlet.room
            const incoming = readLine(line)
            if (incoming.type === "single" && isHeavy(incoming.item)) {
              yield* heavyPlaces.take(1)
              fork(Effect.ensuring(handle(incoming), heavyPlaces.release(1)))
            } else fork(handle(incoming))
          }
          if (chunk === null) return
        }
      })

      const conversation = Effect.gen(function* () {
        yield* read
        yield* FiberSet.awaitEmpty(fibers)
        yield* outlet.end
      })
      yield* Effect.raceFirst(conversation, outlet.closed)
    }),
  ).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        if (!duplex.endable) return
        duplex.input.destroy()
        duplex.output.destroy()
      }),
    ),
  )
