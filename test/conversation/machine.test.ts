/**
 * The pure machine: what it does state by state, and that no order of events, failures and deaths breaks its records.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { heldUpIn } from "../../src/actors/conversation/settle.ts"
import { deriveContext } from "../../src/domain/context.ts"
import type { EffectAnswer } from "../../src/domain/effect.ts"
import { callOf, effectIdOf, settledAs } from "../../src/domain/effect.ts"
import { textOf } from "../../src/domain/message.ts"
import { Driver } from "./driver.ts"

const kinds = (driver: Driver) => driver.entries.map((entry) => entry.kind)
const status = (driver: Driver) => [...driver.submissions.values()].map((row) => row.status)
const resultTexts = (driver: Driver) =>
  driver.entries.flatMap((entry) => entry.model).flatMap((m) => (m.role === "tool" ? [textOf(m.content)] : []))

describe("a turn of the machine", () => {
  it("takes four commits from input to answer with one tool call", () => {
    const driver = new Driver()
    driver.submit("go")
    expect(driver.data.state).toBe("preparing_request")
    driver.finish(0)
    expect(driver.data.state).toBe("streaming_llm")
    driver.finish(0, ["safe"])
    expect(driver.data.state).toBe("executing_tools")
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.state).toBe("preparing_request")
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.state).toBe("idle")
    expect(driver.commits).toBe(4)
    expect(status(driver)).toEqual(["done"])
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.tool-result", "pi.assistant"])
  })

  it("commits parallel results as they come and shows them to the model in call order", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["a", "b", "c"])
    driver.finish(0)
    driver.finish(2)
    driver.finish(0)
    driver.finish(0)
    const context = deriveContext(driver.entries)
    const calls = context.flatMap((m) =>
      m.role === "assistant" ? m.content.flatMap((p) => (p.type === "toolCall" ? [p.id] : [])) : [],
    )
    const results = context.flatMap((m) => (m.role === "tool" ? [m.callId] : []))
    expect(results).toEqual(calls)
  })

  it("runs the calls of a batch one after another where one of them is sequential", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["a", "b-one", "c"])
    driver.finish(0)
    expect(driver.jobs).toHaveLength(1)
    expect([...driver.tasks.values()].map((task) => task.status)).toEqual(["waiting", "running", "pending", "pending"])
    driver.finish(0)
    expect(driver.jobs).toHaveLength(1)
    driver.drain()
    expect(status(driver)).toEqual(["done"])
  })

  it("answers a blocked call with its reason and asks the model again", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["refused"])
    driver.finish(0)
    expect(resultTexts(driver)).toEqual(["not allowed"])
    expect(driver.events.some((event) => event.type === "tool_blocked")).toBe(true)
    expect(driver.data.state).toBe("preparing_request")
  })
})

describe("a busy conversation", () => {
  it("queues a follow-up and starts it with the answer of the run before", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.submit("two")
    expect(status(driver)).toEqual(["placed", "queued"])
    driver.finish(0)
    driver.finish(0)
    expect(status(driver)).toEqual(["done", "placed"])
    driver.drain()
    expect(status(driver)).toEqual(["done", "done"])
  })

  it("lets a steer join after the current batch and answers both inputs with one answer", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0, ["a"])
    driver.finish(0)
    driver.submit("no, this way", "steer")
    driver.finish(0)
    expect(status(driver)).toEqual(["placed", "placed"])
    driver.drain()
    expect(status(driver)).toEqual(["done", "done"])
    const answers = [...driver.submissions.values()].map((row) => row.answer)
    expect(answers[0]).toBe(answers[1])
  })

  it("skips the calls of a sequential batch that have not started when a steer comes, and says so", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0, ["a-one", "b", "c"])
    driver.finish(0)
    driver.submit("stop that", "steer")
    driver.finish(0)
    expect(resultTexts(driver)[0]).toBe("result")
    expect(resultTexts(driver)[1]).toMatch(/skipped/)
    expect(resultTexts(driver)[2]).toMatch(/skipped/)
    expect(driver.data.state).toBe("preparing_request")
  })

  it("refuses an input with reject and writes nothing", () => {
    const driver = new Driver()
    driver.submit("one")
    const { commits } = driver
    driver.submit("two", "reject")
    expect(driver.answers.at(-1)).toMatchObject({ ok: false, value: { _tag: "Busy", what: "conversation" } })
    expect(driver.commits).toBe(commits)
    expect(driver.submissions.size).toBe(1)
  })

  it("leaves what is queued after a failed run until the next input, which goes behind it", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.submit("two")
    driver.finish(0)
    driver.failModel(0, false)
    expect(driver.data.state).toBe("idle")
    expect(status(driver)).toEqual(["unanswered", "queued"])
    driver.submit("three")
    expect(status(driver)).toEqual(["unanswered", "placed", "queued"])
    driver.drain()
    expect(status(driver)).toEqual(["unanswered", "done", "done"])
  })
})

describe("cancel", () => {
  const reach: ReadonlyArray<readonly [string, (driver: Driver) => void]> = [
    ["preparing_request", () => {}],
    ["streaming_llm", (driver) => driver.finish(0)],
    [
      "executing_tools",
      (driver) => {
        driver.finish(0)
        driver.finish(0, ["a"])
      },
    ],
    [
      "executing_tools",
      (driver) => {
        driver.finish(0)
        driver.finish(0, ["a", "b-one"])
        driver.finish(0)
      },
    ],
    [
      "sleeping_backoff",
      (driver) => {
        driver.finish(0)
        driver.failModel(0, true)
      },
    ],
  ]

  it.each(reach)("ends in idle from %s, with everything that was started ended first", (state, go) => {
    const driver = new Driver()
    driver.submit("one")
    driver.submit("two")
    go(driver)
    expect(driver.data.state).toBe(state)
    driver.cancel()
    while (driver.jobs.length > 0) {
      expect(driver.answers.filter((answer) => answer.kind === "cancel")).toHaveLength(0)
      driver.end(0, "stopped")
    }
    expect(driver.data.state).toBe("idle")
    expect(driver.answers.at(-1)).toEqual({ kind: "cancel", ok: true, value: { cancelled: true } })
    expect([...driver.submissions.values()].map((row) => row.reason)).toEqual(["aborted", "withdrawn"])
    expect([...driver.tasks.values()].every((task) => task.status === "terminal")).toBe(true)
    expect(driver.events.some((event) => event.type === "turn_cancelled")).toBe(true)
  })

  it("answers at once in idle", () => {
    const driver = new Driver()
    driver.cancel()
    expect(driver.answers).toEqual([{ kind: "cancel", ok: true, value: { cancelled: false } }])
  })

  it("keeps the partial answer as an aborted entry that no model sees again", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.streamText(0, "half an ans")
    driver.cancel()
    driver.end(0, "stopped")
    const last = driver.entries.at(-1)?.model[0]
    expect(last).toMatchObject({ role: "assistant", stopReason: "aborted", content: [{ text: "half an ans" }] })
    expect(deriveContext(driver.entries).map((message) => message.role)).toEqual(["user"])
  })

  it("still takes the answer of a job that ended just before", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.cancel()
    driver.finish(0)
    expect(driver.data.state).toBe("idle")
    expect(status(driver)).toEqual(["unanswered"])
  })
})

describe("a failing model", () => {
  it("is asked again after a stored backoff, and a success starts the count over", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.streamText(0, "begin")
    driver.failModel(0, true)
    expect(driver.data.state).toBe("sleeping_backoff")
    const task = [...driver.tasks.values()][0]
    expect(task).toMatchObject({ status: "sleeping", checkpoint: { phase: "request", attempt: 2 } })
    expect(driver.events.some((event) => event.type === "stream_reset")).toBe(true)
    driver.drain()
    expect(status(driver)).toEqual(["done"])
  })

  it("ends the run with the provider's own words when it does not recover", () => {
    const driver = new Driver({ maxRetries: 2 })
    driver.submit("one")
    for (let tries = 0; tries < 3; tries++) {
      driver.finish(0)
      driver.failModel(0, true)
      driver.fire("backoff")
    }
    expect(status(driver)).toEqual(["unanswered"])
    expect([...driver.submissions.values()][0]).toMatchObject({ reason: "model_error", detail: "test/model: no" })
  })

  it("sleeps on after a death until the same time", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.failModel(0, true)
    const at = driver.data.run?.retry?.at
    driver.kill()
    expect(driver.data.state).toBe("sleeping_backoff")
    expect(driver.data.run?.retry?.at).toBe(at)
    expect([...driver.tasks.values()][0]?.crashes).toBe(0)
  })
})

describe("after a death", () => {
  it("makes the request again and keeps what was flushed as an aborted entry", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.streamText(0, "partial")
    driver.fire("flush")
    driver.kill()
    expect(driver.data.state).toBe("preparing_request")
    expect(driver.entries.at(-1)?.model[0]).toMatchObject({ stopReason: "aborted", content: [{ text: "partial" }] })
    driver.drain()
    expect(status(driver)).toEqual(["done"])
  })

  it("runs a replay-safe call again and reports an unsafe one as interrupted with its output", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0, ["safe", "unsafe"])
    driver.finish(0)
    driver.output(1, "so far")
    driver.fire("flush")
    driver.kill()
    expect(driver.started.map((each) => each.replay)).toEqual(["safe", "unsafe", "safe"])
    expect(resultTexts(driver)).toEqual([expect.stringMatching(/interrupted[\s\S]*so far/)])
    driver.drain()
    expect(status(driver)).toEqual(["done"])
  })

  it("starts pending calls of a batch that never began", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0, ["unsafe-one", "unsafe"])
    driver.finish(0)
    driver.kill()
    expect(driver.started.map((each) => each.task)).toHaveLength(2)
    expect(new Set(driver.started.map((each) => each.task)).size).toBe(2)
    driver.drain()
    expect(status(driver)).toEqual(["done"])
  })

  it("parks a run whose request kills the process five times, and runs it again on retry", () => {
    const driver = new Driver()
    driver.submit("one")
    for (let death = 0; death < 5; death++) driver.kill()
    expect(driver.data).toMatchObject({ state: "idle", parked: { reason: expect.stringMatching(/restart_limit/) } })
    driver.submit("two")
    expect(status(driver)).toEqual(["placed", "queued"])
    driver.kill()
    const heldUp = [...driver.submissions.keys()].map((id) => heldUpIn(driver.data, id))
    expect(heldUp).toMatchObject([
      { status: "placed", reason: "parked", detail: expect.stringMatching(/^the run is parked \(restart_limit/) },
      { status: "queued", reason: "parked", detail: expect.stringMatching(/^the prompt waits behind a run/) },
    ])
    driver.retry()
    expect([...driver.submissions.keys()].map((id) => heldUpIn(driver.data, id))).toEqual([null, null])
    driver.drain()
    expect(status(driver)).toEqual(["done", "done"])
  })

  it("finishes a cancel that was accepted before", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0, ["unsafe"])
    driver.finish(0)
    driver.cancel()
    driver.kill()
    expect(driver.data.state).toBe("idle")
    expect(status(driver)).toEqual(["unanswered"])
    expect([...driver.tasks.values()].every((task) => task.status === "terminal")).toBe(true)
  })
})

describe("any order of events, failures and deaths", () => {
  const at = fc.nat(11)
  /** Some job that there is. */
  const some = (d: Driver, n: number): number => (d.jobs.length === 0 ? 0 : n % d.jobs.length)
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom("followUp", "steer", "reject").map((w) => (d: Driver) => d.submit("x", w as "steer")),
    },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.cancel()) },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.configure()) },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.retry()) },
    {
      weight: 12,
      arbitrary: fc
        .tuple(at, fc.array(fc.constantFrom("safe", "unsafe", "unsafe-one", "check", "refused"), { maxLength: 3 }))
        .map(
          ([n, calls]) =>
            (d: Driver) =>
              d.finish(some(d, n), calls),
        ),
    },
    { weight: 3, arbitrary: at.map((n) => (d: Driver) => d.streamText(some(d, n), "t")) },
    { weight: 2, arbitrary: at.map((n) => (d: Driver) => d.output(some(d, n), "o")) },
    {
      weight: 2,
      arbitrary: fc.tuple(at, fc.boolean()).map(
        ([n, t]) =>
          (d: Driver) =>
            d.failModel(some(d, n), t),
      ),
    },
    { weight: 1, arbitrary: at.map((n) => (d: Driver) => d.end(some(d, n), "crashed")) },
    { weight: 2, arbitrary: fc.constantFrom("backoff", "flush").map((t) => (d: Driver) => d.fire(t as "flush")) },
    { weight: 3, arbitrary: at.map((n) => (d: Driver) => d.happen(some(d, n))) },
    { weight: 1, arbitrary: at.map((n) => (d: Driver) => d.unknown(some(d, n))) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<EffectAnswer>("happened", "not-happened", "ignore").map((answer) => (d: Driver) => {
        const doubt = [...d.tasks.values()].find((task) => task.inDoubt)
        if (doubt !== undefined) d.settle(doubt, answer)
      }),
    },
    { weight: 2, arbitrary: fc.constant((d: Driver) => d.kill()) },
  )

  it("leaves no task open, no input without an end, and runs no unsafe call twice", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const driver = new Driver({ maxRetries: 3 })
        for (const each of steps) each(driver)
        driver.drain()
        if (driver.data.parked !== null) {
          driver.retry()
          driver.drain()
        }
        // A failed run leaves its queue to the next input; a few of them take everything up.
        for (let more = 0; driver.data.queue.length > 0 && more < 100; more++) {
          driver.submit("last")
          driver.drain()
        }
        expect(driver.data.state).toBe("idle")
        expect([...driver.tasks.values()].filter((task) => task.status !== "terminal")).toEqual([])
        expect(status(driver).filter((each) => each !== "done" && each !== "unanswered")).toEqual([])
        const unsafe = driver.started.filter((each) => each.replay === "unsafe" && !each.reconciles)
        expect(new Set(unsafe.map((each) => each.task)).size).toBe(unsafe.length)
        expect([...driver.world.values()].filter((times) => times > 1)).toEqual([])
        for (const task of driver.tasks.values()) {
          const call = callOf(task)
          if (call === null || !driver.world.has(effectIdOf(task, call)) || driver.broken.has(task.id)) continue
          // What happened outside is known here as done, or it is in doubt until somebody says so.
          expect(task.outcome?.status === "completed" || task.inDoubt || settledAs(task) !== null).toBe(true)
        }
        expect(driver.answers.filter((answer) => answer.kind === "cancel").every((answer) => answer.ok)).toBe(true)
        // What stays in memory is what a restart would find.
        const before = driver.data
        driver.kill()
        expect(driver.data.context.entries.slice().map((entry) => entry.id)).toEqual(
          before.context.entries.slice().map((entry) => entry.id),
        )
        expect(driver.data.state).toBe("idle")
      }),
      { numRuns: 2_000 },
    )
  })
})
