/**
 * Compaction end to end in one process: the real machine, store and jobs, a scripted model that also writes the summaries.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FiberId, Schema } from "effect"
import { describe, expect } from "vitest"
import type { QueuesService } from "../../src/actors/queue/queues.ts"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import { contextOf, contextState } from "../../src/domain/context.ts"
import { DocumentKind, UsageDocument } from "../../src/domain/document.ts"
import { EntryKind } from "../../src/domain/entry.ts"
import type { Event } from "../../src/domain/event.ts"
import type { ConversationId, TaskId } from "../../src/domain/ids.ts"
import type { Job } from "../../src/domain/job.ts"
import { textOf } from "../../src/domain/message.ts"
import { promptOf } from "../../src/domain/prompt.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { compactionQueue } from "../../src/supervisors/compaction-queue.ts"
import { readsAt } from "../support/engine.ts"
import { collect, nodeAt, open, prompt, until, withNode } from "./harness.ts"

const filler = "word ".repeat(300)
const summary = "## Goal\nRepair the login test."

/** The summariser's rule, and one for everything else. */
const rules = (summariser: ReadonlyArray<unknown>, answer: ReadonlyArray<unknown> = [{ text: `ok ${filler}` }]) => [
  { match: "^Summarise the conversation below", steps: summariser },
  { match: ".", steps: answer },
]

const writes = rules([{ text: summary, usage: [1_000, 50] }])

/** Four answered prompts. */
const talk = (sessions: SessionsService, id: ConversationId) =>
  Effect.forEach([1, 2, 3, 4], (n) => prompt(sessions, id, `prompt ${n} ${filler}`), { discard: true })

const contextFrom = (sessions: SessionsService, conversationId: ConversationId) =>
  Effect.map(sessions.transcript({ conversationId }), (entries) => contextOf(contextState(entries)))

const ended = (event: Event): boolean => event.type === "compaction_completed"

