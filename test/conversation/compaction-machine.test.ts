/**
 * Compaction in the machine: when it starts, what waits for it, when it is placed, how it ends, and what a death leaves of it.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Policy } from "../../src/actors/conversation/machine/data.ts"
import { contextOf, contextState } from "../../src/domain/context.ts"
import { EntryKind } from "../../src/domain/entry.ts"
import { textOf, toolCallsOf } from "../../src/domain/message.ts"
import { repair, validityRules } from "../../src/domain/validity.ts"
import { Driver } from "./driver.ts"

const filler = "word ".repeat(160)

/** A conversation of a model with a small window; one input or answer is about 200 tokens. */
const small = (compaction: Policy["compaction"] = {}, window = 2_000): Driver => {
  const driver = new Driver({
    maxRetries: 2,
    compaction: { mode: "summary", reserveTokens: 800, backgroundTokens: 0, keepRecentTokens: 300, ...compaction },
  })
  driver.window = window
  driver.said = filler
  return driver
}

/** Answered turns without calls. */
const turns = (driver: Driver, count: number): void => {
  for (let n = 0; n < count; n++) {
    driver.submit(`input ${n}: ${filler}`)
    driver.drain()
  }
}

/** Up to the request that has to wait. */
const blocked = (driver: Driver): Driver => {
  turns(driver, 3)
  driver.submit(`the goal: ${filler}`)
  driver.finish(0)
  return driver
}

const entriesOf = (driver: Driver, kind: string) => driver.entries.filter((entry) => entry.kind === kind)
const compactions = (driver: Driver) => entriesOf(driver, EntryKind.compaction)
const tasksOf = (driver: Driver) => [...driver.tasks.values()].filter((task) => task.kind === "pi.compaction")
const statuses = (driver: Driver) => [...driver.submissions.values()].map((row) => row.status)
const ended = (driver: Driver) =>
  driver.events.flatMap((event) => (event.type === "compaction_completed" ? [event] : []))
const contextText = (driver: Driver): string =>
  contextOf(driver.data.context)
    .map((message) => (message.role === "system" ? "" : textOf(message.content)))
    .join("\n")

describe("a request above the limit", () => {
  it("waits for a compaction, then is made with the shorter context", () => {
    const driver = blocked(small())
    expect(driver.data.state).toBe("compacting")
    expect(driver.jobs.map((job) => job.type)).toEqual(["compaction"])
    expect(driver.tasks.get(driver.data.run?.generation.id as never)).toMatchObject({
      status: "waiting",
      waitingOn: { on: [tasksOf(driver)[0]?.id] },
    })
    driver.finish(0)
    expect(driver.data.state).toBe("preparing_request")
    expect(compactions(driver)).toHaveLength(1)
    expect(compactions(driver)[0]?.data).toMatchObject({ reason: "threshold", mode: "summary", method: "summary" })
    driver.drain()
    expect(statuses(driver)).toEqual(["done", "done", "done", "done"])
    expect(tasksOf(driver).map((task) => task.outcome?.status)).toEqual(["completed"])
  })

  it("fails without being sent when its compaction fails", () => {
    const driver = blocked(small())
    driver.failModel(0, false)
    expect(driver.data.state).toBe("idle")
    const last = [...driver.submissions.values()].at(-1)
    expect(last).toMatchObject({ status: "unanswered", reason: "model_error" })
    expect(last?.detail).toMatch(/^Compaction failed: test\/model: no/)
    expect(driver.jobs).toEqual([])
    expect(driver.data.compactionFailure).toMatchObject({ reason: "threshold" })
  })

  it("waits while a transient failure is slept off, at a time that is stored", () => {
    const driver = blocked(small())
    driver.failModel(0, true)
    expect(driver.data.state).toBe("compacting")
    expect(tasksOf(driver)[0]).toMatchObject({ status: "sleeping", wakeAt: expect.any(Number) })
    expect(driver.data.compactions[0]?.retry).toMatchObject({ attempt: 2 })
    driver.kill()
    expect(tasksOf(driver)[0]?.status).toBe("sleeping")
    driver.finish(0)
    expect(driver.data.state).toBe("compacting")
    driver.fire("compaction")
    driver.drain()
    expect(statuses(driver).at(-1)).toBe("done")
    expect(compactions(driver)).toHaveLength(1)
  })

  it("goes ahead where there is nothing to compact", () => {
    const driver = small({}, 200)
    driver.submit(filler)
    driver.finish(0)
    expect(driver.data.state).toBe("streaming_llm")
  })

  it("goes ahead where automatic compaction is off, and a manual one still works", () => {
    const driver = blocked(small({ enabled: false }))
    expect(driver.data.state).toBe("streaming_llm")
    driver.compact()
    expect(driver.data.compactions).toHaveLength(1)
  })

  it("is cancelled with its compaction; the cancel answers when the job has ended", () => {
    const driver = blocked(small())
    driver.cancel()
    expect(driver.answers.filter((answer) => answer.kind === "cancel")).toEqual([])
    driver.end(0, "stopped")
    expect(driver.answers.find((answer) => answer.kind === "cancel")?.value).toEqual({ cancelled: true })
    expect(driver.data.state).toBe("idle")
    expect(tasksOf(driver)[0]?.outcome?.status).toBe("aborted")
    expect(statuses(driver).at(-1)).toBe("unanswered")
    expect(compactions(driver)).toEqual([])
  })

  it("waits for a compaction that is already being made beside the work", () => {
    const driver = small()
    turns(driver, 3)
    driver.compact()
    driver.submit(filler)
    driver.finish(driver.jobs.findIndex((job) => job.type === "prepare"))
    expect(driver.data.state).toBe("compacting")
    expect(tasksOf(driver)).toHaveLength(1)
    driver.drain()
    expect(statuses(driver).at(-1)).toBe("done")
  })

  it("takes steers, questions and further compactions meanwhile", () => {
    const driver = blocked(small())
    driver.submit("steered", "steer")
    driver.configure()
    driver.compact("the names")
    expect(driver.data.state).toBe("compacting")
    expect(driver.answers.filter((answer) => answer.kind === "configure")).toHaveLength(1)
    driver.drain()
    expect(statuses(driver)).not.toContain("queued")
  })
})

