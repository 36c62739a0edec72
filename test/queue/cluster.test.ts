/**
 * Queues of several nodes that share a database: which node runs a job, and what happens when places move and nodes die.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Logger } from "effect"
import type { QueueWorker } from "../../src/actors/queue/worker.ts"
import { done, snooze } from "../../src/actors/queue/worker.ts"
import { ConversationId, type JobId } from "../../src/domain/ids.ts"
import type { Job } from "../../src/domain/job.ts"
import { moved } from "../../src/domain/moved.ts"
import { clusterNode, conversations, MemoryCluster, shardsOf } from "./cluster-harness.ts"
import { insert, pass, queue, reaches, settle, until, worker } from "./harness.ts"

const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))
const about = (id: number) => ({ conversation: ConversationId.make(id) })

/** A worker that notes what it runs, and ends each when it is told to. */
const stage = () => {
  const ran: Array<string> = []
  const gates = new Map<string, Deferred.Deferred<void>>()
  const of = (node: string): QueueWorker =>
    worker(({ job }) =>
      Effect.gen(function* () {
        ran.push(`${node} ${job.id}`)
        const gate = yield* Deferred.make<void>()
        gates.set(`${node} ${job.id}`, gate)
        yield* Deferred.await(gate)
        return done
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => ran.push(`${node} ${job.id} stopped`)))),
    )
  const end = (node: string, job: JobId) =>
    Effect.suspend(() => {
      const gate = gates.get(`${node} ${job}`)
      return gate === undefined ? Effect.dieMessage(`${node} does not run ${job}`) : Deferred.succeed(gate, undefined)
    })
  const runs = (what: string) =>
    until(
      `that ${what} runs`,
      Effect.sync(() => ran.includes(what)),
    )
  return { ran, of, end, runs }
}

describe("a job about a conversation", () => {
  it.scoped("runs on the node that holds its place, whoever inserted it, as soon as that hears of it", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      yield* conversations(cluster, 1, 2)
      const { end, of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      const two = yield* clusterNode(cluster, "two", of("two"))
      yield* one.gain(shardsOf(1))
      yield* two.gain(shardsOf(2))
      const job = yield* insert(one, about(2))
      yield* runs(`two ${job.id}`)
      yield* end("two", job.id)
      yield* reaches(one, job.id, "completed")
      expect(ran).toEqual([`two ${job.id}`])
    }),
  )

  it.scoped("is found by the poll where the signal was lost", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      cluster.deaf = true
      yield* conversations(cluster, 2)
      const { of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      const two = yield* clusterNode(cluster, "two", of("two"))
      yield* two.gain(shardsOf(2))
      const job = yield* insert(one, about(2))
      yield* settle
      expect(ran).toEqual([])
      yield* pass(5_000)
      yield* runs(`two ${job.id}`)
    }),
  )

  it.scoped("waits while nobody holds its place, and is run by the first who does", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      yield* conversations(cluster, 2)
      const { of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      const job = yield* insert(one, about(2))
      yield* pass(60_000)
      expect(ran).toEqual([])
      yield* one.gain(shardsOf(2))
      yield* runs(`one ${job.id}`)
    }),
  )

  it.scoped(
    "that runs when its place leaves is stopped, handed back without counting the attempt, and run by the other node",
    () =>
      Effect.gen(function* () {
        const cluster = new MemoryCluster()
        yield* conversations(cluster, 1, 2)
        const { end, of, ran, runs } = stage()
        const one = yield* clusterNode(cluster, "one", of("one"))
        const two = yield* clusterNode(cluster, "two", of("two"))
        yield* one.gain(shardsOf(1, 2))
        const [stays, moves] = [yield* insert(one, about(1)), yield* insert(one, about(2))]
        yield* runs(`one ${moves.id}`)
        yield* one.leave(shardsOf(2))
        expect(cluster.job(moves.id)).toMatchObject({ state: "available", attempt: 0, node: null, errors: [] })
        yield* two.gain(shardsOf(2))
        yield* runs(`two ${moves.id}`)
        yield* end("two", moves.id)
        yield* end("one", stays.id)
        yield* reaches(one, moves.id, "completed")
        yield* reaches(one, stays.id, "completed")
        expect(ran).toEqual([`one ${stays.id}`, `one ${moves.id}`, `one ${moves.id} stopped`, `two ${moves.id}`])
        expect(cluster.job(moves.id)).toMatchObject({ attempt: 1 })
      }),
  )

  it.scoped("may end in the time that it is given, and the place goes right then", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      yield* conversations(cluster, 2)
      const { end, of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      yield* one.gain(shardsOf(2))
      const job = yield* insert(one, about(2))
      yield* runs(`one ${job.id}`)
      const leaving = yield* Effect.fork(one.leave(shardsOf(2), 20_000))
      yield* pass(10_000)
      expect(leaving.unsafePoll()).toBe(null)
      yield* end("one", job.id)
      yield* leaving
      expect(cluster.job(job.id)).toMatchObject({ state: "completed" })
      expect(ran).toEqual([`one ${job.id}`])
    }),
  )

  it.scoped("is stopped when its time is up", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      yield* conversations(cluster, 2)
      const { of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      yield* one.gain(shardsOf(2))
      const job = yield* insert(one, about(2))
      yield* runs(`one ${job.id}`)
      const leaving = yield* Effect.fork(one.leave(shardsOf(2), 20_000))
      yield* pass(19_000)
      expect(leaving.unsafePoll()).toBe(null)
      yield* pass(1_000)
      yield* leaving
      expect(cluster.job(job.id)).toMatchObject({ state: "available", attempt: 0 })
      expect(ran).toEqual([`one ${job.id}`, `one ${job.id} stopped`])
    }),
  )

  it.scoped("is taken back at once by whoever gets the place of a node that died, long before its lease is over", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      yield* conversations(cluster, 2)
      const { end, of, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      const two = yield* clusterNode(cluster, "two", of("two"))
      yield* one.gain(shardsOf(2))
      const job = yield* insert(one, about(2))
      yield* runs(`one ${job.id}`)
      yield* one.fence
      yield* two.gain(shardsOf(2))
      yield* runs(`two ${job.id}`)
      expect(cluster.job(job.id)).toMatchObject({ attempt: 2, node: "two#3" })
      expect(cluster.job(job.id)?.errors.map(({ error }) => error)).toEqual(["the worker died"])
      // The dead one wakes up late: what it did is not committed.
      yield* end("one", job.id)
      yield* settle
      expect(cluster.job(job.id)).toMatchObject({ state: "executing", node: "two#3" })
      yield* end("two", job.id)
      yield* reaches(two, job.id, "completed")
    }).pipe(quiet),
  )
})