describe("a manual compaction", () => {
  it.effect("whose summary is no shorter than what it stands for changes nothing, and says so", () =>
    withNode({ rules: rules([{ text: filler.repeat(20) }], [{ text: "ok" }]) }, (sessions) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        for (const said of ["one", "two", "three"]) yield* prompt(sessions, conversationId, said)
        const before = yield* sessions.transcript({ conversationId })
        const result = yield* sessions.compact({ conversationId, instructions: null })
        expect(result).toMatchObject({ status: "nothing", entry_id: null, tokens_after: null })
        expect(yield* sessions.transcript({ conversationId })).toEqual(before)
      }),
    ),
  )

  it.effect("puts a summary in place of what is older, and keeps prompt, tools and instructions", () =>
    withNode({ rules: writes }, (sessions) =>
      Effect.gen(function* () {
        const { conversation_id } = yield* sessions.open({
          conversationId: null,
          agent: { instructions: "Answer in rhymes." },
          title: null,
          requestId: null,
        })
        yield* talk(sessions, conversation_id)
        const before = yield* contextFrom(sessions, conversation_id)
        const events = yield* collect(sessions, conversation_id, ended)
        const result = yield* sessions.compact({ conversationId: conversation_id, instructions: "the test names" })
        expect(result).toMatchObject({ status: "completed" })
        expect(result.tokens_after ?? Number.POSITIVE_INFINITY).toBeLessThan(result.tokens_before)
        const entries = yield* sessions.transcript({ conversationId: conversation_id })
        const entry = entries.find((one) => one.id === result.entry_id)
        expect(entry).toMatchObject({ kind: EntryKind.compaction, task: result.task_id, data: { reason: "manual" } })
        const after = contextOf(contextState(entries))
        expect([...promptOf(after).tools.keys()]).toEqual([...promptOf(before).tools.keys()])
        expect(promptOf(after).sections).toEqual(promptOf(before).sections)
        expect(promptOf(after).sections.get("instructions")).toBe("Answer in rhymes.")
        expect(after.map((m) => (m.role === "user" ? textOf(m.content) : "")).join()).toContain(summary)
        expect((yield* Fiber.join(events)).map((event) => event.type)).toEqual([
          "snapshot",
          "compaction_started",
          "usage_updated",
          "compaction_completed",
        ])
        // And the conversation goes on with it.
        expect(yield* prompt(sessions, conversation_id, "and now?")).toMatchObject({ status: "done" })
      }),
    ),
  )

  it.effect("counts the summary's tokens, carries the todo list, and asks for what the instructions say", () => {
    let store: StoreService | null = null
    const asked = rules([{ text: "no instructions came" }])
    const wanted = {
      match: "^Summarise .*Pay special attention to this: the ports",
      steps: [{ text: "ports: 80", usage: [700, 7] }],
    }
    const wrapStore = (one: StoreService) => {
      store = one
      return one
    }
    return withNode({ rules: [wanted, ...asked], wrapStore }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        if (store === null) throw new Error("no store")
        const [document] = yield* store.mint("document", 1)
        if (document === undefined) throw new Error("no id")
        const value = { items: [{ id: "1", text: "run the whole suite", status: "in_progress" }] }
        const address = {
          kind: DocumentKind.todo,
          scope: "conversation",
          conversation: id,
          task: null,
          key: "",
        } as const
        yield* store.commit({
          documents: [{ ...address, id: document, version: 1, history: "rewindable", fork: "asOf", value }],
        })
        expect(yield* sessions.compact({ conversationId: id, instructions: "the ports" })).toMatchObject({
          status: "completed",
        })
        const words = (yield* contextFrom(sessions, id)).map((m) => (m.role === "user" ? textOf(m.content) : "")).join()
        expect(words).toContain("ports: 80")
        expect(words).toContain("- [in_progress] run the whole suite")
        const usage = (yield* store.documents(id)).find((one) => one.kind === DocumentKind.usage)
        const decoded = Schema.decodeUnknownSync(UsageDocument)(usage?.value)
        expect(Object.values(decoded.models)[0]?.input).toBeGreaterThanOrEqual(700)
      }),
    )
  })

  it.effect("that hangs is cancelled, and the cancel answers once it has ended", () =>
    withNode({ rules: rules([{ text: "so far", hang: true }]) }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        const compacting = yield* Effect.fork(sessions.compact({ conversationId: id, instructions: null }))
        yield* until(sessions, id, (event) => event.type === "compaction_started" || hasCompaction(event))
        expect(yield* Effect.flip(sessions.remove({ conversationId: id }))).toMatchObject({ _tag: "Busy" })
        expect(yield* sessions.cancel({ conversationId: id })).toEqual({ cancelled: true })
        expect(yield* Fiber.join(compacting)).toMatchObject({ status: "cancelled" })
        expect((yield* sessions.state({ conversationId: id })).compactions).toEqual([])
      }),
    ),
  )

  it.effect("that the service refuses fails for who asked, and is shown until one succeeds", () =>
    withNode({ rules: rules([{ status: 400, message: "no such thing", times: 1 }, { text: summary }]) }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        const failure = yield* Effect.flip(sessions.compact({ conversationId: id, instructions: null }))
        expect(failure).toMatchObject({
          _tag: "ServiceFailure",
          code: "compaction_failed",
          detail: expect.stringMatching(/^Compaction failed: .*no such thing/),
        })
        expect((yield* sessions.state({ conversationId: id })).compaction_failure).toMatchObject({ reason: "manual" })
        yield* sessions.compact({ conversationId: id, instructions: null })
        expect((yield* sessions.state({ conversationId: id })).compaction_failure).toBeNull()
      }),
    ),
  )

  it.effect("says so where there is nothing to compact", () =>
    withNode({ rules: writes }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        expect(yield* sessions.compact({ conversationId: id, instructions: "  " })).toMatchObject({ status: "nothing" })
      }),
    ),
  )
})

const hasCompaction = (event: Event): boolean => event.type === "snapshot" && event.session.compactions.length > 0

