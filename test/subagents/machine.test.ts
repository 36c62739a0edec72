/**
 * Delegation in the pure machine: one commit starts it, one ends each subagent, and no order of ends, cancels and deaths loses or repeats a
 * summary.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { deriveContext } from "../../src/domain/context.ts"
import { textOf } from "../../src/domain/message.ts"
import { TaskKind } from "../../src/domain/task.ts"
import type { HookName } from "../../src/harness/plugin.ts"
import { Died, Driver } from "../conversation/driver.ts"

const subagents = (driver: Driver) => [...driver.tasks.values()].filter(({ kind }) => kind === TaskKind.subagent)
const summaries = (driver: Driver) =>
  driver.entries
    .filter(({ kind }) => kind === "pi.subagent")
    .map(({ model, task }) => ({ task, text: model.map((m) => (m.role === "user" ? textOf(m.content) : "")).join("") }))
const results = (driver: Driver) =>
  driver.entries.flatMap((entry) => entry.model).flatMap((m) => (m.role === "tool" ? [textOf(m.content)] : []))
const events = (driver: Driver, type: string) => driver.events.filter((event) => event.type === type)

/** A driver whose model has called these tools, all calls ended. */
const calledUnder = (hooks: ReadonlyArray<HookName>, ...names: ReadonlyArray<string>): Driver => {
  const driver = new Driver({}, hooks)
  driver.submit("go")
  driver.finish(0)
  driver.finish(0, names)
  driver.finish(0)
  for (let left = names.length; left > 0; left--) driver.finish(0)
  return driver
}

const called = (...names: ReadonlyArray<string>): Driver => calledUnder([], ...names)

