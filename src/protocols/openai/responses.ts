/**
 * `POST /v1/responses`: one turn as a response, whole, streamed, or in the background.
 */
import { Deferred, Effect } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import { type Failure, NotFound } from "../../domain/failure.ts"
import type { SubmissionId } from "../../domain/ids.ts"
import type { EventSink, Handler, HttpReply, HttpRequest, Problem } from "../http/route.ts"
import { asProblem, checkFor, type Parts, seconds, stopping, takeTurn, turnOf } from "./chat.ts"
import { reading } from "./fields.ts"
import { continued, metadataKind } from "./follow-up.ts"
import { errorObject, failureProblem } from "./problems.ts"
import { responseId } from "./response-id.ts"
import { type ResponseBase, responseObject } from "./response-object.ts"
import {
  type ResponseEvent,
  type ResponseView,
  renderResponse,
  responseRenderer,
  tellAll,
} from "./response-renderer.ts"
import { type ResponseAsked, readResponse } from "./response-request.ts"
import { enter, forked, needsChange, prepare, type Room, roomOf } from "./session.ts"
import type { Follower } from "./turn.ts"
import type { Check } from "./value.ts"
import { concludeLost } from "./voice.ts"

/** Renders a turn; `show` gets the events of each step. */
const rendering = (
  base: Omit<ResponseBase, "id">,
  check: Check | null,
  parts: Pick<Parts, "log">,
  show: (events: ReadonlyArray<ResponseEvent>) => Effect.Effect<void>,
  begun: (submission: SubmissionId) => void = () => undefined,
) => {
  let view: ResponseView | null = null
  const step = (next: (view: ResponseView) => readonly [ResponseView, ReadonlyArray<ResponseEvent>]) =>
    Effect.suspend(() => {
      if (view === null) return Effect.void
      const [now, events] = next(view)
      view = now
      return events.length === 0 ? Effect.void : show(events)
    })
  const follower: Follower = {
    begin: (submission, running) => {
      const id = responseId({ conversationId: base.conversation, submissionId: submission })
      view = responseRenderer.init({ base: { id, ...base }, check, submission, running })
      begun(submission)
    },
    events: (events) => {
      for (const event of events) parts.log.event("openai", event)
      return Effect.map(
        step((now) => renderResponse(now, events)),
        () => view?.voice.ended === true,
      )
    },
    recalled: (said) => step((now) => tellAll(now, said)),
    lost: (end) =>
      step((now) => {
        const [voice, said] = concludeLost(now.voice, end)
        return tellAll({ ...now, voice }, said)
      }),
  }
  return { follower, view: () => view }
}

/** The conversation of a request: that of the previous response, a fork of it, or as any other request's. */
const roomFor = (parts: Parts, asked: ResponseAsked, principal: string): Effect.Effect<Room, Failure> => {
  const { service } = parts
  if (asked.previous === null) return enter(service, asked, principal)
  return continued(service.sessions, asked.previous, principal, {
    same: (target) => roomOf(service, asked, target),
    fork: (target, entryId) => forked(service, asked, target, entryId),
  })
}

const baseOf = (asked: ResponseAsked, room: Room, created: number): Omit<ResponseBase, "id"> => ({
  created,
  model: asked.model,
  conversation: room.target.conversationId,
  previous: asked.previous,
  instructions: asked.instructions,
  metadata: asked.metadata,
  format: asked.format,
  background: asked.background,
})

/** Keeps the metadata of a response, where there is any. */
const keepMetadata = (
  sessions: SessionsService,
  { metadata }: ResponseAsked,
  { target }: Room,
  submission: SubmissionId,
): Effect.Effect<void, Failure> =>
  Object.keys(metadata).length === 0
    ? Effect.void
    : Effect.asVoid(
        sessions.write({
          ...target,
          kind: metadataKind,
          data: { submission, metadata },
          requestId: `openai:metadata:${submission}`,
        }),
      )

