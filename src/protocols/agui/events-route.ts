/**
 * `GET /agui/v1/sessions/:id/events`: follows a conversation. It never cancels anything.
 *
 * With `Last-Event-ID` (or `after`) of an earlier stream it goes on there: the state of now, the messages as of then, every event since.
 * Where those events are gone, a snapshot takes their place.
 */
import { Effect, Option, Stream } from "effect"
import type { Target } from "../../actors/sessions.ts"
import type { Failure } from "../../domain/failure.ts"
import { problemOf } from "../http/problems.ts"
import type { EventSink, Handler, HttpRequest } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import { rejoin } from "./join.ts"
import { fail } from "./settle.ts"
import { ThreadStream } from "./stream.ts"
import { findThread } from "./thread.ts"
import { init } from "./view.ts"

/** Where a client goes on: a number of the conversation's events and the newest entry that it knows. */
interface Cursor {
  readonly seq: number
  readonly entry: number
}

/** Null where it is none of ours: the stream begins anew. */
const cursorOf = (text: string | undefined): Cursor | null => {
  const parts = /^(\d{1,16})-(\d{1,15})$/.exec(text ?? "")
  const seq = Number(parts?.[1])
  return parts === null || !Number.isSafeInteger(seq) ? null : { seq, entry: Number(parts[2]) }
}

const headerOf = (request: HttpRequest, name: string): string | undefined => {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

const stream = (
  service: ProtocolService,
  request: HttpRequest,
  target: Required<Target>,
  threadId: string,
  sink: EventSink,
): Effect.Effect<void> => {
  const { sessions } = service
  const query = request.url.searchParams
  const cursor = cursorOf(query.get("after") ?? headerOf(request, "last-event-id"))
  const interactive = query.get("interactive") !== "false"
  const follows = query.get("follow") !== "false"
  const thread = new ThreadStream(init({ threadId, runId: null }), { sessions, target, sink })

  const whole: Effect.Effect<void, Failure> = Effect.gen(function* () {
    if (cursor !== null) {
      const now = yield* Stream.runHead(sessions.watch({ ...target, after: null }))
      if (Option.isSome(now) && now.value.type === "snapshot")
        yield* thread.step(rejoin(thread.view, now.value, cursor.entry))
    }
    const queue = yield* thread.watch({ after: cursor?.seq ?? null, interactive })
    // Without `follow` a conversation that rests is told and the stream ends, also where nothing happened since the cursor.
    const enough = () => !follows && thread.view.session !== null && thread.view.run === null
    yield* thread.follow(queue, { rest: (view) => [view, []], enough })
    yield* thread.close
  }).pipe(Effect.scoped)

  return whole.pipe(
    Effect.catchAll((failure) => {
      const { code, message } = problemOf(failure)
      return Effect.ignore(thread.step(fail(thread.view, code, message)))
    }),
    Effect.onInterrupt(() => thread.close),
  )
}

export const eventsHandler =
  (service: ProtocolService): Handler =>
  (request) =>
    Effect.map(
      Effect.mapError(findThread(service.sessions, request.params.id ?? "", request.principal), problemOf),
      (target) => ({
        type: "events" as const,
        endless: request.url.searchParams.get("follow") !== "false",
        run: (sink) => stream(service, request, target, request.params.id ?? "", sink),
      }),
    )
