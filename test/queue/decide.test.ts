/**
 * What a queue decides: ends, backoff, signs of life, orphans.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  ended,
  epochsOf,
  foreignJobs,
  type Holder,
  heartbeats,
  holderName,
  isHeld,
  nextLook,
  released,
  rescues,
} from "../../src/actors/queue/decide.ts"
import { backoffMs, queueSettings } from "../../src/actors/queue/settings.ts"
import { cancelJob, done, snooze } from "../../src/actors/queue/worker.ts"
import type { JobId, Seq } from "../../src/domain/ids.ts"
import type { Job, JobState } from "../../src/domain/job.ts"
import {
  cancelled,
  claimed,
  completed,
  failed,
  isLegalTransition,
  keptFailures,
  rescued,
  retried,
  snoozed,
} from "../../src/domain/job-transitions.ts"
import { job as insert } from "../../src/storage/conformance/records.ts"
import { jobRow } from "../../src/storage/job-port.ts"

const now = 1_000_000
const self: Holder = { node: "here", epoch: 5 }
const row = (some: Partial<Job> = {}): Job => ({ ...jobRow(insert(1 as JobId)), seq: 1 as Seq, ...some })
const running = (some: Partial<Job> = {}): Job =>
  row({
    state: "executing",
    attempt: 1,
    fence: 1,
    node: holderName(self),
    leaseUntil: now + 9,
    startedAt: now,
    ...some,
  })

describe("the end of an attempt", () => {
  it("is completed, put off without counting, cancelled, or available again after a backoff", () => {
    expect(ended(running(), done, now, 7).job).toMatchObject({ state: "completed", endedAt: now, node: null })
    expect(ended(running(), snooze(50), now, 7).job).toMatchObject({ state: "available", attempt: 0, runAt: now + 50 })
    expect(ended(running(), cancelJob("no"), now, 7).job).toMatchObject({ state: "cancelled", endedAt: now })
    expect(ended(running(), { type: "failed", error: "e" }, now, 7).job).toMatchObject({
      state: "available",
      attempt: 1,
      runAt: now + 7,
      errors: [{ at: now, attempt: 1, error: "e" }],
    })
  })

  it("is discarded at the last attempt, with the newest failures kept", () => {
    const errors = Array.from({ length: keptFailures }, (_, at) => ({ at, attempt: at, error: `${at}` }))
    const last = running({ attempt: 3, maxAttempts: 3, errors })
    const { job } = ended(last, { type: "failed", error: "e".repeat(9_999) }, now, 7)
    expect(job).toMatchObject({ state: "discarded", endedAt: now })
    expect(job.errors.length).toBe(keptFailures)
    expect(job.errors.at(-1)?.error.length).toBe(2_000)
    expect(job.errors[0]?.error).toBe("1")
  })

  it("always names the state and the token under which the job was held", () => {
    for (const update of [
      ended(running(), done, now, 0),
      ...heartbeats([running()], 3),
      ...released([running()], now),
    ]) {
      expect([update.from, update.fence]).toEqual(["executing", 1])
    }
  })
})

describe("an orphan", () => {
  const nothing = { epochs: new Set([4]), jobs: new Set<Job>() }
  const orphan = (some: Partial<Job>) => rescues([running(some)], () => false, self, nothing, now).length === 1

  it("is a job of this node that it does not run, of an owner that is over, or with a lapsed lease", () => {
    expect(orphan({})).toBe(true)
    expect(orphan({ node: "there#4" })).toBe(true)
    expect(orphan({ node: "there#5" })).toBe(false)
    expect(orphan({ node: "there#5", leaseUntil: now })).toBe(true)
    expect(orphan({ node: "there#x" })).toBe(false)
    expect(orphan({ node: null })).toBe(true)
    expect(rescues([running()], () => true, self, nothing, now)).toEqual([])
  })

  it("is no job of another node that lives, unless its conversation is this node's by now", () => {
    const [older, newer] = [running({ node: "there#3" }), running({ node: "elsewhere#9" })]
    expect(rescues([older, newer], () => false, self, nothing, now)).toEqual([])
    const moved = { epochs: new Set<number>(), jobs: new Set([newer]) }
    expect(rescues([older, newer], () => false, self, moved, now).map(({ job }) => job.id)).toEqual([newer.id])
  })

  it("is looked for among the epochs of the others only, each asked for once", () => {
    const jobs = [
      running(),
      running({ node: "a#4" }),
      running({ node: "b#4" }),
      running({ node: "c#x" }),
      running({ node: null }),
    ]
    expect(epochsOf(foreignJobs(jobs, self))).toEqual([4])
  })

  it("goes back at once with its attempt counted and a new token, or is discarded at the last attempt", () => {
    const [again] = rescues([running()], () => false, self, nothing, now)
    expect(again?.job).toMatchObject({ state: "available", attempt: 1, fence: 2, runAt: now })
    expect(again?.job.errors[0]?.error).toBe("the worker died")
    const [over] = rescues([running({ attempt: 3 })], () => false, self, nothing, now)
    expect(over?.job).toMatchObject({ state: "discarded", fence: 2 })
  })
})

describe("a job that runs", () => {
  it("is held while its row is executing under the same token", () => {
    expect(isHeld(running(), running())).toBe(true)
    expect(isHeld(running(), running({ fence: 2 }))).toBe(false)
    expect(isHeld(running(), row({ fence: 1 }))).toBe(false)
    expect(isHeld(running(), null)).toBe(false)
  })
})

describe("any sequence of transitions", () => {
  it("is legal, never loses a token, and an ended job has no holder", () => {
    const step = fc.record({ which: fc.nat(8), n: fc.nat(20) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (steps, maxAttempts) => {
        let job = row({ maxAttempts })
        for (const { which, n } of steps) {
          const moves: Record<JobState, ReadonlyArray<Omit<Job, "seq">>> = {
            available: [
              claimed(job, { node: "a#1", now: n, leaseUntil: n + 9 }),
              cancelled(job, n, "x"),
              retried(job, n),
            ],
            executing: [
              completed(job, n),
              snoozed(job, n),
              failed(job, n, "e", n),
              rescued(job, n, "e", n),
              cancelled(job, n, "x"),
            ],
            completed: [retried(job, n)],
            discarded: [retried(job, n)],
            cancelled: [retried(job, n)],
          }
          const options = moves[job.state]
          const next = { ...(options[which % options.length] ?? job), seq: job.seq }
          expect(isLegalTransition(job.state, next.state)).toBe(true)
          expect(next.fence).toBeGreaterThanOrEqual(job.fence)
          if (next.state === "executing") expect(next.fence).toBeGreaterThan(job.fence)
          expect(next.attempt).toBeGreaterThanOrEqual(0)
          expect(next.attempt).toBeLessThanOrEqual(next.maxAttempts)
          expect(next.node === null).toBe(next.state !== "executing")
          expect(next.endedAt !== null).toBe(["completed", "discarded", "cancelled"].includes(next.state))
          job = next
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe("the times of a queue", () => {
  it("double from a second to an hour, shortened by up to half", () => {
    expect([1, 2, 3, 13, 20].map((attempt) => backoffMs(attempt, 0))).toEqual([
      1_000, 2_000, 4_000, 3_600_000, 3_600_000,
    ])
    expect(backoffMs(3, 0.999_999)).toBeGreaterThanOrEqual(2_000)
  })

  it("look when the next job is due, at the latest after the pause between looks", () => {
    expect(nextLook(null, now, 500)).toBe(500)
    expect(nextLook(now + 100, now, 500)).toBe(100)
    expect(nextLook(now - 100, now, 500)).toBe(0)
    expect(nextLook(now + 40 * 24 * 3_600_000, now, 500)).toBe(500)
  })
})

describe("the settings of queues", () => {
  it("are those of the engine with the caller's on top", () => {
    const { queues } = queueSettings({ compaction: { concurrency: 1 }, mine: { concurrency: 7 } })
    expect(queues).toEqual({
      generation_retry: { concurrency: 10 },
      compaction: { concurrency: 1 },
      verification: { concurrency: 1 },
      subagents: { concurrency: 5 },
      schedule_tick: { concurrency: 1 },
      schedule_runs: { concurrency: 5 },
      mine: { concurrency: 7 },
    })
  })

  it("name what makes no sense", () => {
    expect(() => queueSettings({ a: { concurrency: 0 } })).toThrow(
      "queues.a.concurrency: expected a whole number of at least 1, got 0",
    )
    expect(() => queueSettings({ "a b": { concurrency: 1 } })).toThrow('got "a b"')
  })
})
