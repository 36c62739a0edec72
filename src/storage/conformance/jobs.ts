/**
 * Jobs: inserted with a commit, unique in their queue, claimed once, moved on only by who holds them, pruned, gone with their conversation.
 */
import { Effect } from "effect"
import type { JobId } from "../../domain/ids.ts"
import type { Job, JobState } from "../../domain/job.ts"
import { cancelled, completed, failed, heartbeat, rescued, retried, snoozed } from "../../domain/job-transitions.ts"
import type { TestKit } from "../conformance.ts"
import type { JobInsert, JobUpdate } from "../job-port.ts"
import { conversation, entry, job } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

const now = 1_750_000_000_000

const inserted = (session: Session, some: Partial<JobInsert> = {}) =>
  Effect.gen(function* () {
    const id = yield* session.mint("job")
    yield* session.commit({ jobs: [job(id, some)] })
    return id
  })

/** Claims in a session that may have to reopen afterwards. */
const claim = (session: Session, some: { limit?: number; at?: number; queue?: string; node?: string } = {}) =>
  Effect.gen(function* () {
    const { limit = 10, at = now, queue = "q", node = "one" } = some
    const jobs = yield* session.store().claimJobs({ queue, limit, now: at, leaseUntil: at + 30_000, node })
    yield* session.reopenIfWanted
    return jobs
  })

const move = (job: Job, next: Omit<Job, "seq">, from: JobState = job.state): JobUpdate => ({
  job: next,
  from,
  fence: job.fence,
})

const stateOf = (session: Session, id: JobId) =>
  Effect.map(session.store().job(id), (row) => (row === null ? null : row.state))

