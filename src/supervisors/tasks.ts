/**
 * The task engine of a node: what it consists of, and the {@link Tasks} service in front of its ledger.
 */
import { hostname } from "node:os"
import { Effect, Either, Layer, Option } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import {
  type ActorRef,
  ActorSystem,
  type ActorSystemService,
  ask,
  type ReplyTo,
  spawn,
  stop,
} from "../actors/kernel/index.ts"
import { Catalog } from "../actors/task/catalog.ts"
import type { TaskDefinition } from "../actors/task/define.ts"
import { TaskParked } from "../actors/task/errors.ts"
import { TaskFeed } from "../actors/task/feed.ts"
import { taskLedger } from "../actors/task/ledger.ts"
import type { LedgerParts } from "../actors/task/ledger-parts.ts"
import type { LedgerMessage } from "../actors/task/messages.ts"
import { Tasks, type TasksService } from "../actors/task/service.ts"
import { Busy, type Failure, InvalidRequest, NotFound, ServiceFailure } from "../domain/failure.ts"
import type { TaskId } from "../domain/ids.ts"
import type { Task, TaskOutcome } from "../domain/task.ts"
import { isOpen, isWorkflow } from "../domain/task-rules.ts"
import { Store, type StoreService } from "../storage/store.ts"
import { child } from "./child.ts"
import { supervisor } from "./supervisor.ts"
import { followTaskPlaces, ledgerName, taskSharing } from "./task-sharing.ts"

/** Between two looks at a task of another node, in ms: a signal comes sooner. */
const lookMs = 1_000

/**
 * The engine's parts on a store, with everything that is open in it; among other nodes (where there is a {@link Placement}) that comes with the
 * shards. The parts' store is to be used by whoever writes tasks.
 */
export const taskParts = (
  options: Pick<LedgerParts, "store" | "node" | "cancelConversation">,
): Effect.Effect<LedgerParts, Failure> =>
  Effect.gen(function* () {
    const feed = new TaskFeed()
    const catalog = new Catalog()
    feed.blockedOf = (row) => catalog.blockedOf(row)
    const sharing = yield* taskSharing
    if (sharing !== null) return { ...options, store: feed.observe(options.store), feed, catalog, sharing }
    const open = yield* orStorageFailure(options.store.openTasks())
    const owned = yield* orStorageFailure(
      Effect.forEach(open.filter(isWorkflow), (task) => options.store.ownedConversations(task.id)),
    )
    feed.load(open, owned.flat())
    return { ...options, store: feed.observe(options.store), feed, catalog, sharing }
  })

/** The ledger as a child of a node's root. */
export const tasksChild = (parts: LedgerParts) =>
  child("tasks", taskLedger(parts), { register: ledgerName, restart: "transient", shutdownMs: 10_000 })

