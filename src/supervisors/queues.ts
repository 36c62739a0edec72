/**
 * The queues of a node: one actor each and a pruner, under a supervisor, and the service in front of them.
 *
 *   queues (one_for_one)
 *     <queue>…       queue actors; their children are the attempts that run
 *     pruner         deletes jobs that ended long ago
 *     settled        conversations to verify (verification.ts)
 */
import { Clock, Effect } from "effect"
import { orStorageFailure, storageFailure } from "../actors/conversation/failures.ts"
import { behavior, tell } from "../actors/kernel/index.ts"
import { sleepLong } from "../actors/kernel/timers.ts"
import type { QueueMessage } from "../actors/queue/messages.ts"
import { setPaused } from "../actors/queue/pause.ts"
import type { JobPlacing } from "../actors/queue/placing.ts"
import { queueActor } from "../actors/queue/queue.ts"
import type { NewJob, QueuesService } from "../actors/queue/queues.ts"
import type { WorkerRegistry } from "../actors/queue/registry.ts"
import { defaultMaxAttempts, type QueueSettings } from "../actors/queue/settings.ts"
import { type QueueNode, queueViews } from "../actors/queue/views.ts"
import type { QueueWorker } from "../actors/queue/worker.ts"
import { type Failure, InvalidRequest, NotFound, Refused } from "../domain/failure.ts"
import type { JobId } from "../domain/ids.ts"
import type { Job } from "../domain/job.ts"
import { cancelled, isEnded, retried } from "../domain/job-transitions.ts"
import type { QueueChange, QueueChanged } from "../domain/queue.ts"
import type { JobInsert } from "../storage/job-port.ts"
import type { StoreService } from "../storage/store.ts"
import { child, type SupervisedChild } from "./child.ts"
import { commitEverywhere, type QueueWakeParts, registered, send as sendTo } from "./queue-wake.ts"
import { supervisor } from "./supervisor.ts"

interface QueueTreeParts {
  readonly store: StoreService
  readonly settings: QueueSettings
  readonly workers: WorkerRegistry
  /** Name of this node. */
  readonly node: string
  /** Default: the node is alone. */
  readonly placing?: JobPlacing | undefined
}

/** The supervisor of the queues, and of what feeds them. */
export const queueTree = (
  { node, placing, settings, store, workers }: QueueTreeParts,
  others: ReadonlyArray<SupervisedChild<never>> = [],
) =>
  supervisor({
    name: "queues",
    strategy: "one_for_one",
    children: [
      ...Object.entries(settings.queues).map(([name, { concurrency }]) =>
        child(name, queueActor({ name, concurrency, settings, store, workers, node, placing }), {
          register: registered(name),
        }),
      ),
      child("pruner", pruner(store, settings)),
      ...others,
    ],
  })

/** Jobs deleted in one commit. */
const pruneLimit = 1_000

/** Deletes what ended before `before`, in short commits; gives how many. */
const prune = (store: StoreService, before: number) =>
  Effect.gen(function* () {
    const count = Effect.map(store.jobCounts(), (counts) => counts.reduce((sum, one) => sum + one.count, 0))
    const first = yield* count
    for (let left = first, seen = Number.POSITIVE_INFINITY; left < seen; left = yield* count) {
      seen = left
      yield* store.commit({ pruneJobs: { endedBefore: before, limit: pruneLimit } })
    }
    return first - (yield* count)
  })

const pruner = (store: StoreService, settings: QueueSettings) =>
  behavior<null, "prune">({
    name: "pruner",
    init: (self) =>
      Effect.as(
        self.fork(Effect.forever(Effect.zipRight(sleepLong(settings.pruneEveryMs), tell(self.ref, "prune")))),
        null,
      ),
    receive: (state) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => prune(store, now - settings.keepMs)).pipe(
        Effect.catchAll((error) => Effect.logWarning(`ended jobs were not pruned: ${error.message}`)),
        Effect.as(state),
      ),
  })

/** How often a change by hand is tried again when the job moved on in between. */
const changeAttempts = 5