export const jobs = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a job", () => {
    it("comes with the commit that inserts it, whole, and not with one that is refused", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* session.mint("conversation")
          const [id, other] = yield* session.store().mint("job", 2)
          if (id === undefined || other === undefined) return
          const args = { deep: [1, { text: "🦊 \ud800" }, null] }
          const row = job(id, {
            args,
            conversation: of,
            uniqueKey: "k",
            uniqueFor: "kept",
            maxAttempts: 7,
            runAt: now + 5,
          })
          const seq = yield* session.commit({ conversations: [conversation(of)], jobs: [row] })
          const expected = {
            ...row,
            state: "available",
            attempt: 0,
            node: null,
            fence: 0,
            leaseUntil: null,
            errors: [],
            startedAt: null,
            endedAt: null,
            seq,
          }
          expect(yield* session.store().job(id)).toEqual(expected)
          expect(yield* session.store().jobByKey("q", "k")).toEqual(expected)
          const twice = entry(yield* session.mint("entry"), of)
          expect(yield* session.refusal({ jobs: [job(other)], entries: [twice, twice] })).toBe("Conflict")
          expect(yield* session.store().job(other)).toBe(null)
          expect(yield* session.refusal({ jobs: [job(id)] })).toBe("Conflict")
          const nowhere = yield* session.mint("conversation")
          expect(yield* session.refusal({ jobs: [job(other, { conversation: nowhere })] })).toBe("Conflict")
        }),
      ))

    it("is not inserted while another one of its queue has its key; the rest of the commit is", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const first = yield* inserted(session, { uniqueKey: "k" })
          const [second, third, elsewhere] = yield* session.store().mint("job", 3)
          if (second === undefined || third === undefined || elsewhere === undefined) return
          const of = yield* session.mint("conversation")
          yield* session.commit({
            conversations: [conversation(of)],
            jobs: [job(second, { uniqueKey: "k" }), job(third), job(elsewhere, { queue: "other", uniqueKey: "k" })],
          })
          expect((yield* session.store().jobs({ limit: 9 })).map((row) => row.id)).toEqual([elsewhere, third, first])
          expect((yield* session.store().conversation(of))?.id).toBe(of)
        }),
      ))

    it("frees its key when it ends if it is unique while live, and keeps it if it is unique while kept", () =>
      sessions((session) =>
        Effect.gen(function* () {
          yield* inserted(session, { uniqueKey: "live" })
          yield* inserted(session, { uniqueKey: "kept", uniqueFor: "kept" })
          for (const row of yield* claim(session))
            yield* session.commit({ jobUpdates: [move(row, completed(row, now))] })
          const again = yield* inserted(session, { uniqueKey: "live" })
          const kept = yield* inserted(session, { uniqueKey: "kept", uniqueFor: "kept" })
          expect(yield* stateOf(session, again)).toBe("available")
          expect(yield* stateOf(session, kept)).toBe(null)
          yield* session.commit({ pruneJobs: { endedBefore: now + 1, limit: 10 } })
          const free = yield* inserted(session, { uniqueKey: "kept", uniqueFor: "kept" })
          expect(yield* stateOf(session, free)).toBe("available")
        }),
      ))
  })

  describe("claiming", () => {
    it("takes what is due in that queue, the earliest first, at most the limit, each once", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const late = yield* inserted(session, { runAt: now })
          const early = yield* inserted(session, { runAt: now - 5 })
          const next = yield* inserted(session, { runAt: now })
          const future = yield* inserted(session, { runAt: now + 1 })
          yield* inserted(session, { queue: "other", runAt: 1 })
          expect(yield* session.store().dueAt("q")).toBe(now - 5)
          const first = yield* claim(session, { limit: 2 })
          expect(first.map((row) => row.id)).toEqual([early, late])
          expect(
            first.map(({ state, attempt, fence, node, leaseUntil, startedAt }) => ({
              state,
              attempt,
              fence,
              node,
              leaseUntil,
              startedAt,
            })),
          ).toEqual(
            Array.from({ length: 2 }, () => ({
              state: "executing",
              attempt: 1,
              fence: 1,
              node: "one",
              leaseUntil: now + 30_000,
              startedAt: now,
            })),
          )
          expect(yield* session.store().job(early)).toEqual(first[0])
          expect((yield* claim(session)).map((row) => row.id)).toEqual([next])
          expect(yield* claim(session)).toEqual([])
          expect(yield* session.store().dueAt("q")).toBe(now + 1)
          expect((yield* session.store().executingJobs("q")).map((row) => row.id)).toEqual([late, early, next])
          expect((yield* claim(session, { at: now + 1 })).map((row) => row.id)).toEqual([future])
          expect(yield* session.store().dueAt("q")).toBe(null)
        }),
      ))

    it("gives one attempt to one of many who claim at once", () =>
      sessions((session) =>
        Effect.gen(function* () {
          for (let count = 0; count < 6; count++) yield* inserted(session)
          const store = session.store()
          const taken = yield* Effect.forEach(
            ["a", "b", "c", "d"],
            (node) => store.claimJobs({ queue: "q", limit: 2, now, leaseUntil: now, node }),
            { concurrency: "unbounded" },
          )
          const ids = taken.flat().map((row) => row.id)
          expect(ids.length).toBe(6)
          expect(new Set(ids).size).toBe(6)
          expect(taken.map((rows) => rows.length).toSorted()).toEqual([0, 2, 2, 2])
        }),
      ))
  })

  describe("a claimed job", () => {
    it("is kept, finished, put off or failed by who holds it", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const id = yield* inserted(session, { maxAttempts: 2 })
          const current = () =>
            Effect.flatMap(session.store().job(id), (row) =>
              row === null ? Effect.dieMessage("gone") : Effect.succeed(row),
            )
          let [held] = yield* claim(session)
          if (held === undefined) return
          yield* session.commit({ jobUpdates: [move(held, heartbeat(held, now + 99))] })
          held = yield* current()
          expect(held.leaseUntil).toBe(now + 99)
          yield* session.commit({ jobUpdates: [move(held, snoozed(held, now + 5))] })
          held = yield* current()
          expect([held.state, held.attempt, held.runAt, held.node]).toEqual(["available", 0, now + 5, null])
          ;[held] = yield* claim(session, { at: now + 5 })
          if (held === undefined) return
          yield* session.commit({ jobUpdates: [move(held, failed(held, now + 6, "no", now + 7))] })
          held = yield* current()
          expect([held.state, held.attempt, held.errors]).toEqual([
            "available",
            1,
            [{ at: now + 6, attempt: 1, error: "no" }],
          ])
          ;[held] = yield* claim(session, { at: now + 7 })
          if (held === undefined) return
          const of = yield* session.mint("conversation")
          yield* session.commit({
            conversations: [conversation(of)],
            jobUpdates: [move(held, failed(held, now + 8, "no!", 0))],
          })
          held = yield* current()
          expect([held.state, held.attempt, held.errors.length, held.endedAt]).toEqual(["discarded", 2, 2, now + 8])
          yield* session.commit({ jobUpdates: [move(held, retried(held, now + 9))] })
          ;[held] = yield* claim(session, { at: now + 9 })
          if (held === undefined) return
          expect([held.attempt, held.maxAttempts, held.endedAt]).toEqual([3, 3, null])
          yield* session.commit({ jobUpdates: [move(held, completed(held, now + 10))] })
          expect((yield* current()).state).toBe("completed")
        }),
      ))

    it("changes nothing under a stale token: rescued, claimed again, cancelled, or gone", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const id = yield* inserted(session)
          const of = yield* session.mint("conversation")
          yield* session.commit({ conversations: [conversation(of)] })
          const effect = entry(yield* session.mint("entry"), of)
          const finish = (held: Job) => ({ entries: [effect], jobUpdates: [move(held, completed(held, now))] })
          const [first] = yield* claim(session)
          if (first === undefined) return
          yield* session.commit({ jobUpdates: [move(first, rescued(first, now, "the worker died", now))] })
          expect(yield* session.refusal(finish(first))).toBe("Fenced")
          const [second] = yield* claim(session, { node: "two" })
          if (second === undefined) return
          expect([second.attempt, second.fence]).toEqual([2, 3])
          expect(yield* session.refusal(finish(first))).toBe("Fenced")
          expect(yield* session.refusal({ jobUpdates: [move(first, heartbeat(first, now + 1))] })).toBe("Fenced")
          yield* session.commit({ jobUpdates: [move(second, cancelled(second, now, "enough"))] })
          expect(yield* session.refusal(finish(second))).toBe("Fenced")
          expect(yield* session.store().entries(of)).toEqual([])
          yield* session.commit({ pruneJobs: { endedBefore: now + 1, limit: 1 } })
          expect(yield* session.refusal(finish(second))).toBe("Conflict")
          expect(yield* stateOf(session, id)).toBe(null)
        }),
      ))

    it("refuses a transition that is not legal, and one from a state that it is not in", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const id = yield* inserted(session)
          const row = yield* session.store().job(id)
          if (row === null) return
          expect(yield* session.refusal({ jobUpdates: [move(row, completed(row, now))] })).toBe("Conflict")
          expect(yield* session.refusal({ jobUpdates: [move(row, completed(row, now), "executing")] })).toBe("Conflict")
          expect(yield* session.store().job(id)).toEqual(row)
        }),
      ))
  })

  describe("a listing of jobs", () => {
    it("is of a queue, of a state, of both or of all, newest first, in pages; and counted", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const a = yield* inserted(session)
          const b = yield* inserted(session, { queue: "p", runAt: now + 9 })
          const c = yield* inserted(session)
          const d = yield* inserted(session, { runAt: now + 9 })
          yield* claim(session, { limit: 1 })
          const list = (options: Partial<Parameters<ReturnType<Session["store"]>["jobs"]>[0]>) =>
            Effect.map(session.store().jobs({ limit: 9, ...options }), (rows) => rows.map((row) => row.id))
          expect(yield* list({})).toEqual([d, c, b, a])
          expect(yield* list({ limit: 2 })).toEqual([d, c])
          expect(yield* list({ before: c })).toEqual([b, a])
          expect(yield* list({ queue: "q" })).toEqual([d, c, a])
          expect(yield* list({ state: "available" })).toEqual([d, c, b])
          expect(yield* list({ queue: "q", state: "available", limit: 1 })).toEqual([d])
          expect(yield* list({ queue: "q", state: "available", before: d })).toEqual([c])
          expect(yield* list({ queue: "q", state: "executing" })).toEqual([a])
          expect(yield* list({ queue: "none" })).toEqual([])
          expect(yield* session.store().jobCounts()).toEqual([
            { queue: "p", state: "available", count: 1 },
            { queue: "q", state: "available", count: 2 },
            { queue: "q", state: "executing", count: 1 },
          ])
        }),
      ))

    it("is pruned of what ended longest ago, a limited number at a time, and of nothing that is live", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const ids = yield* Effect.forEach([3, 1, 2, 4], (after) =>
            Effect.gen(function* () {
              const id = yield* inserted(session)
              const [held] = yield* claim(session)
              if (held !== undefined) yield* session.commit({ jobUpdates: [move(held, completed(held, now + after))] })
              return id
            }),
          )
          const live = yield* inserted(session)
          const left = Effect.map(
            Effect.suspend(() => session.store().jobs({ limit: 9 })),
            (rows) => rows.map((row) => row.id).toReversed(),
          )
          yield* session.commit({ pruneJobs: { endedBefore: now + 4, limit: 2 } })
          expect(yield* left).toEqual([ids[0], ids[3], live])
          yield* session.commit({ pruneJobs: { endedBefore: now + 4, limit: 2 } })
          expect(yield* left).toEqual([ids[3], live])
        }),
      ))

    it("loses the jobs of a conversation that is removed", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* session.mint("conversation")
          yield* session.commit({ conversations: [conversation(of)] })
          yield* inserted(session, { conversation: of })
          const other = yield* inserted(session)
          yield* session.commit({ removeConversations: [of] })
          expect((yield* session.store().jobs({ limit: 9 })).map((row) => row.id)).toEqual([other])
        }),
      ))
  })
}