export const makeTasks = (parts: LedgerParts, system: ActorSystemService): TasksService => {
  const { catalog, feed, sharing, store } = parts

  const request = <A>(message: (reply: ReplyTo<A, Failure>) => LedgerMessage): Effect.Effect<A, Failure> =>
    Effect.flatMap(system.registry.whereis<LedgerMessage>(ledgerName), (found) =>
      Option.match(found, {
        onNone: () => Effect.fail<Failure>(stopped),
        onSome: (ref: ActorRef<LedgerMessage>) =>
          ask<LedgerMessage, A, Failure>(ref, message, { timeoutMs: Number.POSITIVE_INFINITY }).pipe(
            Effect.catchTags({
              ActorDown: () => Effect.fail<Failure>(stopped),
              AskTimeout: () => Effect.fail<Failure>(stopped),
            }),
          ),
      }),
    )

  const stored = (id: TaskId): Effect.Effect<Task, Failure> =>
    Effect.flatMap(orStorageFailure(store.task(id)), (task) =>
      task === null ? Effect.fail<Failure>(new NotFound({ what: `task ${id}` })) : Effect.succeed(task),
    )

  /** Until something is heard of a task at another place, or it is time to look again. */
  const heard = (id: TaskId): Effect.Effect<void> =>
    Effect.asVoid(
      Effect.timeoutOption(
        Effect.async<void>((resume) => Effect.sync(feed.wait(id, () => resume(Effect.void)))),
        lookMs,
      ),
    )

  const wait = (id: TaskId): Effect.Effect<TaskOutcome, Failure | TaskParked> => {
    const parkedOr = (row: Pick<Task, "parked" | "outcome">): Effect.Effect<TaskOutcome, Failure | TaskParked> => {
      if (row.parked !== null) return Effect.fail(new TaskParked({ id, reason: row.parked }))
      return row.outcome === null ? Effect.fail(noOutcome(id)) : Effect.succeed(row.outcome)
    }
    return Effect.suspend(() => {
      const open = feed.rows.get(id)
      if (open === undefined) {
        return Effect.flatMap(stored(id), (task) =>
          sharing !== null && isOpen(task) && task.parked === null
            ? Effect.zipRight(heard(id), wait(id))
            : parkedOr(task),
        )
      }
      if (open.parked !== null) return parkedOr(open)
      return Effect.async<TaskOutcome, Failure | TaskParked>((resume) =>
        Effect.sync(feed.wait(id, (row) => resume(row === null ? wait(id) : parkedOr(row)))),
      )
    })
  }

  return {
    register: <Input, A, E, R>(definition: TaskDefinition<Input, A, E, R>) =>
      Effect.flatMap(Effect.context<R>(), (services) => {
        catalog.add(definition, services)
        return request<void>((reply) => ({ type: "registered", kind: definition.kind, reply }))
      }),
    start: (definition, input, options = {}) => {
      if (catalog.get(definition.kind) === undefined) return Effect.fail(unregistered(definition.kind))
      const begun = definition.begin(input)
      if (Either.isLeft(begun)) return Effect.fail(invalidInput(begun.left))
      const task = {
        ...begun.right,
        kind: definition.kind,
        conversation: options.conversation ?? null,
        background: options.background ?? false,
        requestId: options.requestId ?? null,
      }
      return request<TaskId>((reply) => ({ type: "start", task, reply }))
    },
    wait,
    outcome: (definition, id) =>
      Effect.flatMap(stored(id), (task) =>
        task.kind === definition.kind
          ? Effect.flatMap(wait(id), (outcome) =>
              Either.match(definition.outcome(outcome), {
                onLeft: (actual) => Effect.fail(otherOutcome(id, definition.kind, actual)),
                onRight: Effect.succeed,
              }),
            )
          : Effect.fail(otherOutcome(id, definition.kind, task.kind)),
      ),
    state: (id) => Effect.map(stored(id), (task) => ({ task, blocked: blockedOf(parts, task) })),
    abort: (id, options = {}) =>
      Effect.zipRight(
        stored(id),
        request<{ readonly aborted: boolean }>((reply) => ({
          type: "abort",
          id,
          background: options.background ?? false,
          reason: options.reason ?? "aborted",
          reply,
        })),
      ),
    retry: (id) =>
      Effect.zipRight(
        stored(id),
        request<void>((reply) => ({ type: "retry", id, reply })),
      ),
    discard: (id, reason = "its code is missing") =>
      Effect.zipRight(
        stored(id),
        request<void>((reply) => ({ type: "discard", id, reason, reply })),
      ),
    graph: feed.watch,
    graphNow: Effect.sync(() => feed.graph()),
    graphOfAll:
      sharing === null
        ? Effect.sync(() => feed.graph())
        : Effect.map(orStorageFailure(store.openTasks()), (open) => feed.graphOf(open)),
  }
}

const blockedOf = ({ catalog }: LedgerParts, task: Task): string | null =>
  task.status === "terminal" || !isWorkflow(task) ? null : catalog.blockedOf(task)

const stopped = new Busy({ what: "task engine", detail: "it is stopping or has stopped", retryAfterMs: null })

const unregistered = (kind: string): InvalidRequest =>
  new InvalidRequest({ path: "kind", expected: "a definition that was registered", actual: kind })

/** `input.amount: expected a number` as a failure that names the field. */
const invalidInput = (fault: string): InvalidRequest => {
  const colon = fault.indexOf(": ")
  const path = colon < 0 ? "input" : fault.slice(0, colon)
  return new InvalidRequest({ path, expected: "what its schema says", actual: fault.slice(colon + 2) })
}

const otherOutcome = (id: TaskId, kind: string, actual: string): InvalidRequest =>
  new InvalidRequest({ path: `task ${id}`, expected: `an outcome of ${kind}`, actual })

const noOutcome = (id: TaskId): ServiceFailure =>
  new ServiceFailure({
    code: "task_state",
    detail: `task ${id} left the engine without an outcome`,
    reference: "tasks",
  })

/** The tasks of a program that has no conversations. Scoped: releasing it stops what runs cleanly; it goes on at the next start. */
export const tasksLayer = (
  options: { readonly node?: string } = {},
): Layer.Layer<Tasks, Failure, ActorSystem | Store> =>
  Layer.scoped(
    Tasks,
    Effect.gen(function* () {
      const system = yield* ActorSystem
      const store: StoreService = yield* Store
      const node = options.node ?? `${hostname()}-${process.pid}`
      const parts = yield* taskParts({ store, node, cancelConversation: () => Effect.void })
      const root = supervisor({ name: "workflows", strategy: "one_for_one", children: [tasksChild(parts)] })
      yield* Effect.acquireRelease(Effect.mapError(spawn(root, { name: "workflows" }), notStarted), (ref) => stop(ref))
      yield* followTaskPlaces(parts, system)
      return makeTasks(parts, system)
    }),
  )

const notStarted = (cause: Error): ServiceFailure =>
  new ServiceFailure({ code: "start", detail: `the task engine did not start: ${cause.message}`, reference: "start" })
