/**
 * `POST /v1/chat/completions`: one turn of a conversation, as JSON or as a stream of chunks.
 *
 * 1. What is wrong with the request is told as a status before anything streams; what happens later, in the stream.
 * 2. A stream ends with a finish reason and `[DONE]`, also where the turn failed or the server stops.
 */
import { Clock, Effect } from "effect"
import type { Failure } from "../../domain/failure.ts"
import type { Json } from "../../domain/json.ts"
import type { GatewayLog } from "../http/log.ts"
import type { EventSink, Handler, HttpReply, HttpRequest, Problem } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import { forget } from "./aside.ts"
import { type ChatAsked, readChat } from "./chat-request.ts"
import { type ChatCompletion, chatUsage, finishReasonOf } from "./chunks.ts"
import { collector } from "./collector.ts"
import { reading } from "./fields.ts"
import type { Locks } from "./locks.ts"
import { errorObject, failureProblem, turnProblem } from "./problems.ts"
import { type ChatItem, type ChatOptions, type ChatView, chatRenderer, renderAll, sayAll } from "./renderer.ts"
import type { Asked } from "./request.ts"
import { enter, needsChange, prepare, type Room } from "./session.ts"
import { type Follower, runTurn, type Turn } from "./turn.ts"
import { type Check, valuedOf } from "./value.ts"
import { concludeLost } from "./voice.ts"

export interface Parts {
  readonly service: ProtocolService
  readonly locks: Locks
  readonly log: GatewayLog
}

const anything: Check = () => []

/** The check of the value that is wanted, or null where words are. */
export const checkFor = (
  { checkOf }: ProtocolService,
  { schema }: Pick<ChatAsked, "schema">,
): Effect.Effect<Check | null, Failure> => {
  if (schema === null) return Effect.succeed(null)
  return checkOf === undefined ? Effect.succeed(anything) : checkOf(schema)
}

export const seconds = Effect.map(Clock.currentTimeMillis, (ms) => Math.floor(ms / 1000))

/** Under which request id an input is submitted: the same key is the same input. */
const requestIdOf = ({ key }: Pick<ChatAsked, "key">): string | null => (key === null ? null : `openai:${key}`)

export const turnOf = (
  { service }: Parts,
  asked: Pick<ChatAsked, "content" | "key">,
  room: Room,
  request: HttpRequest,
): Turn => ({
  sessions: service.sessions,
  target: room.target,
  content: asked.content,
  requestId: requestIdOf(asked),
  clientLeft: request.clientLeft,
})

/** One turn, alone on its conversation, set up as asked. */
export const takeTurn = (
  parts: Parts,
  asked: Asked,
  room: Room,
  turn: Turn,
  follower: Follower,
): Effect.Effect<void, Failure> =>
  parts.locks.alone(room.target.conversationId)(
    Effect.zipRight(
      room.created && asked.schema === null ? Effect.void : prepare(parts.service, asked, room.target),
      runTurn(turn, follower),
    ),
  )

export const stopping: Problem = {
  status: 503,
  code: "draining",
  message: "the server stops; the turn goes on when it starts again",
}

/** Sends the items of a view as they come. */
const streamer = (options: Omit<ChatOptions, "submission" | "running">, log: GatewayLog, sink: EventSink) => {
  let view: ChatView | null = null
  const send = (items: ReadonlyArray<ChatItem>) => {
    for (const item of items) sink.send(JSON.stringify(item))
  }
  const show = (step: (view: ChatView) => readonly [ChatView, ReadonlyArray<ChatItem>]) =>
    Effect.suspend(() => {
      if (view === null) return Effect.void
      const [next, items] = step(view)
      view = next
      send(items)
      return sink.room
    })
  const follower: Follower = {
    begin: (submission, running) => {
      view = chatRenderer.init({ ...options, submission, running })
    },
    events: (events) => {
      for (const event of events) log.event("openai", event)
      return Effect.map(
        show((now) => renderAll(now, events)),
        () => view?.voice.ended === true,
      )
    },
    recalled: (said) => show((now) => sayAll(now, said)),
    lost: (end) =>
      show((now) => {
        const [voice, said] = concludeLost(now.voice, end)
        return sayAll({ ...now, voice }, said)
      }),
  }
  /** What went wrong where no turn says it. */
  const fail = (problem: Problem) => {
    sink.send(JSON.stringify(errorObject(problem)))
    const { created, id, model } = options
    const choices = [{ index: 0, delta: {}, finish_reason: "error" }]
    sink.send(JSON.stringify({ id, object: "chat.completion.chunk", created, model, choices }))
  }
  return { follower, fail, done: () => sink.send("[DONE]") }
}