describe("a delegation", () => {
  it("is one commit: the result, the children with what they are to do, their tasks and jobs, and the generation that waits", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["safe-delegate"])
    driver.finish(0)
    const before = driver.commits
    driver.finish(0)
    expect(driver.commits).toBe(before + 1)
    expect(driver.data.state).toBe("awaiting_children")
    const tasks = subagents(driver)
    expect(tasks.map(({ status }) => status)).toEqual(["pending", "pending"])
    expect(driver.born.map(({ owner, parent }) => ({ owner, parent }))).toEqual(
      tasks.map(({ id }) => ({ owner: id, parent: null })),
    )
    expect(driver.childJobs).toHaveLength(2)
    const generation = [...driver.tasks.values()].find(({ kind }) => kind === TaskKind.generation)
    expect(generation).toMatchObject({
      status: "waiting",
      waitingOn: { on: tasks.map(({ id }) => id), policy: "allSettled" },
    })
    expect(results(driver)[0]).toMatch(/^Started scout \(conversation \d+\), worker \(conversation \d+\)\./)
  })

  it("goes on with the end of the last child also where plugins want to know that the calls have ended", () => {
    const driver = calledUnder(["afterTools"], "safe-delegate")
    expect(driver.data.state).toBe("awaiting_children")
    for (const at of [0, 0]) {
      driver.beginChild(at)
      driver.endChild(at, "completed")
    }
    expect(driver.data.state).toBe("executing_tools")
    driver.finish(0)
    expect(driver.data.state).toBe("preparing_request")
    expect(summaries(driver)).toHaveLength(2)
  })

  it("goes on with the end of the last child, in its commit", () => {
    const driver = called("safe-delegate")
    driver.beginChild(0)
    driver.beginChild(1)
    driver.endChild(1)
    expect(driver.data.state).toBe("awaiting_children")
    const before = driver.commits
    driver.endChild(0)
    expect(driver.commits).toBe(before + 1)
    expect(driver.data.state).toBe("preparing_request")
    expect(summaries(driver).map(({ text }) => text.replace(/\d+/g, "N"))).toEqual([
      "Subagent worker (conversation N) finished: text of N",
      "Subagent scout (conversation N) finished: text of N",
    ])
    expect(driver.timers.has("children")).toBe(false)
    expect(driver.data.usage.subagents).toMatchObject({ turns: 2, models: { "test/model": { input: 20 } } })
    driver.drain()
    expect([...driver.submissions.values()].map(({ status }) => status)).toEqual(["done"])
    expect(
      [...driver.tasks.values()].every(({ status, waitingOn }) => status === "terminal" && waitingOn === null),
    ).toBe(true)
  })

  it("begins each child once, with an event, and has nothing to do for an older job", () => {
    const driver = called("safe-delegate")
    expect(driver.beginChild(0)).toBe(true)
    const [job] = driver.childJobs
    driver.kill()
    expect(driver.data.state).toBe("awaiting_children")
    // The job that was queued and had not begun is still there, and is of no use any more.
    expect(driver.childJobs.map((one) => one.job)).toEqual([1, 2, 2])
    expect(driver.beginChild(0)).toBe(false)
    expect(job?.job).toBe(1)
    expect(driver.beginChild(0)).toBe(true)
    expect(driver.beginChild(1)).toBe(true)
    driver.drain()
    expect(summaries(driver)).toHaveLength(2)
  })

  it("waits for the other calls of its batch, whichever ends first", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["safe-delegate", "slow"])
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.state).toBe("executing_tools")
    for (let left = driver.childJobs.length; left > 0; left--) {
      driver.beginChild(0)
      driver.endChild(0)
    }
    expect(driver.data.state).toBe("executing_tools")
    driver.finish(0)
    expect(driver.data.state).toBe("preparing_request")
    const context = deriveContext(driver.entries)
    expect(context.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "user", "user"])
  })

  it("is refused while children run", () => {
    const driver = called("safe-delegate", "safe-delegate")
    expect(subagents(driver)).toHaveLength(2)
    expect(results(driver)[1]).toContain("one delegation at a time")
    driver.drain()
    expect(summaries(driver)).toHaveLength(2)
  })

  it("is refused in a subagent, where the depth is used up", () => {
    const driver = new Driver()
    driver.data = { ...driver.data, agent: { subagent: { role: "worker", depth: 1, root: 9 as never } } }
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["safe-delegate"])
    driver.finish(0)
    driver.finish(0)
    expect(subagents(driver)).toEqual([])
    expect(results(driver)[0]).toContain("depth 1 of at most 1")
    expect(driver.data.state).toBe("preparing_request")
  })

  it("asks nobody in a subagent, though somebody who could answer watches it", () => {
    const asked = (agent: Driver["data"]["agent"]) => {
      const driver = new Driver()
      driver.answerable = true
      driver.data = { ...driver.data, agent }
      driver.submit("go")
      driver.finish(0)
      driver.finish(0, ["safe"])
      driver.finish(0)
      driver.ask(0)
      return { open: driver.data.questions.length, told: driver.answers.find(({ kind }) => kind === "ask")?.value }
    }
    expect(asked({})).toEqual({ open: 1, told: undefined })
    expect(asked({ subagent: { role: "worker", depth: 1, root: 9 as never } })).toEqual({
      open: 0,
      told: { type: "nobody", reason: "a subagent asks nobody" },
    })
  })

  it("stops the others at the first failure with fail_fast, and says so", () => {
    const driver = called("safe-delegate-fast")
    driver.beginChild(0)
    driver.beginChild(1)
    driver.endChild(0, "failed")
    expect(driver.stopped.size).toBe(1)
    expect(driver.data.state).toBe("awaiting_children")
    for (const task of [...driver.stopped]) driver.stopChild(task)
    expect(driver.data.state).toBe("preparing_request")
    expect(summaries(driver).map(({ text }) => text)).toEqual([
      expect.stringContaining("failed: "),
      expect.stringContaining("was stopped: "),
    ])
  })

  it("goes on with what it has where a child fails and the policy is all", () => {
    const driver = called("safe-delegate")
    driver.beginChild(0)
    driver.endChild(0, "timed_out")
    expect(driver.stopped.size).toBe(0)
    driver.beginChild(0)
    driver.endChild(0)
    expect(driver.data.state).toBe("preparing_request")
    expect(summaries(driver)[0]?.text).toContain("ran out of time")
  })
})