/** An answer that says that its context was nearly full: the window of the scripted model is 200,000 tokens. */
const full = { text: `long ${filler}`, usage: [190_000, 10] }

describe("a request above the limit", () => {
  const answers = [{ match: "prompt 4", steps: [full] }, ...writes]

  it.live("waits for a summary and is answered with it", () =>
    withNode({ rules: [writes[0], ...answers], policy: { compaction: { backgroundTokens: 0 } } }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        const events = yield* collect(sessions, id, (event) => event.type === "turn_completed")
        expect(yield* prompt(sessions, id, "go on")).toMatchObject({ status: "done" })
        const seen = yield* Fiber.join(events)
        expect(seen.flatMap((event) => (event.type === "state_changed" ? [event.to] : []))).toEqual(
          expect.arrayContaining(["compacting", "streaming_llm"]),
        )
        expect(seen.find(ended)).toMatchObject({ reason: "threshold", status: "completed" })
      }),
    ),
  )

  it.live("waits through transient failures of the summariser", () => {
    const failing = rules([{ status: 503, retryAfter: 0, times: 2 }, { text: summary }])[0]
    return withNode({ rules: [failing, ...answers], policy: { compaction: { backgroundTokens: 0 } } }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        expect(yield* prompt(sessions, id, "go on")).toMatchObject({ status: "done" })
        const entries = yield* sessions.transcript({ conversationId: id })
        expect(entries.filter((entry) => entry.kind === EntryKind.compaction)).toHaveLength(1)
      }),
    )
  })

  it.live("is not sent when the compaction fails: its input is unanswered and says why", () => {
    const refusing = rules([{ status: 400, message: "no" }])[0]
    return withNode({ rules: [refusing, ...answers], policy: { compaction: { backgroundTokens: 0 } } }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        expect(yield* prompt(sessions, id, "go on")).toMatchObject({
          status: "unanswered",
          reason: "model_error",
          detail: expect.stringMatching(/^Compaction failed: /),
        })
      }),
    )
  })

  it.live("needs no model where the digest is enough", () => {
    const never = rules([{ status: 400, message: "nobody may ask for a summary" }])[0]
    const policy = { compaction: { backgroundTokens: 0, mode: "truncate" as const } }
    return withNode({ rules: [never, ...answers], policy }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        expect(yield* prompt(sessions, id, "go on")).toMatchObject({ status: "done" })
        const words = (yield* contextFrom(sessions, id)).map((m) => (m.role === "user" ? textOf(m.content) : "")).join()
        expect(words).toContain("## Inputs\n- prompt 1 word")
      }),
    )
  })
})

describe("a context that the service finds too long", () => {
  it.live("is compacted and sent again, also when the summariser finds it too long at first", () => {
    const summariser = rules([{ overflow: true, times: 2 }, { text: summary }])[0]
    const request = { match: "go on", steps: [{ overflow: true, times: 1 }, { text: "it fits" }] }
    return withNode({ rules: [summariser, request, ...writes] }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* talk(sessions, id)
        expect(yield* prompt(sessions, id, "go on")).toMatchObject({ status: "done", text: "it fits" })
        const entries = yield* sessions.transcript({ conversationId: id })
        const data = entries.find((entry) => entry.kind === EntryKind.compaction)?.data
        expect(data).toMatchObject({ reason: "overflow", summary })
      }),
    )
  })
})

