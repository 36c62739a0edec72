/**
 * Queues at work: order, concurrency, delays, backoff, leases, pause, unique jobs, deaths.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Ref } from "effect"
import { cancelJob, done, doneWith, type QueueWorker, snooze } from "../../src/actors/queue/worker.ts"
import type { JobId } from "../../src/domain/ids.ts"
import type { Job } from "../../src/domain/job.ts"
import { conversation, entry } from "../../src/storage/conformance/records.ts"
import { StorageUnavailable } from "../../src/storage/errors.ts"
import { memoryDatabase } from "../../src/storage/memory/store.ts"
import { insert, nodeOn, pass, queue, reaches, settle, until, worker } from "./harness.ts"

/** Seldom looks, so that days pass quickly. */
const slow = { pollMs: 86_400_000, heartbeatMs: 86_400_000, leaseMs: 9e9, pruneEveryMs: 86_400_000 }

/** A worker that notes what it runs, and what holds it up. */
const noting = (result: (job: Job) => Effect.Effect<typeof done, unknown> = () => Effect.succeed(done)) => {
  const ran: Array<JobId> = []
  const run: QueueWorker["run"] = ({ job }) =>
    Effect.suspend(() => {
      ran.push(job.id)
      return result(job)
    })
  return { ran, worker: worker(run) }
}

/** A worker that runs until it is told to go on; counts how many run at once. */
const holding = () => {
  const now = new Map<JobId, Deferred.Deferred<void>>()
  const most = { value: 0 }
  const interrupted: Array<JobId> = []
  const run: QueueWorker["run"] = ({ job }) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      now.set(job.id, gate)
      most.value = Math.max(most.value, now.size)
      yield* Deferred.await(gate).pipe(
        Effect.onInterrupt(() => Effect.sync(() => interrupted.push(job.id))),
        Effect.ensuring(Effect.sync(() => now.get(job.id) === gate && now.delete(job.id))),
      )
      return done
    })
  const release = (id: JobId) =>
    Effect.suspend(() => Deferred.succeed(now.get(id) ?? Deferred.unsafeMake<void>(gone), undefined))
  return { now, most, interrupted, release, worker: worker(run) }
}
const gone = Effect.runSync(Effect.fiberId)

const running = (held: { readonly now: ReadonlyMap<JobId, unknown> }, ids: ReadonlyArray<JobId>) =>
  until(
    `jobs ${ids.join()} to run`,
    Effect.sync(() => ids.every((id) => held.now.has(id)) && held.now.size === ids.length),
  )

describe("a queue", () => {
  it.scoped("runs what is due, the oldest first, as many at once as it may", () =>
    Effect.gen(function* () {
      const held = holding()
      const node = yield* nodeOn({ workers: [held.worker] })
      const [a, b, c] = [yield* insert(node), yield* insert(node), yield* insert(node)]
      yield* running(held, [a.id, b.id])
      yield* held.release(a.id)
      yield* running(held, [b.id, c.id])
      yield* held.release(b.id)
      yield* held.release(c.id)
      for (const { id } of [a, b, c]) yield* reaches(node, id, "completed")
      expect(held.most.value).toBe(2)
    }),
  )

  it.scoped("runs a delayed job when it is due and not before, also after forty days", () =>
    Effect.gen(function* () {
      const { ran, worker: noted } = noting()
      const node = yield* nodeOn({
        workers: [noted],
        settings: slow,
      })
      const delayMs = 40 * 24 * 3_600_000
      const job = yield* insert(node, { delayMs })
      yield* pass(delayMs - 1)
      expect(ran).toEqual([])
      yield* pass(1)
      yield* reaches(node, job.id, "completed")
      expect(ran).toEqual([job.id])
    }),
  )

  it.scoped("finds jobs that came with somebody else's commit", () =>
    Effect.gen(function* () {
      const { worker: noted } = noting()
      const node = yield* nodeOn({ workers: [noted] })
      yield* settle
      const rows = yield* node.queues.rows([{ queue, worker: "w", args: 1 }])
      yield* node.store.commit({ jobs: rows })
      yield* pass(5_000)
      yield* reaches(node, rows[0]?.id ?? (0 as JobId), "completed")
      const woken = yield* node.queues.rows([{ queue, worker: "w", args: 1 }])
      yield* node.queues.commit({ jobs: woken })
      yield* reaches(node, woken[0]?.id ?? (0 as JobId), "completed")
    }),
  )

  it.scoped("leaves its jobs alone while it has no worker, and says so", () =>
    Effect.gen(function* () {
      const node = yield* nodeOn()
      const job = yield* insert(node)
      yield* pass(60_000)
      expect((yield* node.queues.job(job.id)).attempt).toBe(0)
      const view = (yield* node.queues.list).find((one) => one.queue === queue)
      expect(view).toMatchObject({ concurrency: 2, workers: [], counts: { available: 1 }, due_at: job.runAt })
      expect(JSON.stringify(yield* node.system.tree())).toContain("0/2 running, no workers")
      yield* node.queues.register(noting().worker)
      yield* reaches(node, job.id, "completed")
    }),
  )

  it.scoped("puts a job of a worker that it does not know off, without counting an attempt", () =>
    Effect.gen(function* () {
      const node = yield* nodeOn({ workers: [noting().worker] })
      const job = yield* insert(node, { worker: "later" })
      yield* settle
      const waiting = yield* node.queues.job(job.id)
      expect([waiting.state, waiting.attempt, waiting.runAt]).toEqual(["available", 0, job.runAt + 60_000])
      yield* node.queues.register({ ...noting().worker, name: "later" })
      yield* pass(60_000)
      yield* reaches(node, job.id, "completed")
    }),
  )

  it.scoped("pauses for good: running jobs end, no other starts, also after a restart, until it is resumed", () =>
    Effect.gen(function* () {
      const database = memoryDatabase()
      const held = holding()
      const first = yield* nodeOn({ database, workers: [held.worker] })
      const a = yield* insert(first)
      yield* running(held, [a.id])
      const changed = yield* first.queues.change({ type: "pause", queue })
      expect(changed.queue?.paused).toBe(true)
      const b = yield* insert(first)
      yield* held.release(a.id)
      yield* reaches(first, a.id, "completed")
      yield* pass(60_000)
      yield* first.close
      const second = yield* nodeOn({ database, workers: [held.worker] })
      yield* pass(60_000)
      expect((yield* second.queues.job(b.id)).state).toBe("available")
      yield* second.queues.change({ type: "resume", queue })
      yield* running(held, [b.id])
    }),
  )
})

