/**
 * Subagents on a node: the worker of the queue `subagents`, which lets a child conversation run and tells its parent how it ended, and the
 * port through which a parent stops its children and finds one that ended without word.
 *
 *   claimed → the parent says what is to be done (or nothing) → the child runs what is queued in it → the parent is told → done
 *
 * While the child waits for subagents of its own, its job gives up its place in the queue, or a few such children would hold all of them.
 * Every step can be repeated: the child's input was committed with its conversation, and its answer is found again after a death.
 */
import { Effect, Option, Schedule, Schema, Stream } from "effect"
import type { Settled } from "../actors/contract.ts"
import type { Children } from "../actors/conversation/children-port.ts"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { EventHub } from "../actors/conversation/hub.ts"
import { jobKeyOf, subagentWorkerName } from "../actors/conversation/machine/children.ts"
import type { ChildOrder } from "../actors/conversation/machine/data.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import { settledIn } from "../actors/conversation/settle.ts"
import { ask, type ReplyTo } from "../actors/kernel/index.ts"
import { done, type QueueWorker, snooze } from "../actors/queue/worker.ts"
import { DocumentKind, UsageDocument } from "../domain/document.ts"
import type { Event } from "../domain/event.ts"
import { Busy, type Failure } from "../domain/failure.ts"
import { type ConversationId, TaskId } from "../domain/ids.ts"
import { QueueName } from "../domain/job.ts"
import { isMoved } from "../domain/moved.ts"
import type { SubagentEnd, SubagentInput, SubagentStatus } from "../domain/subagent.ts"
import { addUsage, noUsage, type Usage } from "../domain/usage.ts"
import type { StoreService } from "../storage/store.ts"
import type { Conversations } from "./conversations.ts"

/** A conversation that restarts, or a storage that is away, is asked again: 10 ms, doubled up to 5 s, for as long as the job is ours. */
const again = Schedule.exponential("10 millis", 2).pipe(
  Schedule.union(Schedule.spaced("5 seconds")),
  Schedule.intersect(Schedule.recurs(60)),
)

/** How long a job leaves its place to others while its child waits for subagents of its own, in ms. */
const placeMs = 1_000

/** Before a restarting conversation is watched again, in ms. */
const nextLifeMs = 100

const isParked = (event: Event): boolean =>
  event.type === "snapshot"
    ? event.session.state === "awaiting_children"
    : event.type === "state_changed" && event.to === "awaiting_children"

/** Whether the same question may be answered a moment later. */
const passing = (failure: Failure): boolean =>
  failure._tag === "Busy" || (failure._tag === "ServiceFailure" && failure.code === "storage")

const gone = (id: ConversationId): Failure =>
  new Busy({ what: "conversation", detail: `conversation ${id} does not answer right now`, retryAfterMs: 1_000 })

/** One question to a conversation, asked again of its successor where it restarts meanwhile. */
const asking =
  (conversations: Conversations) =>
  <A>(id: ConversationId, message: (reply: ReplyTo<A, Failure>) => ConversationMessage): Effect.Effect<A, Failure> =>
    Effect.flatMap(conversations.get(id), (ref) =>
      ask<ConversationMessage, A, Failure>(ref, message, { timeoutMs: Number.POSITIVE_INFINITY }),
    ).pipe(
      Effect.catchTags({ ActorDown: () => Effect.fail(gone(id)), AskTimeout: () => Effect.fail(gone(id)) }),
      Effect.retry({ schedule: again, while: passing }),
    )

const JobArgs = Schema.Struct({ task: TaskId, job: Schema.Int })
const decodeArgs = Schema.decodeUnknownOption(JobArgs)
const decodeUsage = Schema.decodeUnknownOption(UsageDocument)

interface Parts {
  readonly store: StoreService
  readonly conversations: Conversations
}

/** What a conversation and its own subagents took. */
const usageOf = (
  store: StoreService,
  id: ConversationId,
): Effect.Effect<Pick<SubagentEnd, "models" | "turns">, Failure> =>
  Effect.map(orStorageFailure(store.documents(id)), (documents) => {
    const record = documents.find((one) => one.kind === DocumentKind.usage && one.key === "")
    const own = Option.getOrElse(decodeUsage(record?.value), (): UsageDocument => ({ models: {} }))
    const models: Record<string, Usage> = { ...own.models }
    for (const [model, used] of Object.entries(own.subagents?.models ?? {})) {
      models[model] = addUsage(models[model] ?? noUsage, used)
    }
    return { models, turns: (own.turns ?? 0) + (own.subagents?.turns ?? 0) }
  })

/** Null while the submission goes on. */
const verdictOf = (settled: Settled): { readonly status: SubagentStatus; readonly text: string } | null => {
  const { detail, reason, status, text } = settled
  if (status === "done") return { status: "completed", text: text ?? "" }
  const why = detail ?? reason ?? "no answer"
  if (status === "unanswered") {
    return { status: reason === "aborted" || reason === "withdrawn" ? "stopped" : "failed", text: why }
  }
  return reason === "parked" ? { status: "failed", text: why } : null
}