describe("a compaction beside the work", () => {
  const beside = () => small({ backgroundTokens: 500 }, 2_400)

  it("starts when the context comes near to the limit, and is placed at once when idle", () => {
    const driver = beside()
    turns(driver, 4)
    expect(ended(driver)).toMatchObject([{ reason: "background", status: "completed" }])
    expect(tasksOf(driver)[0]?.background).toBe(true)
  })

  it("is placed at the next turn boundary while a batch runs, never between a call and its result", () => {
    const driver = small()
    turns(driver, 2)
    driver.submit("work")
    driver.finish(0)
    driver.finish(0, ["safe", "unsafe"])
    driver.finish(0)
    expect(driver.data.state).toBe("executing_tools")
    driver.compact()
    driver.finish(driver.jobs.findIndex((job) => job.type === "compaction"))
    expect(compactions(driver)).toEqual([])
    expect(tasksOf(driver)[0]?.checkpoint).toMatchObject({ phase: "place" })
    driver.finish(0)
    expect(compactions(driver)).toEqual([])
    driver.finish(0)
    expect(compactions(driver)).toHaveLength(1)
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    expect(statuses(driver)).toEqual(["done", "done", "done"])
  })

  it("goes on when the run is cancelled", () => {
    const driver = beside()
    turns(driver, 3)
    driver.submit(filler)
    driver.finish(0)
    expect(driver.data.compactions).toMatchObject([{ input: { reason: "background" } }])
    driver.cancel()
    driver.end(
      driver.jobs.findIndex((job) => job.type === "model"),
      "stopped",
    )
    expect(driver.answers.some((answer) => answer.kind === "cancel" && answer.ok)).toBe(true)
    driver.drain()
    expect(ended(driver)).toMatchObject([{ status: "completed" }])
  })

  it("that failed is not tried again until one that cannot wait has succeeded", () => {
    const driver = beside()
    turns(driver, 3)
    driver.submit(filler)
    driver.finish(0)
    driver.failModel(
      driver.jobs.findIndex((job) => job.type === "compaction"),
      false,
    )
    expect(driver.data.compactionFailure).toMatchObject({ reason: "background" })
    driver.drain()
    expect(tasksOf(driver)).toHaveLength(1)
    driver.compact()
    driver.drain()
    expect(driver.data.compactionFailure).toBeNull()
  })
})

