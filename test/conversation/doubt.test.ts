/**
 * Calls that were cut off: what the machine does with each, and that nothing is left unsaid about an effect that may have happened.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { deriveContext } from "../../src/domain/context.ts"
import { callOf, settledAs } from "../../src/domain/effect.ts"
import { textOf } from "../../src/domain/message.ts"
import type { Task } from "../../src/domain/task.ts"
import { Driver } from "./driver.ts"

/** A driver whose batch of `calls` runs. */
const running = (...calls: ReadonlyArray<string>): Driver => {
  const driver = new Driver()
  driver.submit("go")
  driver.finish(0)
  driver.finish(0, calls)
  driver.finish(0)
  return driver
}

const callTasks = (driver: Driver): ReadonlyArray<Task> =>
  [...driver.tasks.values()].filter((task) => callOf(task) !== null)
const only = (driver: Driver): Task => {
  const [task] = callTasks(driver)
  if (task === undefined) throw new Error("no call")
  return task
}
const results = (driver: Driver) =>
  driver.entries.flatMap((entry) => entry.model).flatMap((m) => (m.role === "tool" ? [textOf(m.content)] : []))
const statuses = (driver: Driver) => [...driver.submissions.values()].map((row) => row.status)

describe("the effect id of a call", () => {
  it("is a UUID of its own, in the row that is committed before the call runs", () => {
    const driver = running("unsafe", "unsafe")
    const ids = callTasks(driver).map((task) => callOf(task)?.effect)
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const given = driver.jobs.flatMap((job) => (job.type === "tool" ? [job.slot.effect] : []))
    expect(given).toEqual(ids)
  })

  it("stays the same when the call runs again", () => {
    const driver = running("check")
    const effect = callOf(only(driver))?.effect
    driver.kill()
    driver.finish(0)
    const [job] = driver.jobs
    expect(job?.type === "tool" ? job.slot.effect : null).toBe(effect)
  })
})

