/**
 * The check of the stress run and the crash test: a sound database passes, and each kind of damage is named. Without this a check that sees
 * nothing would look like a program without faults.
 */
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { Entry } from "../../src/domain/entry.ts"
import type { Message } from "../../src/domain/message.ts"
import { Submission } from "../../src/domain/submission.ts"
import { Task } from "../../src/domain/task.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { contextFaults } from "../../stress/context-faults.ts"
import type { Effects, World } from "../../stress/database.ts"
import { faultsAtRest } from "../../stress/invariants.ts"
import { Observations } from "../../stress/observations.ts"
import { makePlan } from "../../stress/plan.ts"
import { brokenPromises } from "../../stress/promises.ts"
import { Watcher } from "../../stress/watcher.ts"

const plan = makePlan({ conversations: 1, seconds: 1, seed: 7, kills: 2 }, "/tmp/effects.log")
const job = plan.jobs[0]?.[0]
if (job === undefined) throw new Error("the plan has no job")

const text = (value: string) => [{ type: "text" as const, text: value }]
const user: Message = { role: "user", content: text(job.prompt) }
const call: Message = {
  role: "assistant",
  content: [{ type: "toolCall", id: "call_0", name: "bash", arguments: { command: "echo 'start t.0' >> log" } }],
  model: "script/stress",
  stopReason: "tool_calls",
}
const result: Message = { role: "tool", callId: "call_0", toolName: "bash", content: text("done t.0"), isError: false }
const answer: Message = { role: "assistant", content: text(job.answer), model: "script/stress", stopReason: "stop" }

const entry = (id: number, kind: string, message: Message, seq = id) =>
  Schema.decodeUnknownSync(Entry)({
    ...{
      id,
      conversation: 1,
      kind,
      model: [message],
      data: null,
      head: null,
      edits: [],
      task: null,
      createdAt: 0,
      seq,
    },
  })

const task = (over: Partial<Record<keyof Task, unknown>> = {}) =>
  Schema.decodeUnknownSync(Task)({
    ...{ id: 1, conversation: 1, kind: "pi.generation", version: 1, input: null, status: "terminal", checkpoint: null },
    ...{ owner: null, background: false, abortRequested: false, crashes: 0, parked: null, node: null, fence: 1 },
    ...{
      leaseUntil: null,
      wakeAt: null,
      waitingOn: null,
      requestId: null,
      inDoubt: false,
      outcome: { status: "completed", result: null },
      createdAt: 0,
    },
    ...{ startedAt: 0, endedAt: 0, seq: 4 },
    ...over,
  })

const submission = (over: Partial<Record<keyof Submission, unknown>> = {}) =>
  Schema.decodeUnknownSync(Submission)({
    ...{ id: 1, conversation: 1, kind: "input", content: { content: text(job.prompt) }, whenBusy: "followUp" },
    ...{ status: "done", reason: null, detail: null, requestId: job.key, entry: 1, answer: 4, createdAt: 0, seq: 4 },
    ...over,
  })

const sound: World = {
  damage: [],
  conversations: [1],
  entries: [
    entry(1, "pi.user", user),
    entry(2, "pi.assistant", call),
    entry(3, "pi.tool-result", result),
    entry(4, "pi.assistant", answer),
  ],
  tasks: [task()],
  submissions: [submission()],
  seq: 4,
}

const effects = (starts: number, ends: number, token = "t.0"): Effects => new Map([[token, { starts, ends }]])

const told = (): Observations => {
  const seen = new Observations()
  const receipt = { submission_id: 1, conversation_id: 1, status: "done", reason: null, detail: null }
  seen.acknowledge(job, "followUp", receipt as never)
  seen.settle(job, {
    ...receipt,
    entry_id: 4,
    text: job.answer,
    model: "script/stress",
    usage: noUsage,
    turns: 2,
  } as never)
  return seen
}

const without = (id: number): World => ({ ...sound, entries: sound.entries.filter((one) => one.id !== id) })

describe("the check of a database at rest", () => {
  it("passes a sound one", () => {
    expect(faultsAtRest(sound, effects(1, 1), contextFaults)).toEqual([])
  })

  const damaged: ReadonlyArray<readonly [string, World, Effects, string]> = [
    ["damage that SQLite finds", { ...sound, damage: ["row 3 missing"] }, effects(1, 1), "I1"],
    [
      "a later entry with an earlier commit",
      { ...sound, entries: [...sound.entries.slice(0, 3), entry(4, "pi.assistant", answer, 2)] },
      effects(1, 1),
      "I2",
    ],
    ["a row above the commit counter", { ...sound, seq: 3 }, effects(1, 1), "I2"],
    ["an open task", { ...sound, tasks: [task({ status: "running", outcome: null })] }, effects(1, 1), "I3"],
    ["a waiting submission", { ...sound, submissions: [submission({ status: "placed" })] }, effects(1, 1), "I3"],
    ["a task that ended without an outcome", { ...sound, tasks: [task({ outcome: null })] }, effects(1, 1), "I4"],
    ["an answer that is not there", without(4), effects(1, 1), "I4"],
    [
      "an unanswered submission without a reason",
      { ...sound, submissions: [submission({ status: "unanswered" })] },
      effects(1, 1),
      "I4",
    ],
    [
      "a user entry that nobody sent",
      { ...sound, entries: [...sound.entries, entry(5, "pi.user", user, 4)] },
      effects(1, 1),
      "I5",
    ],
    [
      "an entry that is not what was sent",
      { ...sound, submissions: [submission({ content: { content: text("other") } })] },
      effects(1, 1),
      "I5",
    ],
    ["a call without a result", without(3), effects(1, 1), "I6"],
    [
      "a result twice",
      { ...sound, entries: [...sound.entries, entry(5, "pi.tool-result", result, 4)] },
      effects(1, 1),
      "I6",
    ],
    [
      "a lone surrogate",
      {
        ...sound,
        entries: [...sound.entries.slice(0, 3), entry(4, "pi.assistant", { ...answer, content: text("\ud800") })],
      },
      effects(1, 1),
      "I7",
    ],
    ["an unsafe call that ran twice", sound, effects(2, 2), "I8"],
    ["an unsafe call without an intent", sound, new Map([...effects(1, 1), ...effects(1, 1, "x.9")]), "I8"],
    ["a call that is reported as done but did not end", sound, effects(1, 0), "I8"],
  ]
  it.each(damaged)("names %s", (_, world, traces, rule) => {
    const faults = faultsAtRest(world, traces, contextFaults)
    expect(faults.map((fault) => fault.split(" ")[0])).toContain(rule)
  })
})