describe("a manual compaction", () => {
  it("of an idle conversation is placed at once, with its instructions in the intent and the result for who asked", () => {
    const driver = small()
    turns(driver, 2)
    driver.compact("Keep the failing test names")
    expect(driver.data.state).toBe("idle")
    expect(tasksOf(driver)[0]?.input).toMatchObject({ instructions: "Keep the failing test names", reason: "manual" })
    driver.finish(0)
    expect(driver.answers.at(-1)).toMatchObject({
      kind: "compact",
      ok: true,
      value: { status: "completed", entry_id: compactions(driver)[0]?.id },
    })
  })

  it("with nothing to compact says so and leaves no task", () => {
    const driver = small()
    driver.compact()
    expect(driver.answers.at(-1)).toMatchObject({ ok: true, value: { status: "nothing" } })
    expect(tasksOf(driver)).toEqual([])
  })

  it("joins the one with the same instructions that is being made", () => {
    const driver = small()
    turns(driver, 2)
    driver.compact()
    driver.compact()
    expect(tasksOf(driver)).toHaveLength(1)
    driver.finish(0)
    expect(driver.answers.filter((answer) => answer.kind === "compact" && answer.ok)).toHaveLength(2)
  })

  it("is cancelled while the conversation is idle", () => {
    const driver = small()
    turns(driver, 2)
    driver.compact()
    driver.cancel()
    expect(driver.answers.some((answer) => answer.kind === "cancel")).toBe(false)
    driver.end(0, "stopped")
    expect(driver.answers.slice(-2)).toMatchObject([
      { kind: "compact", value: { status: "cancelled" } },
      { kind: "cancel", value: { cancelled: true } },
    ])
  })

  it("that others overtook is stale and placed nowhere", () => {
    const driver = small()
    turns(driver, 3)
    driver.compact("one")
    driver.compact("two")
    driver.finish(1)
    driver.finish(0)
    expect(compactions(driver)).toHaveLength(1)
    expect(ended(driver).map((event) => event.status)).toEqual(["completed", "stale"])
    expect(tasksOf(driver)[0]?.outcome).toMatchObject({ status: "completed", result: { status: "stale" } })
  })
})

describe("a context that the service finds too long", () => {
  const overflowing = (): Driver => {
    const driver = small({}, 100_000)
    turns(driver, 3)
    driver.submit(`the goal: ${filler}`)
    driver.finish(0)
    driver.overflow(0)
    return driver
  }

  it("is compacted and sent once more", () => {
    const driver = overflowing()
    expect(driver.data.state).toBe("compacting")
    driver.drain()
    expect(statuses(driver).at(-1)).toBe("done")
    expect(compactions(driver)[0]?.data).toMatchObject({ reason: "overflow" })
  })

  it("fails with the service's own error the second time", () => {
    const driver = overflowing()
    driver.finish(0)
    driver.finish(0)
    driver.overflow(0)
    expect(driver.data.state).toBe("idle")
    expect([...driver.submissions.values()].at(-1)?.detail).toMatch(/the context is too long/)
  })

  it("is compacted once only, also when the process died in between", () => {
    const driver = overflowing()
    driver.kill()
    driver.drain()
    expect(compactions(driver)).toHaveLength(1)
    const again = overflowing()
    again.finish(0)
    again.kill()
    again.finish(0)
    again.overflow(0)
    expect([...again.submissions.values()].at(-1)?.status).toBe("unanswered")
  })
})

describe("what survives", () => {
  it("is the goal word for word and the todo list, though the summary is garbage, however often it is compacted", () => {
    const driver = small({}, 1_600)
    driver.submit("the goal: repair the login test, never touch auth.ts")
    for (let turn = 0; turn < 12; turn++) {
      while (driver.jobs.some((job) => job.type !== "model")) driver.finish(0)
      driver.finish(0, ["safe"])
    }
    expect(compactions(driver).length).toBeGreaterThan(1)
    const goal = "the goal: repair the login test, never touch auth.ts"
    expect(contextText(driver).split(goal)).toHaveLength(2)
    expect(contextText(driver)).toContain("- [pending] go on")
    expect(contextText(driver)).toContain("%%% garbage")
  })
})

describe("a death", () => {
  it("before the summary is there makes it anew; the run that waits goes on with it", () => {
    const driver = blocked(small())
    driver.kill()
    expect(tasksOf(driver)).toMatchObject([{ status: "running", crashes: 1 }])
    driver.drain()
    expect(compactions(driver)).toHaveLength(1)
    expect(statuses(driver).at(-1)).toBe("done")
  })

  it("while a summary waits for its boundary asks no model again", () => {
    const driver = small()
    turns(driver, 2)
    driver.submit("work")
    driver.finish(0)
    driver.finish(0, ["unsafe"])
    driver.finish(0)
    driver.compact()
    driver.finish(driver.jobs.findIndex((job) => job.type === "compaction"))
    driver.kill()
    expect(driver.jobs.filter((job) => job.type === "compaction")).toEqual([])
    driver.drain()
    expect(compactions(driver)).toHaveLength(1)
  })

  it("after the commit repeats nothing", () => {
    const driver = blocked(small())
    driver.finish(0)
    driver.kill()
    expect(driver.jobs.map((job) => job.type)).toEqual(["prepare"])
    driver.drain()
    expect(compactions(driver)).toHaveLength(1)
    expect(statuses(driver).at(-1)).toBe("done")
  })

  it("after a cancel was accepted finishes the cancel", () => {
    const driver = blocked(small())
    driver.cancel()
    driver.kill()
    expect(driver.data).toMatchObject({ state: "idle", compactions: [] })
    expect([...driver.tasks.values()].every((task) => task.status === "terminal")).toBe(true)
  })

  it("five times in a row parks the run that waits, and a retry compacts anew", () => {
    const driver = blocked(small())
    for (let death = 0; death < 5; death++) driver.kill()
    expect(driver.data).toMatchObject({
      state: "idle",
      compactions: [],
      parked: { reason: expect.stringMatching(/restart_limit/) },
      compactionFailure: { error: expect.stringMatching(/^the process died 5 times/) },
    })
    driver.retry()
    driver.drain()
    expect(statuses(driver).at(-1)).toBe("done")
    expect(compactions(driver)).toHaveLength(1)
  })

  it("with another context than before ends a compaction as stale", () => {
    const driver = small()
    turns(driver, 3)
    driver.compact("one")
    driver.compact("two")
    driver.finish(1)
    driver.kill()
    driver.drain()
    expect(tasksOf(driver).map((task) => task.outcome?.status)).toEqual(["completed", "completed"])
    expect(compactions(driver)).toHaveLength(1)
  })
})

