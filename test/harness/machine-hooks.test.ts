/**
 * Where the machine waits for plugins: no order of events, cancels and deaths loses what a hook has to do, runs a command of an input twice, or
 * leaves an input without an end.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { textOf } from "../../src/domain/message.ts"
import { TaskKind } from "../../src/domain/task.ts"
import type { HookName } from "../../src/harness/plugin.ts"
import { Died, Driver } from "../conversation/driver.ts"

const kinds = (driver: Driver) => driver.entries.map((entry) => entry.kind)
const asked = (driver: Driver) =>
  driver.entries.flatMap((entry) => entry.model.flatMap((one) => (one.role === "user" ? [textOf(one.content)] : [])))
const jobs = (driver: Driver) => driver.jobs.map(({ type }) => type)

describe("afterTools", () => {
  it("comes between the last result and the next request, and again where the process died meanwhile", () => {
    const driver = new Driver({}, ["afterTools"])
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["safe"])
    driver.finish(0)
    driver.finish(0)
    expect(jobs(driver)).toEqual(["hook"])
    expect(driver.data.state).toBe("executing_tools")
    driver.kill()
    expect(jobs(driver)).toEqual(["hook"])
    const hook = driver.jobs[0]
    expect(hook?.type === "hook" && hook.hook.type === "afterTools" ? hook.hook.calls : []).toMatchObject([
      { name: "safe", isError: false },
    ])
    driver.drain()
    expect(driver.data.state).toBe("idle")
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.tool-result", "pi.assistant"])
  })

  it("does not hold up a cancel", () => {
    const driver = new Driver({}, ["afterTools"])
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["safe"])
    driver.finish(0)
    driver.finish(0)
    driver.cancel()
    driver.drain()
    expect(driver.data.state).toBe("idle")
  })
})

describe("onYield", () => {
  it("has the run go on with a user message of its own kind, at most ten times", () => {
    const driver = new Driver({}, ["onYield"])
    driver.continues = 100
    driver.submit("go")
    driver.drain()
    expect(kinds(driver).filter((kind) => kind === "pi.continue")).toHaveLength(10)
    expect([...driver.submissions.values()].map((row) => row.status)).toEqual(["done"])
    expect(driver.data.state).toBe("idle")
  })

  it("asks again after a death, and asks the model nothing for it", () => {
    const driver = new Driver({}, ["onYield"])
    driver.submit("go")
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.state).toBe("settling_run")
    driver.kill()
    expect(jobs(driver)).toEqual(["hook"])
    driver.drain()
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant"])
    expect([...driver.submissions.values()].map((row) => row.status)).toEqual(["done"])
  })

  it("that takes the process along every time is not asked for ever", () => {
    const driver = new Driver({}, ["onYield"])
    driver.submit("go")
    driver.finish(0)
    driver.finish(0)
    for (let deaths = 0; deaths < 10; deaths++) driver.kill()
    driver.drain()
    expect([...driver.submissions.values()].map((row) => row.status)).toEqual(["done"])
  })

  it("lets what was queued go first in the next run, not in this one", () => {
    const driver = new Driver({}, ["onYield"])
    driver.continues = 1
    driver.submit("first")
    driver.submit("second")
    driver.drain()
    expect(asked(driver)).toEqual(["first", "go on", "second"])
  })
})

describe("afterRun", () => {
  it("runs when a run has ended, again after a death, and the conversation rests afterwards", () => {
    const driver = new Driver({}, ["afterRun"])
    driver.submit("go")
    driver.finish(0)
    driver.finish(0)
    expect([...driver.submissions.values()].map((row) => row.status)).toEqual(["done"])
    expect(driver.data.state).toBe("settling_run")
    driver.kill()
    expect(jobs(driver)).toEqual(["afterRun"])
    expect(driver.data.state).toBe("settling_run")
    driver.drain()
    expect(driver.data.state).toBe("idle")
    expect(driver.afterRuns).toHaveLength(1)
  })

  it("answers a cancel when it is done", () => {
    const driver = new Driver({}, ["afterRun"])
    driver.submit("go")
    driver.cancel()
    driver.end(0, "stopped")
    expect(driver.answers.filter(({ kind }) => kind === "cancel")).toHaveLength(0)
    driver.drain()
    expect(driver.answers.filter(({ kind }) => kind === "cancel")).toHaveLength(1)
    expect(driver.afterRuns).toHaveLength(1)
  })

  it("that breaks the process every time is given up", () => {
    const driver = new Driver({}, ["afterRun"])
    driver.submit("go")
    driver.finish(0)
    driver.finish(0)
    for (let deaths = 0; deaths < 6; deaths++) driver.kill()
    expect(driver.jobs).toEqual([])
    expect(driver.data.state).toBe("idle")
  })
})

describe("onInput", () => {
  it("reads an input before it is placed, and reads it again after a death", () => {
    const driver = new Driver({}, ["onInput"])
    driver.submit("go")
    expect(driver.data.state).toBe("idle")
    expect(driver.entries).toEqual([])
    driver.kill()
    driver.drain()
    expect(asked(driver)).toEqual(["as read"])
    expect([...driver.submissions.values()].map((row) => row.status)).toEqual(["done"])
  })

  it("runs commands once, and says so of one that was cut off", () => {
    const driver = new Driver({}, ["onInput"])
    driver.commands = ["date", "refused"]
    driver.submit("go")
    driver.finish(0)
    expect(driver.started).toHaveLength(1)
    driver.kill()
    expect(driver.started).toHaveLength(1)
    driver.drain()
    expect(driver.started).toHaveLength(1)
    expect(asked(driver)).toEqual(["as read"])
    expect(
      [...driver.tasks.values()].filter((task) => task.kind === TaskKind.tool).map((task) => task.inDoubt),
    ).toEqual([true])
  })

  it("places inputs in the order in which they came, whichever was read first", () => {
    const driver = new Driver({}, ["onInput"])
    driver.submit("one")
    driver.submit("two")
    expect(jobs(driver)).toEqual(["readInput", "readInput"])
    driver.finish(1)
    expect(driver.data.state).toBe("idle")
    driver.finish(0)
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    const placed = [...driver.submissions.values()].map((row) => row.entry ?? 0)
    expect(placed).toEqual([...placed].sort((a, b) => a - b))
  })

  it("takes an input as it was given where its job breaks", () => {
    const driver = new Driver({}, ["onInput"])
    driver.submit("as given")
    driver.end(0, "crashed")
    driver.drain()
    expect(asked(driver)).toEqual(["as given"])
  })

  it("forgets an input that was withdrawn meanwhile", () => {
    const driver = new Driver({}, ["onInput"])
    driver.submit("go")
    driver.cancel()
    driver.drain()
    expect(driver.entries).toEqual([])
    expect([...driver.submissions.values()].map((row) => row.status)).toEqual(["unanswered"])
  })
})

describe("any order of inputs, ends, cancels and deaths", () => {
  const everything: ReadonlyArray<HookName> = ["onInput", "afterTools", "onYield", "afterRun"]
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ op: fc.constant("submit" as const), whenBusy: fc.constantFrom("followUp", "steer") }),
    },
    {
      weight: 9,
      arbitrary: fc.record({
        op: fc.constant("finish" as const),
        at: fc.nat(3),
        calls: fc.subarray(["safe", "a", "refused"]),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("break" as const), at: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("cancel" as const) }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant("kill" as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant("die" as const),
        in: fc.nat(3),
        when: fc.constantFrom("before", "after"),
      }),
    },
  )

  it("ends every input, runs no command twice, and ends every run with its hooks", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(3), (steps, continues) => {
        const driver = new Driver({}, everything)
        driver.continues = continues
        driver.commands = ["date"]
        const survive = (act: () => void) => {
          try {
            act()
          } catch (error) {
            if (!(error instanceof Died)) throw error
            driver.dying = null
            driver.kill()
          }
        }
        for (const one of steps) {
          survive(() => {
            if (one.op === "submit") driver.submit("go", one.whenBusy as "followUp" | "steer")
            else if (one.op === "finish") driver.finish(one.at % Math.max(1, driver.jobs.length), one.calls)
            else if (one.op === "break") driver.end(one.at % Math.max(1, driver.jobs.length), "crashed")
            else if (one.op === "cancel") driver.cancel()
            else if (one.op === "kill") driver.kill()
            else driver.dying = { commit: driver.commits + 1 + one.in, when: one.when as "before" | "after" }
          })
        }
        driver.dying = null
        survive(() => driver.drain())
        // What a failed run left behind goes with the next input.
        survive(() => driver.submit("last"))
        survive(() => driver.drain())
        expect(driver.data.state).toBe("idle")
        expect(driver.data.afterRuns ?? []).toEqual([])
        const starts = driver.started.filter(({ replay }) => replay === "unsafe").map(({ task }) => task)
        expect(new Set(starts).size).toBe(starts.length)
        const open = [...driver.tasks.values()].filter((task) => task.status !== "terminal")
        expect(open.filter((task) => task.parked === null)).toEqual([])
        if (driver.data.parked !== null) return
        for (const row of driver.submissions.values()) expect(["done", "unanswered"]).toContain(row.status)
      }),
      { numRuns: 400 },
    )
  })
})