describe("a worker that meets a conversation of another node", () => {
  it.scoped("puts its job off without counting the attempt", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      let tries = 0
      const one = yield* clusterNode(
        cluster,
        "one",
        worker(() => (++tries < 4 ? Effect.fail(moved("conversation 2")) : Effect.succeed(done)), {}),
      )
      const job = yield* insert(one, { maxAttempts: 1 })
      for (let seconds = 1; seconds <= 3; seconds++) {
        yield* pass(0)
        expect(cluster.job(job.id)).toMatchObject({ state: "available", attempt: 0, errors: [] })
        yield* pass(1_000)
      }
      yield* reaches(one, job.id, "completed")
      expect(tries).toBe(4)
    }),
  )
})

describe("a job about no conversation", () => {
  it.scoped("runs on any node, once", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      const { of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"), 1)
      const two = yield* clusterNode(cluster, "two", of("two"), 1)
      const [first, second] = [yield* insert(one), yield* insert(one)]
      yield* runs(`one ${first.id}`)
      yield* runs(`two ${second.id}`)
      expect(yield* Effect.orDie(two.queues.jobs({ queue, state: "executing" }))).toHaveLength(2)
      expect(ran).toHaveLength(2)
    }),
  )

  it.scoped(
    "is left alone where it runs on an older node that lives, and taken back once that node's epoch is over",
    () =>
      Effect.gen(function* () {
        const cluster = new MemoryCluster()
        const { of, ran, runs } = stage()
        const one = yield* clusterNode(cluster, "one", of("one"))
        const job = yield* insert(one)
        yield* runs(`one ${job.id}`)
        yield* clusterNode(cluster, "two", of("two"))
        yield* pass(60_000)
        expect(ran).toEqual([`one ${job.id}`])
        yield* one.fence
        yield* pass(10_000)
        yield* runs(`two ${job.id}`)
      }).pipe(quiet),
  )
})

describe("what somebody does by hand on one node", () => {
  const state = (jobs: ReadonlyArray<Job>) => jobs.map((job) => job.state)

  it.scoped("reaches the others: a pause, a cancel of what runs there, a retry", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      yield* conversations(cluster, 2)
      const { of, ran, runs } = stage()
      const one = yield* clusterNode(cluster, "one", of("one"))
      const two = yield* clusterNode(cluster, "two", of("two"))
      yield* two.gain(shardsOf(2))
      const job = yield* insert(two, about(2))
      yield* runs(`two ${job.id}`)
      yield* Effect.orDie(one.queues.change({ type: "cancel", job: job.id, reason: null }))
      yield* runs(`two ${job.id} stopped`)
      yield* Effect.orDie(one.queues.change({ type: "pause", queue }))
      yield* Effect.orDie(one.queues.change({ type: "retry", job: job.id }))
      yield* settle
      expect(state(yield* Effect.orDie(two.queues.jobs({ queue })))).toEqual(["available"])
      expect(ran).toHaveLength(2)
      yield* Effect.orDie(one.queues.change({ type: "resume", queue }))
      yield* until(
        "that it runs again",
        Effect.sync(() => ran.length === 3),
      )
      expect(ran[2]).toBe(`two ${job.id}`)
    }).pipe(quiet),
  )

  it.scoped("reaches them within seconds where the signal was lost", () =>
    Effect.gen(function* () {
      const cluster = new MemoryCluster()
      cluster.deaf = true
      const two = yield* clusterNode(
        cluster,
        "two",
        worker(() => Effect.succeed(snooze(1_000))),
      )
      const one = yield* clusterNode(
        cluster,
        "one",
        worker(() => Effect.succeed(done)),
      )
      yield* Effect.orDie(one.queues.change({ type: "pause", queue }))
      yield* pass(10_000)
      const job = yield* insert(two)
      yield* pass(30_000)
      expect(cluster.job(job.id)).toMatchObject({ state: "available", attempt: 0 })
    }).pipe(quiet),
  )
})