const streamed = (
  parts: Parts,
  asked: ChatAsked,
  room: Room,
  request: HttpRequest,
): Effect.Effect<HttpReply, Failure> =>
  Effect.gen(function* () {
    const { locks, log, service } = parts
    const check = yield* checkFor(service, asked)
    // What may be refused is set while the answer can still be a status; mostly there is nothing to set.
    if (yield* needsChange(service, asked, room)) {
      yield* locks.alone(room.target.conversationId)(prepare(service, asked, room.target))
    }
    const created = yield* seconds
    const { conversationId } = room.target
    return {
      type: "events",
      headers: room.headers,
      run: (sink) => {
        const id = `chatcmpl-${conversationId}-${request.requestId}`
        const options = { id, created, model: asked.model, includeUsage: asked.includeUsage, check }
        const { done, fail, follower } = streamer(options, log, sink)
        return takeTurn(parts, asked, room, turnOf(parts, asked, room, request), follower).pipe(
          Effect.catchAll((failure) => Effect.sync(() => fail(failureProblem(failure)))),
          Effect.zipRight(Effect.sync(done)),
          Effect.onInterrupt(() =>
            Effect.sync(() => {
              fail(stopping)
              done()
            }),
          ),
          forget(parts.service, asked, room),
        )
      },
    }
  })

const whole = (
  parts: Parts,
  asked: ChatAsked,
  room: Room,
  request: HttpRequest,
): Effect.Effect<HttpReply, Failure | Problem> =>
  Effect.gen(function* () {
    const check = yield* checkFor(parts.service, asked)
    const { follower, result } = collector(parts.log)
    yield* takeTurn(parts, asked, room, turnOf(parts, asked, room, request), follower)
    const { end, thinking, value } = result()
    const created = yield* seconds
    if (end.type === "failed") return yield* Effect.fail(turnProblem(end))
    const content = yield* contentOf(end.text, value, check)
    const body: ChatCompletion = {
      id: `chatcmpl-${room.target.conversationId}-${request.requestId}`,
      object: "chat.completion",
      created,
      model: asked.model,
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content,
            ...(thinking === "" ? {} : { reasoning_content: thinking }),
            refusal: null,
          },
          finish_reason: check === null ? finishReasonOf(end.stopReason) : "stop",
          logprobs: null,
        },
      ],
      usage: chatUsage(end.usage),
    }
    const reply: HttpReply = { type: "json", body, headers: room.headers }
    return reply
  }).pipe(forget(parts.service, asked, room))

const contentOf = (answer: string, value: Json | undefined, check: Check | null): Effect.Effect<string, Problem> => {
  if (check === null) return Effect.succeed(answer)
  const valued = valuedOf(value, answer, check)
  return valued.type === "value"
    ? Effect.succeed(JSON.stringify(valued.value))
    : Effect.fail(turnProblem({ code: "no_structured_output", message: valued.message }))
}

/** Ours have a tag; a problem has none. */
export const asProblem = (error: Failure | Problem): Problem => ("_tag" in error ? failureProblem(error) : error)

export const chatHandler =
  (parts: Parts): Handler =>
  (request) =>
    Effect.gen(function* () {
      const { log, service } = parts
      const asked = yield* Effect.flatMap(request.json, (body) => reading(() => readChat(body, request.headers)))
      const { principal } = request
      const place = asked.aside ? { session: null, conversation: null } : asked.place
      const room = yield* enter(service, { ...asked, place }, principal)
      const { session } = place
      if (session !== null) {
        const { conversationId } = room.target
        log.session({ protocol: "openai", principal, name: session, conversationId, created: room.created })
      }
      return yield* asked.stream ? streamed(parts, asked, room, request) : whole(parts, asked, room, request)
    }).pipe(Effect.mapError(asProblem))