describe("an unsafe call that was running when the process died", () => {
  it("without a way to find out is an error result, and in doubt", () => {
    const driver = running("unsafe")
    driver.happen(0)
    driver.kill()
    expect(results(driver)).toEqual([expect.stringMatching(/may or may not have taken effect/)])
    expect(only(driver)).toMatchObject({ status: "terminal", inDoubt: true, outcome: { status: "failed" } })
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  it("has the result that its tool finds, where it happened", () => {
    const driver = running("check")
    driver.happen(0)
    driver.kill()
    expect(driver.jobs.map((job) => job.type)).toEqual(["reconcile"])
    driver.finish(0)
    expect(results(driver)).toEqual(["found"])
    expect(only(driver)).toMatchObject({ status: "terminal", inDoubt: false, outcome: { status: "completed" } })
    expect(driver.started).toHaveLength(1)
  })

  it("runs now, where it did not happen", () => {
    const driver = running("check")
    driver.kill()
    driver.finish(0)
    expect(driver.jobs.map((job) => job.type)).toEqual(["tool"])
    driver.drain()
    expect(results(driver)).toEqual(["result"])
    expect([...driver.world.values()]).toEqual([1])
    expect(only(driver).inDoubt).toBe(false)
  })

  it.each([
    ["its tool cannot tell", (driver: Driver) => driver.unknown(0), /no answer\./],
    ["finding out breaks", (driver: Driver) => driver.end(0, "crashed"), /Finding out broke: broke \(reference r\)/],
  ])("is in doubt where %s", (_, end, words) => {
    const driver = running("check")
    driver.kill()
    end(driver)
    expect(results(driver)[0]).toMatch(words)
    expect(only(driver).inDoubt).toBe(true)
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  it("is looked into again after a death in the middle of finding out, with the output that was flushed", () => {
    const driver = running("check")
    driver.output(0, "half done")
    driver.fire("flush")
    driver.happen(0)
    for (let death = 0; death < 3; death++) driver.kill()
    expect(driver.jobs.map((job) => job.type)).toEqual(["reconcile"])
    driver.unknown(0)
    expect(results(driver)[0]).toContain("half done")
  })

  it("is left in doubt once finding out took the process along five times", () => {
    const driver = running("check")
    for (let death = 0; death < 5; death++) driver.kill()
    expect(driver.jobs.map((job) => job.type)).toEqual(["prepare"])
    expect(only(driver)).toMatchObject({ inDoubt: true, crashes: 5 })
  })

  it("that was sequential holds back the calls behind it until it is found out", () => {
    const driver = running("check-one", "unsafe")
    driver.kill()
    expect(driver.jobs.map((job) => job.type)).toEqual(["reconcile"])
    driver.finish(0)
    expect(driver.jobs.map((job) => (job.type === "tool" ? job.slot.call.name : job.type))).toEqual(["check-one"])
    driver.finish(0)
    expect(driver.jobs.map((job) => (job.type === "tool" ? job.slot.call.name : job.type))).toEqual(["unsafe"])
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })
})

describe("a cancel", () => {
  it("while a call is looked into stops that and leaves it in doubt", () => {
    const driver = running("check")
    driver.kill()
    driver.cancel()
    expect(driver.data.state).toBe("executing_tools")
    driver.end(0, "stopped")
    expect(driver.data.state).toBe("idle")
    expect(only(driver).inDoubt).toBe(true)
    expect(driver.answers.at(-1)).toEqual({ kind: "cancel", ok: true, value: { cancelled: true } })
  })

  it("that was accepted before the death still finds out, and does not run what did not happen", () => {
    const driver = running("check", "unsafe")
    driver.cancel()
    driver.kill()
    expect(driver.jobs.map((job) => job.type)).toEqual(["reconcile"])
    driver.finish(0)
    expect(driver.started).toHaveLength(2)
    expect(driver.data.state).toBe("idle")
    expect(callTasks(driver).map((task) => task.inDoubt)).toEqual([false, true])
  })

  it.each([
    ["bold", false],
    ["wary", true],
  ])("of a running call of the tool %s leaves it in doubt: %s", (name, inDoubt) => {
    const driver = running(name)
    driver.cancel()
    driver.end(0, "stopped")
    expect(only(driver).inDoubt).toBe(inDoubt)
    expect(/may or may not/.test(results(driver)[0] ?? "")).toBe(inDoubt)
  })
})

describe("a result", () => {
  it.each([
    ["unsafe", true],
    ["safe", false],
  ])("that says in doubt of a call that is %s counts: %s", (name, inDoubt) => {
    const driver = running(name)
    const result = { output: [{ type: "text" as const, text: "timed out" }], isError: true, inDoubt: true }
    driver.send({ type: "toolEnded", task: only(driver).id, result })
    expect(only(driver).inDoubt).toBe(inDoubt)
  })
})

describe("settling a call in doubt", () => {
  const inDoubt = (): Driver => {
    const driver = running("unsafe")
    driver.kill()
    driver.drain()
    return driver
  }

  it.each([
    ["happened", /did take effect/],
    ["not-happened", /did not take effect/],
  ] as const)("as %s keeps the answer, and the model reads it with the next request", (answer, words) => {
    const driver = inDoubt()
    driver.settle(only(driver), answer)
    expect(only(driver).inDoubt).toBe(false)
    expect(settledAs(only(driver))).toMatchObject({ answer })
    const last = deriveContext(driver.entries).at(-1)
    expect(last?.role === "user" ? textOf(last.content) : "").toMatch(words)
    driver.kill()
    driver.submit("go on")
    driver.drain()
    expect(statuses(driver)).toEqual(["done", "done"])
  })

  it("as ignored says nothing to the model", () => {
    const driver = inDoubt()
    const before = deriveContext(driver.entries)
    driver.settle(only(driver), "ignore")
    expect(deriveContext(driver.entries)).toEqual(before)
    expect(driver.entries.at(-1)).toMatchObject({ kind: "pi.effect-settled", data: { answer: "ignore" } })
  })

  it("while a run goes on keeps calls and results together", () => {
    const driver = inDoubt()
    driver.submit("again")
    driver.finish(0)
    driver.finish(0, ["safe"])
    driver.finish(0)
    const [doubtful] = callTasks(driver)
    if (doubtful !== undefined) driver.settle(doubtful, "happened")
    driver.drain()
    const roles = deriveContext(driver.entries).map((message) => message.role)
    expect(roles.slice(-5)).toEqual(["user", "assistant", "tool", "user", "assistant"])
  })
})

describe("calls under deaths, cancels and every answer of their tools", () => {
  const at = fc.nat(5)
  const some = (driver: Driver, n: number): number => (driver.jobs.length === 0 ? 0 : n % driver.jobs.length)
  const step = fc.oneof(
    { weight: 4, arbitrary: at.map((n) => (d: Driver) => d.happen(some(d, n))) },
    { weight: 4, arbitrary: fc.constant((d: Driver) => d.kill()) },
    { weight: 3, arbitrary: at.map((n) => (d: Driver) => d.unknown(some(d, n))) },
    { weight: 3, arbitrary: at.map((n) => (d: Driver) => d.finish(some(d, n))) },
    { weight: 1, arbitrary: at.map((n) => (d: Driver) => d.end(some(d, n), "crashed")) },
    { weight: 1, arbitrary: at.map((n) => (d: Driver) => d.output(some(d, n), "o")) },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.fire("flush")) },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.cancel()) },
  )
  const names = fc.array(fc.constantFrom("check", "check-one", "unsafe", "wary", "safe"), {
    minLength: 1,
    maxLength: 4,
  })

  it("have each effect at most once, and say of each what is known", () => {
    fc.assert(
      fc.property(names, fc.array(step, { maxLength: 20 }), (calls, steps) => {
        const driver = running(...calls)
        for (const each of steps) each(driver)
        driver.drain()
        if (driver.data.parked !== null) driver.retry()
        driver.drain()
        expect(driver.data.state).toBe("idle")
        expect([...driver.world.values()].filter((times) => times > 1)).toEqual([])
        for (const task of callTasks(driver)) {
          expect(task.status).toBe("terminal")
          const call = callOf(task)
          if (call?.effect === undefined || call.replay === "safe") {
            expect(task.inDoubt).toBe(false)
            continue
          }
          const known = task.outcome?.status === "completed" || task.inDoubt || driver.broken.has(task.id)
          if (driver.world.has(call.effect)) expect(known).toBe(true)
          // A call that is done had its effect; one in doubt began.
          if (task.outcome?.status === "completed") expect(driver.world.has(call.effect)).toBe(true)
          if (task.inDoubt) expect(driver.started.some((each) => each.task === task.id)).toBe(true)
        }
        // One result for each call, in the transcript.
        const answered = driver.entries.flatMap((entry) => entry.model).filter((message) => message.role === "tool")
        expect(new Set(answered.map((message) => message.callId)).size).toBe(calls.length)
        expect(answered).toHaveLength(calls.length)
      }),
      { numRuns: 1_000 },
    )
  })
})