describe("the check of promises", () => {
  it("passes what was kept", () => {
    expect(brokenPromises(sound, told(), plan)).toEqual([])
  })

  const broken: ReadonlyArray<readonly [string, World, (seen: Observations) => void, string]> = [
    ["an acknowledged submission that is gone", { ...sound, submissions: [] }, () => {}, "P1"],
    [
      "an end that differs from what was told",
      { ...sound, submissions: [submission({ status: "unanswered", reason: "aborted" })] },
      () => {},
      "P1",
    ],
    ["a waiter who was told nothing", sound, (seen) => seen.settled.clear(), "P1"],
    [
      "a request that was admitted twice",
      { ...sound, submissions: [submission(), submission({ id: 2 })] },
      () => {},
      "P2",
    ],
    [
      "a request that nobody sent",
      { ...sound, submissions: [submission(), submission({ id: 2, requestId: "x" })] },
      () => {},
      "P2",
    ],
    [
      "a refused request that was admitted",
      sound,
      (seen) => {
        seen.acknowledged.clear()
        seen.refused.add(job.key)
      },
      "P2",
    ],
    [
      "a wrong answer",
      {
        ...sound,
        entries: [...sound.entries.slice(0, 3), entry(4, "pi.assistant", { ...answer, content: text("wrong") })],
      },
      () => {},
      "P3",
    ],
    [
      "an unanswered submission that nobody cancelled",
      { ...sound, submissions: [submission({ status: "unanswered", reason: "aborted" })] },
      () => {},
      "P3",
    ],
    [
      "a shown entry that is gone",
      without(3),
      (seen) => seen.entries.set(3, { conversation: 1, content: text("done t.0") }),
      "P4",
    ],
    [
      "a shown entry with other content",
      sound,
      (seen) => seen.entries.set(4, { conversation: 1, content: text("other") }),
      "P4",
    ],
  ]
  it.each(broken)("names %s", (_, world, change, rule) => {
    const seen = told()
    change(seen)
    expect(brokenPromises(world, seen, plan).map((fault) => fault.split(" ")[0])).toContain(rule)
  })

  it("names a request id that was acknowledged as two submissions, and an end that changed", () => {
    const seen = told()
    seen.acknowledge(job, "steer", {
      submission_id: 2,
      conversation_id: 1,
      status: "queued",
      reason: null,
      detail: null,
    } as never)
    seen.settle(job, { status: "unanswered", text: null } as never)
    expect(seen.faults).toHaveLength(2)
  })
})

describe("the watcher", () => {
  const head = { v: 1, conversation_id: 1, turn_id: null, timestamp_ms: 0 }
  const events = (...bodies: ReadonlyArray<object>) =>
    bodies.map((body, at) => ({ ...head, seq_no: at + 1, ...body }) as never)
  const completed = {
    type: "message_completed",
    entry_id: 4,
    role: "assistant",
    content: text("hello"),
    stop_reason: "stop",
  }

  it("accepts a stream that says what is committed", () => {
    const seen = new Observations()
    const stream = events(
      { type: "turn_started" },
      { type: "text_delta", text: "hel" },
      { type: "text_delta", text: "lo" },
      completed,
    )
    new Watcher(1, seen).accept(stream, false)
    expect(seen.faults).toEqual([])
    expect(seen.entries.get(4)?.content).toEqual(text("hello"))
  })

  it("names a hole in the numbers and text that was streamed but not committed", () => {
    const seen = new Observations()
    const stream = events(
      { type: "turn_started" },
      { type: "text_delta", text: "hel", seq_no: 5 },
      { ...completed, seq_no: 6 },
    )
    new Watcher(1, seen).accept(stream, false)
    expect(seen.faults).toHaveLength(2)
  })
})

describe("the plan", () => {
  it("is the same for the same seed and another one for another seed", () => {
    const options = { conversations: 3, seconds: 2, seed: 42, kills: 4 }
    expect(makePlan(options, "log")).toEqual(makePlan(options, "log"))
    expect(makePlan({ ...options, seed: 43 }, "log")).not.toEqual(makePlan(options, "log"))
  })

  it("kills within the time of the load and answers every prompt by a rule of its own", () => {
    const { kills, jobs, script } = makePlan({ conversations: 2, seconds: 5, seed: 1, kills: 9 }, "log")
    expect(kills).toHaveLength(9)
    for (const { at } of kills) expect(at).toBeLessThanOrEqual(5_000)
    for (const { prompt } of jobs.flat()) {
      expect(script.rules.filter(({ match }) => new RegExp(match, "s").test(prompt))).toHaveLength(1)
    }
  })
})