describe("a parent that waits", () => {
  it("answers: it takes steers and follow-ups, is configured, compacts, and goes on waiting", () => {
    const driver = called("safe-delegate")
    driver.submit("by the way", "steer")
    driver.submit("and then", "followUp")
    driver.submit("now", "reject")
    driver.configure()
    driver.write()
    driver.compact()
    expect(driver.data.state).toBe("awaiting_children")
    expect(driver.answers.map(({ kind, ok }) => `${kind} ${ok}`)).toEqual([
      "submit true",
      "submit true",
      "submit true",
      "submit false",
      "configure true",
      "write true",
      ...driver.answers.slice(6).map(({ kind, ok }) => `${kind} ${ok}`),
    ])
    driver.drain()
    expect([...driver.submissions.values()].map(({ status }) => status)).not.toContain("queued")
    expect([...driver.submissions.values()].filter(({ status }) => status === "done")).toHaveLength(4)
  })

  it("is cancelled bottom-up: the children first, then its turn", () => {
    const driver = called("safe-delegate")
    driver.beginChild(0)
    driver.cancel()
    expect(driver.data.state).toBe("awaiting_children")
    expect(driver.stopped.size).toBe(2)
    expect(subagents(driver).every(({ abortRequested }) => abortRequested)).toBe(true)
    // A queued job finds its task aborted.
    expect(driver.beginChild(1)).toBe(false)
    const [first, second] = [...driver.stopped]
    if (first === undefined || second === undefined) throw new Error("expected two children to be stopped")
    driver.stopChild(first)
    expect(driver.answers.some(({ kind }) => kind === "cancel")).toBe(false)
    driver.stopChild(second)
    expect(driver.data.state).toBe("idle")
    expect(driver.answers.filter(({ kind }) => kind === "cancel")).toEqual([
      { kind: "cancel", ok: true, value: { cancelled: true } },
    ])
    expect([...driver.tasks.values()].filter(({ outcome }) => outcome?.status === "aborted")).toHaveLength(3)
    expect(summaries(driver)).toEqual([])
  })

  it("finishes a cancel that a death interrupted", () => {
    const driver = called("safe-delegate")
    driver.beginChild(0)
    driver.cancel()
    driver.kill()
    expect(driver.data.state).toBe("awaiting_children")
    expect(driver.stopped.size).toBe(2)
    driver.drain()
    expect(driver.data.state).toBe("idle")
    expect(subagents(driver).every(({ outcome }) => outcome?.status === "aborted")).toBe(true)
  })

  it("stops again what should have been stopped, and looks after the others, when its timer goes off", () => {
    const driver = called("safe-delegate-fast")
    driver.beginChild(0)
    driver.endChild(0, "failed")
    driver.stopped.clear()
    driver.fire("children")
    expect(driver.stopped.size).toBe(1)
    driver.drain()
    expect(summaries(driver)).toHaveLength(2)
  })
})

describe("a handoff", () => {
  it("stores a conversation with what it begins with, in the commit of the result, and goes on", () => {
    const driver = called("safe-store")
    expect(driver.born).toMatchObject([{ owner: null, parent: null, title: "next" }])
    expect(results(driver)[0]).toMatch(/^Stored as conversation \d+; nothing runs in it\./)
    expect(driver.childJobs).toEqual([])
    expect(driver.data.state).toBe("preparing_request")
  })
})