const ended = (
  { store }: Parts,
  { conversation }: SubagentInput,
  verdict: { readonly status: SubagentStatus; readonly text: string },
): Effect.Effect<SubagentEnd> =>
  Effect.map(
    // What it took is worth less than that it ended.
    Effect.orElseSucceed(usageOf(store, conversation), () => ({ models: {}, turns: 0 })),
    (usage) => ({ ...verdict, ...usage }),
  )

const cancel = (parts: Parts, conversation: ConversationId): Effect.Effect<void> =>
  Effect.catchAll(
    asking(parts.conversations)<{ readonly cancelled: boolean }>(conversation, (reply) => ({ type: "cancel", reply })),
    (failure) =>
      failure._tag === "NotFound"
        ? Effect.void
        : Effect.logWarning(`subagent ${conversation} was not cancelled: ${failure.message}`),
  )

/** How the child's submission stands, or why that cannot be said. */
const standing = (
  { store }: Parts,
  input: SubagentInput,
): Effect.Effect<{ readonly status: SubagentStatus; readonly text: string } | null, Failure> =>
  Effect.flatMap(orStorageFailure(store.submission(input.submission)), (row) => {
    if (row === null) return Effect.succeed({ status: "failed" as const, text: "its conversation was removed" })
    return row.status === "done" || row.status === "unanswered"
      ? Effect.map(settledIn(store, input.conversation, input.submission), verdictOf)
      : Effect.succeed(null)
  })

export const childrenPort = (parts: Parts): Children => {
  const stop: Children["stop"] = (input) =>
    cancel(parts, input.conversation).pipe(
      Effect.zipRight(Effect.orElseSucceed(standing(parts, input), () => null)),
      Effect.flatMap((now) => ended(parts, input, now ?? { status: "stopped", text: "cancelled" })),
    )
  return {
    stop,
    look: (task, job, input) =>
      Effect.gen(function* () {
        // The job first: one that ended had told the parent before, or its child had ended.
        const live = yield* parts.store.jobByKey(QueueName.subagents, jobKeyOf(task, job))
        const now = yield* standing(parts, input)
        if (now !== null) return yield* ended(parts, input, now)
        if (live !== null) return null
        yield* cancel(parts, input.conversation)
        const then = yield* standing(parts, input)
        const lost = { status: "failed" as const, text: "its job was cancelled or lost" }
        return yield* ended(parts, input, then?.status === "completed" ? then : lost)
      }).pipe(Effect.orElseSucceed(() => null)),
  }
}

export const subagentWorker = (parts: Parts): QueueWorker => {
  const { conversations, store } = parts
  const call = asking(conversations)

  /** Done once the child waits for subagents of its own. */
  const parks = (conversation: ConversationId): Effect.Effect<null, Failure> =>
    Effect.gen(function* () {
      const hub = yield* call<EventHub>(conversation, (reply) => ({ type: "watch", reply }))
      const parked = yield* hub.subscribe(null, () => Date.now()).pipe(Stream.filter(isParked), Stream.runHead)
      if (Option.isSome(parked)) return null
      // That life of its actor is over.
      yield* Effect.sleep(nextLifeMs)
      return yield* parks(conversation)
    })

  /** Lets the child run to its end; null where it waits for subagents of its own, whose jobs need a place in the queue. */
  const run = ({ input, leftMs }: ChildOrder): Effect.Effect<SubagentEnd | null, Failure> =>
    Effect.gen(function* () {
      const { conversation, submission, timeoutMs } = input
      yield* call<void>(conversation, (reply) => ({ type: "proceed", reply }))
      const end = call<Settled>(conversation, (reply) => ({ type: "await", submission, reply }))
      const settled = yield* Effect.timeoutOption(Effect.raceFirst(end, parks(conversation)), Math.max(0, leftMs))
      if (Option.isNone(settled)) {
        yield* cancel(parts, conversation)
        // It may have answered in the last moment.
        const now = yield* standing(parts, input)
        if (now?.status === "completed") return yield* ended(parts, input, now)
        return yield* ended(parts, input, { status: "timed_out", text: `it took longer than ${timeoutMs} ms` })
      }
      if (settled.value === null) return null
      const verdict = verdictOf(settled.value) ?? { status: "failed", text: "it gave no answer" }
      // A parked run would stay open below an ended task.
      if (settled.value.reason === "parked") yield* cancel(parts, conversation)
      return yield* ended(parts, input, verdict)
    }).pipe(
      Effect.catchAll((failure) =>
        // It goes on where its conversation went.
        isMoved(failure)
          ? Effect.fail(failure)
          : Effect.zipRight(
              cancel(parts, input.conversation),
              ended(parts, input, { status: "failed", text: failure.message }),
            ),
      ),
    )

  return {
    queue: QueueName.subagents,
    name: subagentWorkerName,
    run: ({ job }) =>
      Effect.gen(function* () {
        const args = Option.getOrNull(decodeArgs(job.args))
        const row = args === null ? null : yield* store.task(args.task)
        if (args === null || row?.conversation == null || row.status === "terminal" || row.abortRequested) return done
        const { conversation, id: task } = row
        const order = yield* call<ChildOrder | null>(conversation, (reply) => ({
          type: "childBegun",
          task,
          job: args.job,
          reply,
        }))
        if (order === null) return done
        const end = yield* run(order)
        if (end === null) return snooze(placeMs)
        yield* call<void>(conversation, (reply) => ({ type: "childEnded", task, end, reply }))
        return done
      }),
  }
}