describe("an attempt", () => {
  it.scoped("that fails runs again after a backoff, until its attempts are used up", () =>
    Effect.gen(function* () {
      const { ran, worker: failing } = noting(() => Effect.fail(new Error("not today")))
      const node = yield* nodeOn({ workers: [failing] })
      const job = yield* insert(node, { maxAttempts: 3 })
      yield* settle
      for (const wait of [1_000, 2_000]) {
        const again = yield* node.queues.job(job.id)
        expect(again.state).toBe("available")
        const left = again.runAt - job.runAt
        expect(left).toBeGreaterThan(0)
        yield* pass(wait)
      }
      const over = yield* reaches(node, job.id, "discarded")
      expect(over.errors.map(({ attempt, error }) => [attempt, error])).toEqual([
        [1, "not today"],
        [2, "not today"],
        [3, "not today"],
      ])
      expect(ran.length).toBe(3)
      yield* node.queues.change({ type: "retry", job: job.id })
      yield* until(
        "a fourth attempt",
        Effect.sync(() => ran.length === 4),
      )
    }),
  )

  it.scoped("that breaks, or takes too long, has failed", () =>
    Effect.gen(function* () {
      const node = yield* nodeOn({
        workers: [
          worker(() => Effect.dieMessage("broken"), { name: "broken" }),
          worker(() => Effect.never, { name: "slow", timeoutMs: 500 }),
        ],
      })
      const broken = yield* insert(node, { worker: "broken", maxAttempts: 1 })
      const slow = yield* insert(node, { worker: "slow", maxAttempts: 1 })
      expect((yield* reaches(node, broken.id, "discarded")).errors[0]?.error).toContain("broken")
      yield* pass(500)
      expect((yield* reaches(node, slow.id, "discarded")).errors[0]?.error).toContain("within 500 ms")
    }),
  )

  it.scoped("may put its job off without counting, or end it for good", () =>
    Effect.gen(function* () {
      const times = yield* Ref.make(0)
      const node = yield* nodeOn({
        workers: [
          worker(() =>
            Effect.map(
              Ref.updateAndGet(times, (n) => n + 1),
              (n) => (n < 3 ? snooze(700) : done),
            ),
          ),
          worker(() => Effect.succeed(cancelJob("nobody needs it")), { name: "given-up" }),
        ],
      })
      const job = yield* insert(node, { maxAttempts: 1 })
      const dropped = yield* insert(node, { worker: "given-up" })
      yield* settle
      yield* pass(700)
      yield* pass(700)
      expect((yield* reaches(node, job.id, "completed")).attempt).toBe(1)
      expect((yield* reaches(node, dropped.id, "cancelled")).errors[0]?.error).toBe("cancelled: nobody needs it")
    }),
  )

  it.scoped("commits its rows together with its end, or fails when they are refused", () =>
    Effect.gen(function* () {
      const database = memoryDatabase()
      const node = yield* nodeOn({ database })
      const [of] = yield* node.store.mint("conversation", 1)
      const [id] = yield* node.store.mint("entry", 1)
      if (of === undefined || id === undefined) return
      yield* node.store.commit({ conversations: [conversation(of)] })
      yield* node.queues.register(worker(() => Effect.succeed(doneWith({ entries: [entry(id, of)] }))))
      const first = yield* insert(node)
      const end = yield* reaches(node, first.id, "completed")
      expect((yield* node.store.entries(of))[0]?.seq).toBe(end.seq)
      const second = yield* insert(node, { maxAttempts: 1 })
      expect((yield* reaches(node, second.id, "discarded")).errors[0]?.error).toContain("its commit was refused")
    }),
  )

  it.scoped("has the same idempotency key every time", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const node = yield* nodeOn({
        workers: [
          worker(({ idempotencyKey }) =>
            Effect.suspend(() => {
              keys.push(idempotencyKey)
              return Effect.fail("again")
            }),
          ),
        ],
      })
      const job = yield* insert(node, { maxAttempts: 2 })
      yield* insert(node, { maxAttempts: 1 })
      yield* pass(1_000)
      yield* reaches(node, job.id, "discarded")
      expect(keys.length).toBe(3)
      expect(new Set(keys).size).toBe(2)
    }),
  )
})

