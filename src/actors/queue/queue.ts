/**
 * The actor of one queue. It alone claims jobs of the queue on this node, and owns the actors of their attempts. Rules in `decide.ts`.
 *
 *   available ──claim (commit)──▶ executing, in an actor of its own ──end (commit)──▶ completed | available | discarded | cancelled
 *
 * It looks when it is woken, when an attempt ends, when the next job is due, and every few seconds. A sign of life for all that run is
 * one commit; what is not ours any more is interrupted.
 *
 * Where several nodes share the database: a job whose conversation leaves this node may end in the time that it is given; then its attempt
 * is stopped, and after that the job is handed back. The node that the conversation moves to is told by its own placement.
 */
import { Clock, Deferred, Effect, Fiber } from "effect"
import type { JobId } from "../../domain/ids.ts"
import type { Job } from "../../domain/job.ts"
import type { JobUpdate } from "../../storage/job-port.ts"
import type { StoreService } from "../../storage/store.ts"
import { type ActorContext, type ActorRef, type Behavior, behavior, type Down, stop, tell } from "../kernel/index.ts"
import { describeReason } from "../kernel/stop-reason.ts"
import { sleepLong } from "../kernel/timers.ts"
import { diedText, ended, type Holder, heartbeats, holderName, isHeld, nextLook, released, rescues } from "./decide.ts"
import { attemptActor } from "./execute.ts"
import type { Leaving, QueueMessage } from "./messages.ts"
import { isPaused } from "./pause.ts"
import { goneAmong, type JobPlacing } from "./placing.ts"
import type { WorkerRegistry } from "./registry.ts"
import type { QueueSettings } from "./settings.ts"
import { snooze } from "./worker.ts"

export interface QueueParts {
  readonly name: string
  readonly concurrency: number
  readonly settings: QueueSettings
  readonly store: StoreService
  readonly workers: WorkerRegistry
  readonly node: string
  /** Default: the node is alone, and every job is its own. */
  readonly placing?: JobPlacing | undefined
}

interface Running {
  /** As it was claimed, or last given a sign of life. */
  readonly job: Job
  readonly ref: ActorRef<"go">
}

/** A job whose worker this node does not know is looked at again after this time. */
const unknownWorkerMs = 60_000
/** Wait after storage failed. */
const troubleMs = 2_000

class Queue {
  readonly running = new Map<JobId, Running>()
  paused = false
  private readonly leavings = new Set<Leaving>()
  /** Jobs whose attempts are being stopped because they leave. */
  private readonly handing = new Map<JobId, Job>()
  private timer: Fiber.RuntimeFiber<void> | null = null
  private readonly parts: QueueParts
  private readonly self: ActorContext<QueueMessage>

  constructor(parts: QueueParts, self: ActorContext<QueueMessage>) {
    this.parts = parts
    this.self = self
  }

  private get holder(): Holder {
    return { node: this.parts.node, epoch: this.parts.store.epoch }
  }

  private get manned(): boolean {
    return this.parts.workers.namesOf(this.parts.name).length > 0
  }

  describe(): string {
    const { concurrency } = this.parts
    const state = `${this.running.size}/${concurrency} running`
    return this.paused ? `${state}, paused` : this.manned ? state : `${state}, no workers`
  }

  /** Reads whether it is paused, takes orphans back, and looks. */
  begin(): Effect.Effect<void> {
    const { name, settings, store } = this.parts
    const beat = Effect.forever(
      Effect.zipRight(sleepLong(settings.heartbeatMs), tell<QueueMessage>(this.self.ref, { type: "beat" })),
    )
    return Effect.gen(this, function* () {
      this.paused = yield* isPaused(store, name)
      yield* this.rescue()
    }).pipe(
      Effect.catchAll((error) => Effect.logWarning(`queue ${name}: ${error.message}`)),
      Effect.zipRight(this.look()),
      Effect.zipRight(this.self.fork(beat)),
      Effect.asVoid,
    )
  }