describe("the slots of a node", () => {
  /** Stands for the durable queue: inserted jobs wait until the test runs them. */
  const queueOf = () => {
    const inserted = Deferred.unsafeMake<Job>(FiberId.none)
    const insert: QueuesService["insert"] = ({ args }) => {
      // All that the worker reads of a job is its arguments.
      const job = { args } as Job
      return Effect.as(Deferred.succeed(inserted, job), { job, inserted: true })
    }
    return { inserted: Deferred.await(inserted), ...compactionQueue({ insert }) }
  }
  const of = (task: number) => ({ conversation: 1 as ConversationId, task: task as TaskId })

  it.effect("hold their job while the summary is written, and begin with it", () =>
    Effect.gen(function* () {
      const { inserted, slots, worker } = queueOf()
      const gate = yield* Deferred.make<string>()
      const using = yield* Effect.fork(slots.use(of(1), Deferred.await(gate)))
      const job = yield* inserted
      const running = yield* Effect.fork(worker.run({ job, idempotencyKey: "k" }))
      yield* Effect.yieldNow()
      expect(yield* Fiber.poll(running)).toMatchObject({ _tag: "None" })
      yield* Deferred.succeed(gate, "summary")
      expect(yield* Fiber.join(using)).toBe("summary")
      expect(yield* Fiber.join(running)).toEqual({ type: "done" })
    }),
  )

  it.effect("are not waited for by one that a request comes to wait for", () =>
    Effect.gen(function* () {
      const { inserted, slots } = queueOf()
      const using = yield* Effect.fork(slots.use(of(1), Effect.succeed("summary")))
      yield* inserted
      expect(yield* Fiber.poll(using)).toMatchObject({ _tag: "None" })
      yield* slots.hurry(of(2).task)
      yield* slots.hurry(of(1).task)
      expect(yield* Fiber.join(using)).toBe("summary")
    }),
  )

  it.effect("leave a job of a process that died, or of a compaction that was stopped, with nothing to do", () =>
    Effect.gen(function* () {
      const { inserted, slots, worker } = queueOf()
      const using = yield* Effect.fork(slots.use(of(1), Effect.never))
      const job = yield* inserted
      yield* Fiber.interrupt(using)
      expect(yield* worker.run({ job, idempotencyKey: "k" })).toEqual({ type: "done" })
    }),
  )

  it.live("come from the queue: a background summary runs as a job of it", () => {
    const nearlyFull = { text: `long ${filler}`, usage: [160_000, 10] }
    return withNode({ rules: [writes[0], { match: "prompt 4", steps: [nearlyFull] }, ...writes] }, (sessions, path) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        const events = yield* collect(sessions, id, ended)
        yield* talk(sessions, id)
        expect((yield* Fiber.join(events)).at(-1)).toMatchObject({ reason: "background", status: "completed" })
        const jobs = yield* Effect.scoped(
          Effect.flatMap(readsAt(path), (store) => store.jobs({ queue: "compaction", limit: 10 })),
        )
        expect(jobs.map(({ worker }) => worker)).toEqual(["slot"])
      }),
    )
  })
})

describe("a restart", () => {
  it.live("takes up a compaction that was being made", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-compaction-"))),
      (directory) =>
        Effect.gen(function* () {
          const life = <A>(
            summariser: ReadonlyArray<unknown>,
            use: (sessions: SessionsService) => Effect.Effect<A, unknown>,
          ) =>
            Effect.flatMap(Sessions, use).pipe(
              Effect.provide(nodeAt(join(directory, "test.db"), { rules: rules(summariser) })),
            )
          const id = yield* life([{ text: "so far", hang: true }], (sessions) =>
            Effect.gen(function* () {
              const opened = yield* open(sessions)
              yield* talk(sessions, opened)
              const asked = yield* Effect.fork(sessions.compact({ conversationId: opened, instructions: "the ports" }))
              yield* until(sessions, opened, (event) => event.type === "compaction_started" || hasCompaction(event))
              yield* Fiber.interrupt(asked)
              return opened
            }),
          )
          const entries = yield* life([{ text: summary }], (sessions) =>
            Effect.gen(function* () {
              yield* until(
                sessions,
                id,
                (event) => ended(event) || (event.type === "snapshot" && !hasCompaction(event)),
              )
              return yield* sessions.transcript({ conversationId: id })
            }),
          )
          expect(entries.at(-1)).toMatchObject({ kind: EntryKind.compaction, data: { reason: "manual", summary } })
        }),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
    ),
  )
})