describe("a lease", () => {
  it.scoped("is kept alive as long as the job runs", () =>
    Effect.gen(function* () {
      const held = holding()
      const node = yield* nodeOn({ workers: [held.worker] })
      const job = yield* insert(node)
      yield* running(held, [job.id])
      for (let time = 0; time < 12; time++) yield* pass(10_000)
      const now = yield* node.queues.job(job.id)
      expect([now.state, now.attempt, (now.leaseUntil ?? 0) - job.runAt]).toEqual(["executing", 1, 150_000])
      expect(held.interrupted).toEqual([])
    }),
  )

  it.scoped("that was lost interrupts the worker, whose commit is refused, and the job runs again", () =>
    Effect.gen(function* () {
      const held = holding()
      const node = yield* nodeOn({ workers: [held.worker] })
      const [job, other] = [yield* insert(node), yield* insert(node)]
      yield* running(held, [job.id, other.id])
      const taken = yield* node.queues.job(job.id)
      // as another node would after the lease lapsed
      yield* node.store.commit({
        jobUpdates: [
          {
            job: { ...taken, state: "available", fence: taken.fence + 1, node: null },
            from: "executing",
            fence: taken.fence,
          },
        ],
      })
      yield* pass(10_000)
      yield* until(
        "the worker to be interrupted",
        Effect.sync(() => held.interrupted.includes(job.id)),
      )
      yield* running(held, [job.id, other.id])
      yield* held.release(job.id)
      yield* held.release(other.id)
      expect((yield* reaches(node, job.id, "completed")).attempt).toBe(2)
      expect((yield* reaches(node, other.id, "completed")).attempt).toBe(1)
      expect(held.interrupted).toEqual([job.id])
    }),
  )

  it.scoped("lapses while storage is away: the worker is interrupted, and the job taken back afterwards", () =>
    Effect.gen(function* () {
      const held = holding()
      let away = false
      const trouble = new StorageUnavailable({ location: "memory", cause: "away", advice: "Wait" })
      const node = yield* nodeOn({
        workers: [held.worker],
        wrapStore: (store) => ({
          ...store,
          commit: (rows) => (away ? trouble : store.commit(rows)),
          claimJobs: (claim) => (away ? trouble : store.claimJobs(claim)),
        }),
      })
      const job = yield* insert(node)
      yield* running(held, [job.id])
      away = true
      yield* pass(10_000)
      expect(held.interrupted).toEqual([])
      yield* pass(10_000)
      yield* pass(10_000)
      yield* until(
        "the worker to be interrupted",
        Effect.sync(() => held.interrupted.length === 1),
      )
      away = false
      yield* pass(10_000)
      yield* running(held, [job.id])
      yield* held.release(job.id)
      const end = yield* reaches(node, job.id, "completed")
      expect([end.attempt, end.errors[0]?.error]).toEqual([2, "the worker died"])
    }),
  )
})

