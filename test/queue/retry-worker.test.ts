/**
 * The worker under sleeping retries: it wakes a conversation whose retry slept past its time, and leaves every other one alone.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option, TestClock } from "effect"
import type { ConversationMessage } from "../../src/actors/conversation/messages.ts"
import { type ActorRef, ActorSystem, behavior, spawn } from "../../src/actors/kernel/index.ts"
import type { JobResult } from "../../src/actors/queue/worker.ts"
import { NotFound } from "../../src/domain/failure.ts"
import type { ConversationId, JobId, Seq, TaskId } from "../../src/domain/ids.ts"
import type { Task } from "../../src/domain/task.ts"
import { conversation, job, task } from "../../src/storage/conformance/records.ts"
import { jobRow } from "../../src/storage/job-port.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import type { Unstamped } from "../../src/storage/store.ts"
import type { Conversations } from "../../src/supervisors/conversations.ts"
import { retryWorker } from "../../src/supervisors/retry-worker.ts"
import { settle } from "./harness.ts"

const of = 1 as ConversationId
const id = 7 as TaskId

/** Runs the worker once for task 7; gives its result and what the conversation was told. */
const runOn = (some: Partial<Unstamped<Task>> | null, args: unknown = { task: id }) =>
  Effect.gen(function* () {
    const store = yield* makeMemoryStore(memoryDatabase())
    const tasks = some === null ? [] : [task(id, of, some)]
    yield* store.commit({ conversations: [conversation(of)], tasks })
    const told: Array<string> = []
    const ref: ActorRef<ConversationMessage> = yield* spawn(
      behavior<null, ConversationMessage>({
        init: () => null,
        receive: (state, message) =>
          Effect.sync(() => {
            told.push(message.type)
            return state
          }),
      }),
    )
    const conversations: Conversations = {
      get: (wanted) =>
        wanted === of ? Effect.succeed(ref) : Effect.fail(new NotFound({ what: `conversation ${wanted}` })),
      peek: () => Effect.succeed(Option.none()),
    }
    const row = { ...jobRow(job(1 as JobId, { args: args as null })), seq: 1 as Seq }
    const result: JobResult = yield* retryWorker(store, conversations)
      .run({ job: row, idempotencyKey: "k" })
      .pipe(Effect.orDie)
    yield* settle
    return { result, told }
  }).pipe(Effect.provide(ActorSystem.layer()), Effect.orDie)

describe("the worker under a sleeping retry", () => {
  it.scoped("wakes a conversation whose retry is past its time", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust(5_000)
      expect(yield* runOn({ status: "sleeping", wakeAt: 4_000 })).toEqual({ result: { type: "done" }, told: ["timer"] })
    }),
  )

  it.scoped("comes back where the retry sleeps on", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust(5_000)
      expect(yield* runOn({ status: "sleeping", wakeAt: 8_000 })).toEqual({
        result: { type: "snooze", ms: 4_000 },
        told: [],
      })
    }),
  )

  it.scoped("leaves a run alone that woke, ended, or is gone", () =>
    Effect.gen(function* () {
      for (const some of [{ status: "running" }, { status: "terminal" }, null] as const) {
        expect(yield* runOn(some)).toEqual({ result: { type: "done" }, told: [] })
      }
      expect((yield* runOn({ status: "sleeping", wakeAt: 0 }, "nonsense")).told).toEqual([])
    }),
  )
})