describe("killed around every commit of a delegation", () => {
  const whole = (dying: Driver["dying"]): Driver => {
    const driver = new Driver()
    driver.dying = dying
    const step = (act: () => void): void => {
      try {
        act()
      } catch (cause) {
        if (!(cause instanceof Died)) throw cause
        driver.dying = null
        driver.kill()
      }
    }
    step(() => driver.submit("go"))
    // A death before the first commit: nobody was answered, and asks again.
    if (driver.submissions.size === 0) driver.submit("go")
    step(() => driver.finish(0))
    let asked = false
    for (let left = 200; left > 0 && driver.data.state !== "idle"; left--) {
      step(() => {
        if (driver.jobs.length > 0) {
          const calls = !asked && driver.jobs[0]?.type === "model" ? ["safe-delegate"] : []
          if (driver.jobs[0]?.type === "model") asked = true
          driver.finish(0, calls)
        } else if (driver.childJobs.length > 0) {
          if (driver.beginChild(0)) driver.endChild(0)
        }
      })
      // The model's response was lost with the process: it is asked again and delegates again.
      if (subagents(driver).length === 0 && driver.jobs[0]?.type === "prepare") asked = false
    }
    return driver
  }

  it("gives each summary once and ends every task", () => {
    const commits = whole(null).commits
    expect(commits).toBeGreaterThanOrEqual(8)
    for (let commit = 1; commit <= commits; commit++) {
      for (const when of ["before", "after"] as const) {
        const driver = whole({ commit, when })
        const label = `${when} commit ${commit}`
        expect(driver.data.state, label).toBe("idle")
        expect(subagents(driver), label).toHaveLength(2)
        expect(new Set(summaries(driver).map(({ task }) => task)).size, label).toBe(2)
        expect(summaries(driver), label).toHaveLength(2)
        expect(
          [...driver.tasks.values()].every(({ status }) => status === "terminal"),
          label,
        ).toBe(true)
        expect(
          [...driver.submissions.values()].map(({ status }) => status),
          label,
        ).toEqual(["done"])
      }
    }
  })
})

describe("any order of ends, steers, cancels, jobs and deaths", () => {
  const at = fc.nat({ max: 3 })
  const hooks: Array<HookName> = ["onInput", "afterTools", "onYield", "afterRun"]
  const operation = fc.oneof(
    fc.record({ type: fc.constant("begin" as const), at }),
    fc.record({
      type: fc.constant("end" as const),
      at,
      status: fc.constantFrom("completed", "failed", "timed_out", "stopped"),
    }),
    fc.record({
      type: fc.constant("finish" as const),
      at,
      calls: fc.subarray(["safe-delegate", "safe-delegate-fast", "slow", "safe-store"]),
    }),
    fc.constant({ type: "steer" as const }),
    fc.constant({ type: "cancel" as const }),
    fc.constant({ type: "kill" as const }),
    fc.constant({ type: "timer" as const }),
    fc.constant({ type: "compact" as const }),
    fc.constant({ type: "stopped" as const }),
  )

  it("ends every task, and gives every subagent one summary or none where its run was cancelled", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60 }), fc.subarray(hooks), (operations, wanted) => {
        const driver = calledUnder(wanted, "safe-delegate")
        for (const one of operations) {
          switch (one.type) {
            case "begin":
              driver.beginChild(one.at)
              break
            case "end":
              driver.endChild(one.at, one.status)
              break
            case "finish":
              driver.finish(one.at, one.calls)
              break
            case "steer":
              driver.submit("more", "steer")
              break
            case "cancel":
              driver.cancel()
              break
            case "kill":
              driver.kill()
              break
            case "timer":
              driver.fire("children")
              break
            case "compact":
              driver.compact()
              break
            case "stopped": {
              const [task] = driver.stopped
              if (task !== undefined) driver.stopChild(task)
            }
          }
        }
        driver.drain()
        expect(
          [...driver.tasks.values()].filter(({ status, parked }) => status !== "terminal" && parked === null),
        ).toEqual([])
        const told = summaries(driver).map(({ task }) => task)
        expect(new Set(told).size).toBe(told.length)
        for (const { id, owner, outcome } of subagents(driver)) {
          const run = [...driver.tasks.values()].find((task) => task.id === owner)
          if (run?.outcome?.status !== "aborted") expect(told, `subagent ${id} (${outcome?.status})`).toContain(id)
        }
        expect(events(driver, "subagent_finished").length).toBeGreaterThanOrEqual(told.length)
        const context = deriveContext(driver.entries)
        const asked = context.flatMap((m) =>
          m.role === "assistant" ? m.content.flatMap((p) => (p.type === "toolCall" ? [p.id] : [])) : [],
        )
        expect(context.flatMap((m) => (m.role === "tool" ? [m.callId] : []))).toEqual(asked)
      }),
      { numRuns: 400 },
    )
  })
})
