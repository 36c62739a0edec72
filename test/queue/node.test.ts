/**
 * The engine's own workers in a whole node: the net under a sleeping retry, and the verification of settled conversations.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Schedule } from "effect"
import { describe, expect, it } from "vitest"
import { Queues, type QueuesService } from "../../src/actors/queue/queues.ts"
import { QueueConfig, queueSettings } from "../../src/actors/queue/settings.ts"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { QueueName } from "../../src/domain/job.ts"
import { quarantineOf } from "../../src/domain/quarantine.ts"
import { painter } from "../../src/protocols/terminal/style.ts"
import { transcriptText } from "../../src/protocols/terminal/transcript.ts"
import { entry } from "../../src/storage/conformance/records.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { type NodeOptions, nodeAt, open, prompt, until } from "../conversation/harness.ts"

const quick = queueSettings({}, { pollMs: 10, heartbeatMs: 50, verifyAfterMs: 20 })

const inDirectory = <A, E>(use: (path: string) => Effect.Effect<A, E>) =>
  Effect.runPromise(
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-queues-"))),
      (directory) => use(join(directory, "test.db")),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
    ),
  )

const withQueues = <A, E>(
  path: string,
  options: NodeOptions,
  use: (sessions: SessionsService, queues: QueuesService) => Effect.Effect<A, E>,
  settings = quick,
) =>
  Effect.flatMap(Effect.all([Sessions, Queues]), ([sessions, queues]) => use(sessions, queues)).pipe(
    Effect.provide(Layer.provide(nodeAt(path, options), Layer.succeed(QueueConfig, settings))),
  )

/** Looks again until it is so. */
const eventually = <A, E>(effect: Effect.Effect<A, E>, holds: (value: A) => boolean) =>
  Effect.repeat(effect, { until: holds, schedule: Schedule.spaced("5 millis") })

const jobsOf = (queues: QueuesService, queue: string) => queues.jobs({ queue })

describe("a retry that sleeps", () => {
  const rules = [{ match: "", steps: [{ status: 503, times: 1 }, { text: "hello" }] }]

  it("has a job under it that is due a second later, and that finds nothing to do where the timer fired", () =>
    inDirectory((path) =>
      withQueues(path, { rules }, (sessions, queues) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          expect((yield* prompt(sessions, id, "hi")).status).toBe("done")
          const [job] = yield* jobsOf(queues, QueueName.generationRetry)
          expect(job).toMatchObject({ worker: "wake", conversation: id, maxAttempts: 20 })
          yield* eventually(jobsOf(queues, QueueName.generationRetry), ([one]) => one?.state === "completed")
          expect((yield* sessions.state({ conversationId: id })).state).toBe("idle")
        }),
      ),
    ))

  it("goes with the conversation when that is removed", () =>
    inDirectory((path) =>
      withQueues(path, { rules }, (sessions, queues) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          yield* prompt(sessions, id, "hi")
          yield* sessions.remove({ conversationId: id })
          expect(yield* jobsOf(queues, QueueName.generationRetry)).toEqual([])
        }),
      ),
    ))
})

/** A database with a conversation that some provider would refuse: an answer of nothing but thinking. */
const damaged = (path: string) =>
  Effect.gen(function* () {
    const id = yield* withQueues(
      path,
      { rules: [{ match: "", steps: [{ text: "hello" }] }] },
      (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* prompt(sessions, conversationId, "hi")
          return conversationId
        }),
      queueSettings({}, { verifyAfterMs: 3_600_000 }),
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        const store = yield* makeSqliteStore({ path })
        const [own] = yield* store.mint("entry", 1)
        if (own === undefined) return
        const model = [{ role: "assistant", content: [], model: "p/m", stopReason: "stop" } as const]
        yield* store.commit({ entries: [entry(own, id, { kind: "pi.assistant", model })] })
      }),
    )
    return id
  })

const refused = (path: string, id: ConversationId) =>
  Effect.scoped(
    Effect.gen(function* () {
      const store: StoreService = yield* makeSqliteStore({ path })
      return quarantineOf(yield* store.contextEntries(id)) !== null
    }),
  )

describe("a settled conversation", () => {
  it("is checked later, once for many turns, and found sound", () =>
    inDirectory((path) =>
      withQueues(
        path,
        { rules: [{ match: "", steps: [{ text: "hello" }] }] },
        (sessions, queues) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            for (const words of ["one", "two", "three"]) yield* prompt(sessions, id, words)
            yield* eventually(jobsOf(queues, QueueName.verification), (jobs) =>
              jobs.some((job) => job.state === "completed"),
            )
            const jobs = yield* jobsOf(queues, QueueName.verification)
            expect(jobs.length).toBe(1)
            expect((yield* sessions.transcript({ conversationId: id })).map((one) => one.kind)).not.toContain(
              "pi.quarantine",
            )
          }),
        queueSettings({}, { pollMs: 10, verifyAfterMs: 50 }),
      ),
    ))

  it("has what a provider would refuse quarantined: an entry keeps it from being sent, nothing is deleted, watchers are told", () =>
    inDirectory((path) =>
      Effect.gen(function* () {
        const id = yield* damaged(path)
        expect(yield* refused(path, id)).toBe(true)
        yield* withQueues(path, { rules: [{ match: "", steps: [{ text: "hello" }] }] }, (sessions, queues) =>
          Effect.gen(function* () {
            const before = yield* sessions.transcript({ conversationId: id })
            const check = {
              queue: QueueName.verification,
              worker: "check",
              args: { conversation: id },
              conversation: id,
            }
            const told = yield* Effect.fork(
              until(sessions, id, (event) => event.type === "notice" && event.message.includes("will not be sent")),
            )
            // the watcher is there before the check begins
            yield* eventually(sessions.tree, (tree) => JSON.stringify(tree).includes(`conversation-${id}`))
            const first = yield* queues.insert(check)
            yield* eventually(queues.job(first.job.id), (job) => job.state === "completed")
            const after = yield* sessions.transcript({ conversationId: id })
            expect(after.slice(0, before.length)).toEqual(before)
            const added = after.slice(before.length)
            expect(added.map((one) => one.kind)).toEqual(["pi.quarantine"])
            expect(added[0]?.edits).toEqual([{ type: "omit", entry: before.at(-1)?.id }])
            expect(transcriptText(added, painter(false))).toBe(
              `[kept from being sent, because a provider would refuse it: #${before.at(-1)?.id}: empty answer dropped]`,
            )
            const second = yield* queues.insert(check)
            yield* eventually(queues.job(second.job.id), (job) => job.state === "completed")
            expect(yield* sessions.transcript({ conversationId: id })).toEqual(after)
            expect((yield* told)._tag).toBe("Some")
          }),
        )
        expect(yield* refused(path, id)).toBe(false)
      }),
    ))
})