describe("a node that ends", () => {
  it.scoped("cleanly hands its jobs back without counting the attempt", () =>
    Effect.gen(function* () {
      const database = memoryDatabase()
      const held = holding()
      const first = yield* nodeOn({ database, workers: [held.worker] })
      const job = yield* insert(first, { maxAttempts: 1 })
      yield* running(held, [job.id])
      yield* first.close
      expect(held.interrupted).toEqual([job.id])
      const second = yield* nodeOn({ database, workers: [held.worker] })
      yield* running(held, [job.id])
      yield* held.release(job.id)
      expect((yield* reaches(second, job.id, "completed")).attempt).toBe(1)
    }),
  )

  it.scoped("by a death loses no job: its successor takes them back, counted, up to the last attempt", () =>
    Effect.gen(function* () {
      const database = memoryDatabase()
      const held = holding()
      const first = yield* nodeOn({ database, workers: [held.worker], name: "first" })
      const [job, last] = [yield* insert(first), yield* insert(first, { maxAttempts: 1 })]
      yield* running(held, [job.id, last.id])
      // opening the database fences the first node: for the store it is dead from here on
      const second = yield* nodeOn({ database, name: "second" })
      expect((yield* reaches(second, last.id, "discarded")).errors[0]?.error).toBe("the worker died")
      yield* held.release(job.id)
      yield* settle
      expect((yield* second.queues.job(job.id)).state).toBe("available")
      yield* second.queues.register(noting().worker)
      expect((yield* reaches(second, job.id, "completed")).attempt).toBe(2)
    }),
  )
})

describe("the actor of an attempt", () => {
  it.scoped("that is stopped from outside is a failed attempt", () =>
    Effect.gen(function* () {
      const held = holding()
      const node = yield* nodeOn({ workers: [held.worker] })
      const job = yield* insert(node)
      yield* running(held, [job.id])
      yield* node.queues.change({ type: "cancel", job: job.id, reason: "enough" })
      yield* until(
        "the worker to be interrupted",
        Effect.sync(() => held.interrupted.length === 1),
      )
      expect(yield* node.queues.job(job.id)).toMatchObject({
        state: "cancelled",
        errors: [{ error: "cancelled: enough" }],
      })
      expect(yield* Effect.flip(node.queues.change({ type: "cancel", job: job.id, reason: null }))).toMatchObject({
        _tag: "Refused",
      })
    }),
  )
})

describe("a unique job", () => {
  it.scoped("is there once while it is live, and again afterwards", () =>
    Effect.gen(function* () {
      const held = holding()
      const node = yield* nodeOn({ workers: [held.worker] })
      const add = node.queues.insert({ queue, worker: "w", args: 1, uniqueKey: "k" })
      const first = yield* add
      const second = yield* add
      expect([first.inserted, second.inserted, second.job.id]).toEqual([true, false, first.job.id])
      yield* running(held, [first.job.id])
      yield* held.release(first.job.id)
      yield* reaches(node, first.job.id, "completed")
      expect((yield* add).inserted).toBe(true)
    }),
  )
})

describe("ended jobs", () => {
  it.scoped("are pruned a day later by themselves, or at once by hand", () =>
    Effect.gen(function* () {
      const node = yield* nodeOn({ workers: [noting().worker], settings: { ...slow, pruneEveryMs: 3_600_000 } })
      const [a, live] = [yield* insert(node), yield* insert(node, { delayMs: 9e9 })]
      yield* reaches(node, a.id, "completed")
      yield* pass(24 * 3_600_000)
      expect((yield* node.queues.jobs({})).length).toBe(2)
      yield* pass(3_600_000)
      expect((yield* node.queues.jobs({})).map((job) => job.id)).toEqual([live.id])
      const b = yield* insert(node)
      yield* reaches(node, b.id, "completed")
      expect((yield* node.queues.change({ type: "prune", before: null })).pruned).toBe(1)
      expect((yield* node.queues.jobs({})).map((job) => job.id)).toEqual([live.id])
    }),
  )
})

describe("a caller's mistake", () => {
  it.scoped("is named: unknown queues and jobs, workers that are there already, numbers that make no sense", () =>
    Effect.gen(function* () {
      const node = yield* nodeOn({ workers: [noting().worker] })
      const { queues } = node
      const words = <A>(effect: Effect.Effect<A, { readonly message: string }>) =>
        Effect.map(Effect.flip(effect), (error) => error.message)
      expect(yield* words(Effect.scoped(queues.register({ ...noting().worker, queue: "none" })))).toContain(
        'worker.queue: expected a queue of this node (q), got "none"',
      )
      expect(yield* words(Effect.scoped(queues.register(noting().worker)))).toContain("worker.name")
      expect(yield* words(queues.change({ type: "pause", queue: "none" }))).toContain('got "none"')
      expect(yield* words(queues.job(99 as JobId))).toBe("job 99 was not found")
      expect(yield* words(queues.insert({ queue, worker: "w", args: 1, maxAttempts: 0 }))).toContain("job.maxAttempts")
      expect(yield* words(queues.insert({ queue, worker: "w", args: 1, delayMs: Number.NaN }))).toContain("job.delayMs")
    }),
  )
})
