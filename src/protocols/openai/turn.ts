/**
 * One input to one conversation, followed to its end. It owns the watch.
 *
 *   watching → submitted (durable) → followed → ended
 *        the request was answered before → recalled from the transcript → ended
 *        the client leaves → withdrawn where it is queued, cancelled where it runs
 *        the server stops → left alone: the turn goes on, and a request with the same key finds it
 */
import { Chunk, Effect, Option, type Scope, Stream } from "effect"
import type { Receipt } from "../../actors/contract.ts"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { Event } from "../../domain/event.ts"
import { type Failure, NotFound } from "../../domain/failure.ts"
import type { SubmissionId } from "../../domain/ids.ts"
import type { UserPart } from "../../domain/message.ts"
import { endOf, entriesOf, saidIn } from "./recall.ts"
import type { End, Said } from "./said.ts"

/** What follows a turn: a renderer with its view, and where its items go. */
export interface Follower {
  /** The input is admitted; `running`: its run was going already. */
  readonly begin: (submission: SubmissionId, running: boolean) => void
  /** Events in order, the snapshot first. True once the end was told. */
  readonly events: (events: ReadonlyArray<Event>) => Effect.Effect<boolean>
  /** The whole of a run that ended before. */
  readonly recalled: (said: ReadonlyArray<Said>) => Effect.Effect<void>
  /** The end, where events about it were lost. */
  readonly lost: (end: End) => Effect.Effect<void>
}

export interface Turn {
  readonly sessions: SessionsService
  readonly target: Target
  readonly content: ReadonlyArray<UserPart>
  readonly requestId: string | null
  /** Whether an interruption means that the client has gone. */
  readonly clientLeft: () => boolean
}

type Pull = Effect.Effect<ReadonlyArray<Event>, Failure>

const watching = ({ sessions, target }: Turn): Effect.Effect<Pull, never, Scope.Scope> =>
  Effect.map(Stream.toPull(sessions.watch({ ...target, after: null })), (pull) =>
    Effect.mapBoth(pull, {
      onSuccess: Chunk.toReadonlyArray,
      onFailure: Option.getOrElse((): Failure => new NotFound({ what: `conversation ${target.conversationId}` })),
    }),
  )

const hasEnded = (status: string): boolean => status === "done" || status === "unanswered"

const endsOf =
  (id: SubmissionId) =>
  (event: Event): boolean =>
    event.type === "submission_updated" && event.submission_id === id && hasEnded(event.status)

const statusOf = ({ sessions, target }: Pick<Turn, "sessions" | "target">, submissionId: SubmissionId) =>
  Effect.map(sessions.submission({ ...target, submissionId, requestId: null }), ({ status }) => status)

/** Nobody waits for an input any more: it is withdrawn where it is queued, its run is cancelled; one that ended stays as it is. */
export const abandonSubmission = (
  sessions: SessionsService,
  target: Target,
  submissionId: SubmissionId,
): Effect.Effect<void, Failure> => Effect.asVoid(sessions.cancel({ ...target, submissionId }))

/** The client has gone: whatever is in the way is not its business. */
const abandon = ({ sessions, target }: Turn, submissionId: SubmissionId): Effect.Effect<void> =>
  Effect.catchAllCause(abandonSubmission(sessions, target, submissionId), (cause) =>
    Effect.logWarning("the turn of a client that left could not be cancelled", cause),
  )

const settledOf = ({ sessions, target }: Turn, submissionId: SubmissionId) =>
  Effect.gen(function* () {
    const settled = yield* sessions.awaitSubmission({ ...target, submissionId })
    return { settled, entries: entriesOf(yield* sessions.transcript(target), settled) }
  })

/** Follows an admitted input. */
const follow = (turn: Turn, follower: Follower, id: SubmissionId, pull: Pull, first: ReadonlyArray<Event>) =>
  Effect.gen(function* () {
    let events = first
    let known = false
    let gap = false
    while (!(yield* follower.events(events))) {
      // A second snapshot stands for events that were lost, perhaps the first of its run, perhaps the last ones.
      const lost = known && events.some((event) => event.type === "snapshot")
      known = true
      gap ||= lost
      if ((lost || (gap && events.some(endsOf(id)))) && hasEnded(yield* statusOf(turn, id))) {
        const { entries, settled } = yield* settledOf(turn, id)
        yield* follower.lost(endOf(settled, entries))
        return
      }
      events = yield* pull
    }
  })

/** Submits and follows. Fails where the input is not admitted, or the conversation goes away. */
export const runTurn = (turn: Turn, follower: Follower): Effect.Effect<void, Failure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { clientLeft, content, requestId, sessions, target } = turn
      let pull = yield* watching(turn)
      let first = yield* pull
      const followed = Effect.fnUntraced(function* ({ status, submission_id: id }: Receipt) {
        if (hasEnded(status)) return yield* recall(turn, follower, id)
        const [snapshot] = first
        // A repeated request may find its run going; whose run a snapshot shows is certain only for one that came after the receipt.
        const running = status === "placed" && snapshot?.type === "snapshot" && snapshot.session.turn_id !== null
        if (running) {
          pull = yield* watching(turn)
          first = yield* pull
          if (hasEnded(yield* statusOf(turn, id))) return yield* recall(turn, follower, id)
        }
        follower.begin(id, running)
        yield* follow(turn, follower, id, pull, first)
      })
      // The submission is whole: what was committed is known, or a client that leaves would leave it behind.
      yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(sessions.submit({ ...target, content, requestId }), (receipt) =>
          Effect.onInterrupt(restore(followed(receipt)), () =>
            clientLeft() ? Effect.asVoid(Effect.forkDaemon(abandon(turn, receipt.submission_id))) : Effect.void,
          ),
        ),
      )
    }),
  )

const recall = (turn: Turn, follower: Follower, id: SubmissionId): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const { entries, settled } = yield* settledOf(turn, id)
    follower.begin(id, false)
    const end = endOf(settled, entries)
    const said = saidIn(entries)
    // An input that asked no model has its word only in its end.
    const word: ReadonlyArray<Said> =
      said.length > 0 || end.type !== "answered" || end.text === ""
        ? said
        : [{ type: "text", delta: end.text }, { type: "responded" }]
    yield* follower.recalled([...word, { type: "ended", end }])
  })