describe("any order of events, failures and deaths, with compactions", () => {
  const at = fc.nat(11)
  const some = (d: Driver, n: number): number => (d.jobs.length === 0 ? 0 : n % d.jobs.length)
  const calls = fc.array(fc.constantFrom("safe", "unsafe", "unsafe-one"), { maxLength: 2 })
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .constantFrom<"followUp" | "steer">("followUp", "steer")
        .map((when) => (d: Driver) => d.submit(`${when} ${filler}`, when)),
    },
    {
      weight: 14,
      arbitrary: fc.tuple(at, calls).map(
        ([n, names]) =>
          (d: Driver) =>
            d.finish(some(d, n), names),
      ),
    },
    { weight: 3, arbitrary: fc.constantFrom(null, "a", "b").map((wish) => (d: Driver) => d.compact(wish)) },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.cancel()) },
    { weight: 2, arbitrary: at.map((n) => (d: Driver) => d.overflow(some(d, n))) },
    {
      weight: 2,
      arbitrary: fc.tuple(at, fc.boolean()).map(
        ([n, transient]) =>
          (d: Driver) =>
            d.failModel(some(d, n), transient),
      ),
    },
    { weight: 1, arbitrary: at.map((n) => (d: Driver) => d.end(some(d, n), "crashed")) },
    {
      weight: 2,
      arbitrary: fc
        .constantFrom<"backoff" | "flush" | "compaction">("backoff", "flush", "compaction")
        .map((timer) => (d: Driver) => d.fire(timer)),
    },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.retry()) },
    { weight: 2, arbitrary: fc.constant((d: Driver) => d.kill()) },
  )

  it("leaves no task open, answers everybody, and every context is valid with its calls beside their results", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 50 }),
        fc.constantFrom("summary", "truncate", "tool_results", "hybrid"),
        fc.constantFrom(0, 400),
        (steps, mode, backgroundTokens) => {
          const driver = small({ mode: mode as "hybrid", backgroundTokens })
          for (const each of steps) {
            const heads = compactions(driver).length
            each(driver)
            // Never between a call and its result: what was placed leaves every call of the batch in the context.
            if (compactions(driver).length === heads) continue
            const messages = contextOf(driver.data.context)
            const { repairs } = repair(messages, validityRules.strict)
            expect(repairs).toEqual([])
            const known = messages.flatMap((m) => (m.role === "assistant" ? toolCallsOf(m).map(({ id }) => id) : []))
            for (const { call, status } of driver.data.run?.calls ?? []) {
              if (status !== "done") expect(known).toContain(call.id)
            }
          }
          driver.drain()
          for (let more = 0; (driver.data.parked !== null || driver.data.queue.length > 0) && more < 100; more++) {
            if (driver.data.parked !== null) driver.retry()
            else driver.submit("last")
            driver.drain()
          }
          expect(driver.data).toMatchObject({ state: "idle", compactions: [], cancels: [] })
          expect([...driver.tasks.values()].filter((task) => task.status !== "terminal")).toEqual([])
          expect(statuses(driver).filter((each) => each !== "done" && each !== "unanswered")).toEqual([])
          const unsafe = driver.started.filter((each) => each.replay === "unsafe")
          expect(new Set(unsafe.map((each) => each.task)).size).toBe(unsafe.length)
          // One entry for each task that says it placed one, and what a restart derives is what was in memory.
          const placed = tasksOf(driver).flatMap(({ outcome }) =>
            outcome?.status === "completed" && JSON.stringify(outcome.result).includes('"completed"') ? [outcome] : [],
          )
          expect(compactions(driver)).toHaveLength(placed.length)
          expect(contextOf(contextState(driver.entries))).toEqual(contextOf(driver.data.context))
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