/** The service over the queues of `queueTree`. */
export const makeQueues = (parts: QueueTreeParts & QueueWakeParts): QueuesService => {
  const { settings, signals, store, workers } = parts
  const names = Object.keys(settings.queues)
  const node: QueueNode = {
    names,
    concurrency: (queue) => settings.queues[queue]?.concurrency ?? null,
    workers: (queue) => workers.namesOf(queue),
  }

  const send = (queue: string, message: QueueMessage): Effect.Effect<void> => sendTo(parts, queue, message)

  const rows = (jobs: ReadonlyArray<NewJob>): Effect.Effect<ReadonlyArray<JobInsert>, Failure> =>
    Effect.gen(function* () {
      for (const job of jobs) yield* checkJob(job)
      const now = yield* Clock.currentTimeMillis
      const ids = yield* orStorageFailure(store.mint("job", jobs.length))
      return jobs.flatMap((job, index) => {
        const id = ids[index]
        return id === undefined ? [] : [insertOf(job, id, now)]
      })
    })

  const commit: QueuesService["commit"] = (wanted) => commitEverywhere(parts, wanted)

  const insert: QueuesService["insert"] = (job) =>
    Effect.gen(function* () {
      const [row] = yield* rows([job])
      if (row === undefined) return yield* Effect.dieMessage("the store minted fewer ids than asked for")
      yield* orStorageFailure(commit({ jobs: [row] }))
      const mine = yield* orStorageFailure(store.job(row.id))
      if (mine !== null) return { job: mine, inserted: true }
      const key = row.uniqueKey
      const other = key === null ? null : yield* orStorageFailure(store.jobByKey(row.queue, key))
      // It ended between the two: one that is unique only while live has made room.
      return other === null ? yield* insert(job) : { job: other, inserted: false }
    })

  const job = (id: JobId): Effect.Effect<Job, Failure> =>
    Effect.flatMap(orStorageFailure(store.job(id)), (found) =>
      found === null ? Effect.fail(new NotFound({ what: `job ${id}` })) : Effect.succeed(found),
    )

  /** Moves a job on by hand; again where it moved on by itself in between. */
  const move = (
    id: JobId,
    next: (job: Job, now: number) => Omit<Job, "seq"> | Refused,
    attempts = changeAttempts,
  ): Effect.Effect<Job, Failure> =>
    Effect.gen(function* () {
      const before = yield* job(id)
      const now = yield* Clock.currentTimeMillis
      const after = next(before, now)
      if (after instanceof Refused) return yield* after
      const written = yield* Effect.either(
        store.commit({ jobUpdates: [{ job: after, from: before.state, fence: before.fence }] }),
      )
      if (written._tag === "Left") {
        const moved = written.left._tag === "Fenced" || written.left._tag === "Conflict"
        if (moved && attempts > 1) return yield* move(id, next, attempts - 1)
        return yield* Effect.flatMap(storageFailure(written.left), (failure) => Effect.fail(failure))
      }
      yield* send(before.queue, { type: "changed", job: id })
      signals?.tell([{ type: "job", queue: before.queue, job: id }])
      return yield* job(id)
    })

  const list: QueuesService["list"] = orStorageFailure(queueViews(store, node))

  const pause = (queue: string, paused: boolean): Effect.Effect<QueueChanged, Failure> =>
    Effect.gen(function* () {
      const known = (yield* list).map((view) => view.queue)
      if (!known.includes(queue)) {
        return yield* new InvalidRequest({
          path: "queue",
          expected: `one of ${known.join(", ")}`,
          actual: JSON.stringify(queue),
        })
      }
      yield* orStorageFailure(setPaused(store, queue, paused))
      yield* send(queue, { type: "paused", paused })
      signals?.tell([{ type: "pause", queue }])
      return { ...nothing, queue: (yield* list).find((view) => view.queue === queue) ?? null }
    })

  const change = (wanted: QueueChange): Effect.Effect<QueueChanged, Failure> => {
    switch (wanted.type) {
      case "pause":
      case "resume":
        return pause(wanted.queue, wanted.type === "pause")
      case "retry":
        return Effect.map(
          move(wanted.job, (before, now) =>
            before.state === "executing"
              ? new Refused({ rule: "executing", detail: `job ${before.id} is running; cancel it first` })
              : retried(before, now),
          ),
          (after) => ({ ...nothing, job: after }),
        )
      case "cancel":
        return Effect.map(
          move(wanted.job, (before, now) =>
            isEnded(before.state)
              ? new Refused({ rule: "ended", detail: `job ${before.id} is ${before.state} already` })
              : cancelled(before, now, wanted.reason ?? "by hand"),
          ),
          (after) => ({ ...nothing, job: after }),
        )
      case "prune":
        return Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.map(orStorageFailure(prune(store, wanted.before ?? now + 1)), (pruned) => ({ ...nothing, pruned })),
        )
    }
  }

  const register: QueuesService["register"] = <R>(worker: QueueWorker<R>) =>
    Effect.gen(function* () {
      if (!names.includes(worker.queue)) {
        return yield* new InvalidRequest({
          path: "worker.queue",
          expected: `a queue of this node (${names.join(", ")})`,
          actual: JSON.stringify(worker.queue),
        })
      }
      if (workers.get(worker.queue, worker.name) !== undefined) {
        return yield* new InvalidRequest({
          path: "worker.name",
          expected: `a name that no other worker of ${worker.queue} has`,
          actual: JSON.stringify(worker.name),
        })
      }
      const context = yield* Effect.context<R>()
      const run: QueueWorker["run"] = (attempt) => Effect.provide(worker.run(attempt), context)
      yield* Effect.acquireRelease(
        Effect.sync(() => workers.add({ ...worker, run })),
        (remove) => Effect.sync(remove),
      )
      yield* send(worker.queue, { type: "look" })
    })

  return {
    insert,
    rows,
    commit,
    register,
    list,
    jobs: ({ limit = 100, ...options }) => orStorageFailure(store.jobs({ ...options, limit })),
    job,
    change,
  }
}

const nothing: QueueChanged = { queue: null, job: null, pruned: null }

const insertOf = (job: NewJob, id: JobId, now: number): JobInsert => ({
  id,
  queue: job.queue,
  worker: job.worker,
  args: job.args,
  uniqueKey: job.uniqueKey ?? null,
  uniqueFor: job.uniqueFor ?? "live",
  maxAttempts: job.maxAttempts ?? defaultMaxAttempts(job.queue),
  runAt: now + Math.max(0, Math.round(job.delayMs ?? 0)),
  conversation: job.conversation ?? null,
  createdAt: now,
})

const checkJob = (job: NewJob): Effect.Effect<void, Failure> => {
  const wrong = (path: string, expected: string, actual: unknown) =>
    new InvalidRequest({ path: `job.${path}`, expected, actual: JSON.stringify(actual) ?? String(actual) })
  if (job.queue === "") return wrong("queue", "the name of a queue", job.queue)
  if (job.worker === "") return wrong("worker", "the name of a worker", job.worker)
  const { delayMs = 0, maxAttempts = 1 } = job
  if (!Number.isFinite(delayMs)) return wrong("delayMs", "a number of milliseconds", delayMs)
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1) {
    return wrong("maxAttempts", "a whole number of at least 1", maxAttempts)
  }
  return Effect.void
}