const streamed = (
  parts: Parts,
  asked: ResponseAsked,
  room: Room,
  request: HttpRequest,
  check: Check | null,
): Effect.Effect<HttpReply> =>
  Effect.map(seconds, (created) => ({
    type: "events",
    headers: room.headers,
    run: (sink: EventSink) => {
      let sequence = 0
      const send = (event: ResponseEvent) => {
        sequence = event.sequence_number + 1
        sink.send(JSON.stringify(event), { event: event.type })
      }
      const show = (events: ReadonlyArray<ResponseEvent>) =>
        Effect.suspend(() => {
          for (const event of events) send(event)
          return sink.room
        })
      const fail = (problem: Problem) => {
        const { code, message, param } = errorObject(problem).error
        send({ type: "error", sequence_number: sequence, code, message, param })
      }
      const { follower, view } = rendering(baseOf(asked, room, created), check, parts, show)
      const kept = Effect.suspend(() => {
        const submission = view()?.options.submission
        return submission === undefined ? Effect.void : keepMetadata(parts.service.sessions, asked, room, submission)
      })
      const turn = turnOf(parts, asked, room, request)
      const followed = asked.background ? { ...turn, clientLeft: () => false } : turn
      return takeTurn(parts, asked, room, followed, follower).pipe(
        Effect.zipLeft(kept),
        Effect.catchAll((failure) => Effect.sync(() => fail(failureProblem(failure)))),
        Effect.onInterrupt(() => Effect.sync(() => fail(stopping))),
      )
    },
  }))

const ignored = () => Effect.void

const whole = (
  parts: Parts,
  asked: ResponseAsked,
  room: Room,
  request: HttpRequest,
  check: Check | null,
): Effect.Effect<HttpReply, Failure> =>
  Effect.gen(function* () {
    const base = baseOf(asked, room, yield* seconds)
    const { follower, view } = rendering(base, check, parts, ignored)
    yield* takeTurn(parts, asked, room, turnOf(parts, asked, room, request), follower)
    const now = view()
    if (now === null || now.final === null) return yield* new NotFound({ what: "the end of the response" })
    yield* keepMetadata(parts.service.sessions, asked, room, now.options.submission)
    return { type: "json", body: now.final, headers: room.headers }
  })

/** Answers when the input is admitted; the turn goes on without its client. */
const inBackground = (
  parts: Parts,
  asked: ResponseAsked,
  room: Room,
  request: HttpRequest,
  check: Check | null,
): Effect.Effect<HttpReply, Failure> =>
  Effect.gen(function* () {
    const base = baseOf(asked, room, yield* seconds)
    const admitted = yield* Deferred.make<SubmissionId, Failure>()
    const { follower } = rendering(base, check, parts, ignored, (id) =>
      Deferred.unsafeDone(admitted, Effect.succeed(id)),
    )
    const turn = { ...turnOf(parts, asked, room, request), clientLeft: () => false }
    yield* Effect.forkDaemon(
      takeTurn(parts, asked, room, turn, follower).pipe(
        Effect.catchAllCause((cause) => Deferred.failCause(admitted, cause)),
      ),
    )
    const submission = yield* Deferred.await(admitted)
    yield* keepMetadata(parts.service.sessions, asked, room, submission)
    const id = responseId({ conversationId: room.target.conversationId, submissionId: submission })
    return { type: "json", body: responseObject({ id, ...base }, [], null, "queued"), headers: room.headers }
  })

export const createResponse =
  (parts: Parts): Handler =>
  (request) =>
    Effect.gen(function* () {
      const { locks, service } = parts
      const asked = yield* Effect.flatMap(request.json, (body) => reading(() => readResponse(body, request.headers)))
      const room = yield* roomFor(parts, asked, request.principal)
      const check = yield* checkFor(service, asked)
      if (yield* needsChange(service, asked, room)) {
        yield* locks.alone(room.target.conversationId)(prepare(service, asked, room.target))
      }
      if (asked.stream) return yield* streamed(parts, asked, room, request, check)
      return yield* asked.background
        ? inBackground(parts, asked, room, request, check)
        : whole(parts, asked, room, request, check)
    }).pipe(Effect.mapError(asProblem))
