/**
 * One life of a node with one job, which may kill its own process around a commit or in the middle of the worker's effect. The job's effect
 * is a line in a file; what it commits is a document. Prints the job's state when that has ended.
 */
import { appendFileSync } from "node:fs"
import { Effect, Schedule } from "effect"
import { ActorSystem, spawn } from "../../src/actors/kernel/index.ts"
import { WorkerRegistry } from "../../src/actors/queue/registry.ts"
import { queueSettings } from "../../src/actors/queue/settings.ts"
import { doneWith } from "../../src/actors/queue/worker.ts"
import { isEnded } from "../../src/domain/job-transitions.ts"
import { document } from "../../src/storage/conformance/records.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { makeQueues, queueTree } from "../../src/supervisors/queues.ts"
import type { DeathCase } from "./death-case.ts"

const given: DeathCase = JSON.parse(process.env.SUPER_PI_DEATH_CASE ?? "{}")

const die = Effect.async<never>(() => {
  process.kill(process.pid, "SIGKILL")
})

/** Dies before or after the `n`-th commit, claims included. */
const mortal = (store: StoreService): StoreService => {
  let commits = 0
  const around = <A, E>(commit: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      commits++
      const at = given.crash?.at === "commit" && given.crash.n === commits ? given.crash.when : null
      if (at === "before") return die
      return at === "after" ? Effect.zipRight(commit, die) : commit
    })
  return {
    ...store,
    commit: (rows) => around(store.commit(rows)),
    claimJobs: (claim) => around(store.claimJobs(claim)),
  }
}

const program = Effect.gen(function* () {
  const store = mortal(yield* makeSqliteStore({ path: given.db }))
  const system = yield* ActorSystem
  const workers = new WorkerRegistry()
  const settings = queueSettings({ work: { concurrency: 1 } }, { pollMs: 20 })
  const parts = { store, system, workers, settings, node: `node-${process.pid}` }
  const queues = makeQueues(parts)
  yield* spawn(queueTree(parts), { name: "queues" })
  const inserted = yield* queues.insert({
    queue: "work",
    worker: "pay",
    args: null,
    uniqueKey: "order 1",
    uniqueFor: "kept",
    maxAttempts: 9,
  })
  yield* queues.register({
    queue: "work",
    name: "pay",
    run: ({ idempotencyKey }) =>
      Effect.gen(function* () {
        if (given.crash?.at === "effect" && given.crash.when === "before") yield* die
        appendFileSync(given.effects, `${idempotencyKey}\n`)
        if (given.crash?.at === "effect") yield* die
        const [id] = yield* store.mint("document", 1)
        if (id === undefined) return yield* Effect.dieMessage("no id")
        return doneWith({ documents: [document(id, null, { kind: "paid", key: String(id), value: idempotencyKey })] })
      }),
  })
  yield* Effect.repeat(queues.job(inserted.job.id), {
    until: (job) => isEnded(job.state),
    schedule: Schedule.spaced("5 millis"),
  })
  const end = yield* queues.job(inserted.job.id)
  process.stdout.write(`${JSON.stringify({ id: end.id, state: end.state, attempt: end.attempt })}\n`)
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(ActorSystem.layer())))