  /** Claims what there is room for and starts it; then sets the timer for the next look. */
  look(): Effect.Effect<void> {
    const { concurrency, name, settings, store } = this.parts
    return Effect.gen(this, function* () {
      if (this.paused || !this.manned) return
      const room = concurrency - this.running.size
      if (room <= 0) return
      const now = yield* Clock.currentTimeMillis
      const leaseUntil = now + settings.leaseMs
      const jobs = yield* store.claimJobs({ queue: name, limit: room, now, leaseUntil, node: holderName(this.holder) })
      yield* Effect.forEach(jobs, (job) => this.start(job), { discard: true })
      if (this.running.size >= concurrency) return
      const due = yield* store.dueAt(name)
      yield* this.lookIn(nextLook(due, yield* Clock.currentTimeMillis, settings.pollMs))
    }).pipe(
      Effect.catchAll((error) =>
        Effect.zipRight(Effect.logWarning(`queue ${name}: ${error.message}`), this.lookIn(troubleMs)),
      ),
    )
  }

  private lookIn(ms: number): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      if (this.timer !== null) yield* Fiber.interruptFork(this.timer)
      this.timer = yield* this.self.fork(
        Effect.zipRight(sleepLong(ms), tell<QueueMessage>(this.self.ref, { type: "look" })),
      )
    })
  }

  private start(job: Job): Effect.Effect<void> {
    const { name, store, workers } = this.parts
    const worker = workers.get(name, job.worker)
    if (worker === undefined) {
      return Effect.gen(this, function* () {
        yield* Effect.logWarning(`queue ${name}: job ${job.id} waits for the worker ${job.worker}, which is not here`)
        yield* this.change([job], (now) => [ended(job, snooze(unknownWorkerMs), now, 0)])
      })
    }
    const report = (kept: boolean) =>
      tell<QueueMessage>(this.self.ref, { type: "ended", job: job.id, fence: job.fence, kept })
    return this.self
      .spawn(attemptActor(store, job, worker, report), {
        name: `job-${job.id}-${job.fence}`,
        childSpec: { restart: "temporary", shutdownMs: 0 },
      })
      .pipe(
        Effect.orDie,
        Effect.flatMap((ref) => {
          this.running.set(job.id, { job, ref })
          return Effect.zipRight(this.self.watch(ref), tell(ref, "go"))
        }),
      )
  }

  /** An attempt said its last word. */
  over(id: JobId, fence: number, kept: boolean): Effect.Effect<void> {
    if (this.running.get(id)?.job.fence === fence) this.forget(id)
    const told = kept
      ? Effect.void
      : Effect.logWarning(
          `queue ${this.parts.name}: job ${id} was taken away while it ran; what it did is not committed`,
        )
    return Effect.zipRight(told, this.look())
  }

  /** An attempt ended without a word: somebody stopped it, or it crashed outside its worker. */
  down({ ref, reason }: Down): Effect.Effect<void> {
    const found = [...this.running.values()].find((one) => one.ref.id === ref.id)
    if (found === undefined) return Effect.void
    const { job } = found
    this.forget(job.id)
    const error = `the attempt ended without a result (${describeReason(reason)})`
    const failedAttempt = (now: number) => [ended(job, { type: "failed", error }, now, 0)]
    return Effect.zipRight(this.change([job], failedAttempt), this.look())
  }

  /** Somebody else changed a job: it may be due now, or not ours any more. */
  changed(id: JobId): Effect.Effect<void> {
    const running = this.running.get(id)
    const checked = running === undefined ? Effect.void : this.dropLost([running])
    return Effect.zipRight(checked, this.look())
  }

  setPaused(paused: boolean): Effect.Effect<void> {
    this.paused = paused
    return this.look()
  }

  pauseChanged(): Effect.Effect<void> {
    const { name, store } = this.parts
    return Effect.matchEffect(isPaused(store, name), {
      onFailure: (error) => Effect.logWarning(`queue ${name}: ${error.message}`),
      onSuccess: (paused) => (paused === this.paused ? Effect.void : this.setPaused(paused)),
    })
  }

  /** Orphans, and a look. */
  gained(): Effect.Effect<void> {
    const rescue = Effect.catchAll(this.rescue(), (error) =>
      Effect.logWarning(`queue ${this.parts.name}: ${error.message}`),
    )
    return Effect.zipRight(rescue, this.look())
  }

  leaving({ graceMs, reply, shards }: Extract<QueueMessage, { readonly type: "leaving" }>): Effect.Effect<void> {
    const { placing } = this.parts
    const running = this.jobs()
    // Where the places cannot be read all that are about conversations stop: they only start again.
    const found = placing === undefined ? Effect.succeed(running) : placing.in(running, shards)
    return Effect.gen(this, function* () {
      const jobs = yield* Effect.orElseSucceed(found, () => running.filter((job) => job.conversation !== null))
      if (jobs.length === 0) return reply.succeed(undefined)
      const leaving = { jobs: new Set(jobs.map((job) => job.id)), reply, over: yield* Deferred.make<void>() }
      this.leavings.add(leaving)
      const told = tell<QueueMessage>(this.self.ref, { type: "stopLeaving", leaving })
      yield* this.self.fork(Effect.zipRight(Effect.timeoutOption(Deferred.await(leaving.over), graceMs), told))
    })
  }

  /** Stops what still runs of jobs that leave. They are nobody's until they are handed back: an end of theirs is not committed. */
  stopLeaving(leaving: Leaving): Effect.Effect<void> {
    this.leavings.delete(leaving)
    const left = [...leaving.jobs].flatMap((id) => this.running.get(id) ?? [])
    if (left.length === 0) return Effect.sync(() => leaving.reply.succeed(undefined))
    for (const { job } of left) {
      this.handing.set(job.id, job)
      this.forget(job.id)
    }
    const jobs = left.map(({ job }) => job)
    const stopping = Effect.forEach(left, ({ ref }) => stop(ref), { concurrency: "unbounded", discard: true })
    return Effect.asVoid(
      this.self.fork(Effect.zipRight(stopping, tell<QueueMessage>(this.self.ref, { type: "handBack", jobs, leaving }))),
    )
  }

  handBack(jobs: ReadonlyArray<Job>, { reply }: Leaving): Effect.Effect<void> {
    return this.change(jobs, (now, held) => released(held, now)).pipe(
      Effect.zipRight(
        Effect.sync(() => {
          for (const { id } of jobs) this.handing.delete(id)
          reply.succeed(undefined)
        }),
      ),
      Effect.zipRight(this.look()),
    )
  }

  /** A job runs here no more. */
  private forget(id: JobId): void {
    this.running.delete(id)
    for (const leaving of this.leavings) {
      if ([...leaving.jobs].every((one) => !this.running.has(one))) Deferred.unsafeDone(leaving.over, Effect.void)
    }
  }

  /** Signs of life, orphans, and a look. */
  beat(): Effect.Effect<void> {
    const { settings, store } = this.parts
    return Effect.gen(this, function* () {
      if (this.running.size > 0) {
        const leaseUntil = (yield* Clock.currentTimeMillis) + settings.leaseMs
        const give = Effect.suspend(() => store.commit({ jobUpdates: heartbeats(this.jobs(), leaseUntil) }))
        const given = yield* Effect.either(give)
        if (given._tag === "Left") {
          // One that is not ours refuses all: let go of it, then try again for the others.
          yield* this.dropLost([...this.running.values()])
          if (this.running.size > 0) yield* give
        }
        for (const [id, { job, ref }] of this.running) this.running.set(id, { job: { ...job, leaseUntil }, ref })
      }
      yield* this.rescue()
      if (this.parts.placing !== undefined) this.paused = yield* isPaused(store, this.parts.name)
    }).pipe(
      Effect.catchAll((error) =>
        Effect.zipRight(Effect.logWarning(`queue ${this.parts.name}: ${error.message}`), this.dropLapsed()),
      ),
      Effect.zipRight(this.look()),
    )
  }

  /** A clean stop: what ran goes back to the queue, its attempt not counted. Attempts have been stopped already. */
  release(): Effect.Effect<void> {
    const jobs = [...this.jobs(), ...this.handing.values()]
    return jobs.length === 0 ? Effect.void : this.change(jobs, (now, held) => released(held, now))
  }

  private jobs(): ReadonlyArray<Job> {
    return [...this.running.values()].map((one) => one.job)
  }

  private rescue() {
    const { name, placing, store } = this.parts
    return Effect.gen(this, function* () {
      const executing = yield* store.executingJobs(name)
      const gone = yield* goneAmong(executing, this.holder, store, placing)
      const now = yield* Clock.currentTimeMillis
      const runs = (job: Job) => (this.running.get(job.id)?.job.fence ?? this.handing.get(job.id)?.fence) === job.fence
      for (const update of rescues(executing, runs, this.holder, gone, now)) {
        yield* Effect.logWarning(`queue ${name}: job ${update.job.id} is taken back: ${diedText}`)
        yield* Effect.ignore(store.commit({ jobUpdates: [update] }))
      }
    })
  }

  /** Commits transitions of jobs that were ours a moment ago; those that are not any more stay as they are. */
  private change(
    jobs: ReadonlyArray<Job>,
    updates: (now: number, held: ReadonlyArray<Job>) => ReadonlyArray<JobUpdate>,
  ): Effect.Effect<void> {
    const { name, store } = this.parts
    return Effect.gen(this, function* () {
      const held = yield* Effect.filter(jobs, (job) => Effect.map(store.job(job.id), (stored) => isHeld(job, stored)))
      const now = yield* Clock.currentTimeMillis
      if (held.length > 0) yield* store.commit({ jobUpdates: updates(now, held) })
    }).pipe(
      // it stays executing without a worker, and is taken back as an orphan
      Effect.catchAll((error) => Effect.logWarning(`queue ${name}: ${error.message}`)),
    )
  }

  private dropLost(running: ReadonlyArray<Running>): Effect.Effect<void> {
    return Effect.forEach(
      running,
      (one) =>
        Effect.flatMap(Effect.either(this.parts.store.job(one.job.id)), (stored) =>
          stored._tag === "Right" && !isHeld(one.job, stored.right) ? this.drop(one) : Effect.void,
        ),
      { discard: true },
    )
  }

  /** Storage is out of reach: what has lapsed meanwhile may run elsewhere by now. */
  private dropLapsed(): Effect.Effect<void> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.forEach(
        [...this.running.values()].filter(({ job }) => job.leaseUntil !== null && job.leaseUntil <= now),
        (one) => this.drop(one),
        { discard: true },
      ),
    )
  }

  private drop({ job, ref }: Running): Effect.Effect<void> {
    this.forget(job.id)
    return Effect.zipRight(
      Effect.logWarning(`queue ${this.parts.name}: job ${job.id} was taken away and is interrupted`),
      Effect.asVoid(this.self.fork(stop(ref))),
    )
  }
}

/** The behavior of one queue. */
export const queueActor = (parts: QueueParts): Behavior<Queue, QueueMessage> =>
  behavior<Queue, QueueMessage>({
    name: "queue",
    init: (self) => {
      const queue = new Queue(parts, self)
      return Effect.as(queue.begin(), queue)
    },
    receive: (queue, message) => Effect.as(receive(queue, message), queue),
    onDown: (queue, down) => Effect.as(queue.down(down), queue),
    onStop: (queue) => queue.release(),
    describe: (queue) => queue.describe(),
  })

const receive = (queue: Queue, message: QueueMessage): Effect.Effect<void> => {
  switch (message.type) {
    case "look":
      return queue.look()
    case "beat":
      return queue.beat()
    case "ended":
      return queue.over(message.job, message.fence, message.kept)
    case "changed":
      return queue.changed(message.job)
    case "paused":
      return queue.setPaused(message.paused)
    case "pauseChanged":
      return queue.pauseChanged()
    case "gained":
      return queue.gained()
    case "leaving":
      return queue.leaving(message)
    case "stopLeaving":
      return queue.stopLeaving(message.leaving)
    case "handBack":
      return queue.handBack(message.jobs, message.leaving)
  }
}
