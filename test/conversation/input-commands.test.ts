/**
 * Commands of inputs in the pure machine: those that a person has to allow, and what withdrawals, cancels and deaths do to any of them.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { readOf } from "../../src/actors/conversation/machine/reading.ts"
import { callOf } from "../../src/domain/effect.ts"
import type { SubmissionId } from "../../src/domain/ids.ts"
import type { PermissionAnswer } from "../../src/domain/question.ts"
import { endOf, questionOf } from "../../src/domain/question.ts"
import { Died, Driver } from "./driver.ts"

/** A driver in which an input with `commands` was read. */
const read = (commands: ReadonlyArray<string>, prepare: (driver: Driver) => void = () => undefined): Driver => {
  const driver = new Driver({}, ["onInput"])
  driver.commands = commands
  prepare(driver)
  driver.submit("go")
  driver.finish(0)
  return driver
}

const rows = (driver: Driver) => [...driver.submissions.values()]
const id = (driver: Driver, at: number): SubmissionId => rows(driver)[at]?.id ?? (0 as SubmissionId)
const statuses = (driver: Driver) => rows(driver).map(({ status }) => status)
const outputs = (driver: Driver, at = 0) => {
  const row = rows(driver)[at]
  return row === undefined ? null : (readOf(row)?.outputs ?? null)
}
const questions = (driver: Driver) => [...driver.tasks.values()].filter((task) => questionOf(task) !== null)
const commands = (driver: Driver) => [...driver.tasks.values()].filter((task) => callOf(task) !== null)
const ends = (driver: Driver) => questions(driver).map((task) => endOf(task)?.type ?? null)
const events = (driver: Driver, type: string) => driver.events.filter((event) => event.type === type)
const cancels = (driver: Driver) => driver.answers.filter(({ kind }) => kind === "cancel").map(({ value }) => value)

describe("a command of an input that has to be allowed first", () => {
  it("is stored with its question before anybody is asked, has not begun, and its input waits", () => {
    const driver = read(["ask"])
    const [command] = commands(driver)
    expect(command).toMatchObject({ status: "pending", owner: null })
    expect(questions(driver)).toMatchObject([{ status: "waiting", owner: command?.id }])
    expect(events(driver, "permission_request")).toMatchObject([
      { tool: "bash", arguments: { command: "ask" }, title: "May ask run?", reason: "It has effects." },
    ])
    expect(driver.started).toEqual([])
    expect(driver.entries).toEqual([])
    expect(statuses(driver)).toEqual(["queued"])
    expect(driver.data.state).toBe("idle")
  })

  it("starts in the commit of the answer that allows it, and its input is placed with its output", () => {
    const driver = read(["ask"])
    const before = driver.commits
    driver.answer(0, "allow_once")
    expect(driver.commits).toBe(before + 1)
    expect(driver.started).toHaveLength(1)
    expect(events(driver, "question_settled")).toMatchObject([{ result: "allowed", by: "somebody" }])
    expect(driver.entries).toEqual([])
    driver.finish(0)
    expect(outputs(driver)).toEqual(["result"])
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
    expect(callOf(commands(driver)[0] ?? { kind: "", input: null })?.trail?.at(-1)).toMatchObject({
      plugin: "question",
      decision: "allow_once",
    })
  })

  it("does not run when it is denied, and the input says who denied it", () => {
    const driver = read(["ask"])
    driver.answer(0, "reject_once", "ann")
    expect(outputs(driver)).toEqual([expect.stringMatching(/^\[not run: Denied: a person \(ann\) rejected/)])
    driver.drain()
    expect(driver.started).toEqual([])
    expect(statuses(driver)).toEqual(["done"])
  })

  it("does not run when its time is over, which is no denial", () => {
    const driver = read(["ask"])
    driver.fire("question")
    expect(ends(driver)).toEqual(["expired"])
    expect(outputs(driver)).toEqual([expect.stringMatching(/^\[not run: Not run: nobody answered in time/)])
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  it("is refused at once where nobody can be asked", () => {
    const driver = read(["ask"], (one) => {
      one.answerable = false
    })
    expect(questions(driver)).toEqual([])
    expect(commands(driver)).toEqual([])
    expect(outputs(driver)).toEqual([expect.stringMatching(/^\[not run: It has effects\. Nobody could be asked/)])
    expect(driver.data.state).toBe("preparing_request")
  })

  it("waits without a limit in a conversation that is set to wait", () => {
    const driver = read(["ask"], (one) => {
      one.answerable = false
      one.configure({ questions: "wait" })
    })
    expect(driver.timers.has("question")).toBe(false)
    driver.kill()
    driver.answer(0, "allow_once")
    driver.drain()
    expect(outputs(driver)).toEqual(["result"])
  })

  it("lets the others of its input run meanwhile", () => {
    const driver = read(["date", "ask", "refused"])
    expect(driver.started).toHaveLength(1)
    driver.finish(0)
    expect(outputs(driver)).toEqual(["result", null, "[not run: not allowed]"])
    driver.answer(0, "allow_once")
    driver.drain()
    expect(outputs(driver)).toEqual(["result", "result", "[not run: not allowed]"])
  })

  it("holds up the inputs behind its own, which keep their order", () => {
    const driver = read(["ask"])
    driver.commands = []
    driver.submit("second")
    driver.submit("third")
    driver.finish(0)
    driver.finish(0)
    expect(statuses(driver)).toEqual(["queued", "queued", "queued"])
    driver.answer(0, "reject_once")
    driver.drain()
    const placed = rows(driver).map((row) => row.entry ?? 0)
    expect(placed).toEqual([...placed].sort((a, b) => a - b))
    expect(statuses(driver)).toEqual(["done", "done", "done"])
  })

  it("is asked while another run is going, and its input follows that run", () => {
    const driver = new Driver({}, ["onInput"])
    driver.submit("one")
    driver.finish(0)
    driver.commands = ["ask"]
    driver.submit("two")
    driver.finish(1)
    expect(ends(driver)).toEqual([null])
    driver.drain()
    expect(statuses(driver)).toEqual(["done", "done"])
  })

  it("that keeps the answer for the session stores it with the answer", () => {
    const driver = read(["ask"], (one) => {
      one.asks = { reason: "It has effects.", remember: { commands: ["git push:*"], tools: [] } }
    })
    driver.answer(0, "allow_always")
    expect(driver.data.agent.settingsOverride).toMatchObject({ permissions: { allow: ["git push:*"] } })
  })
})

describe("an input that is taken back", () => {
  it.each(["withdraw", "cancel", "cancel one"] as const)("by %s withdraws the question of its command", (how) => {
    const driver = read(["ask"])
    if (how === "withdraw") driver.withdraw(id(driver, 0))
    else driver.cancel(how === "cancel" ? undefined : id(driver, 0))
    expect(ends(driver)).toEqual(["withdrawn"])
    expect(driver.timers.has("question")).toBe(false)
    expect(commands(driver)).toMatchObject([{ status: "terminal", outcome: { status: "aborted" } }])
    expect(driver.data.inputCalls).toEqual([])
    expect(rows(driver)).toMatchObject([{ status: "unanswered", reason: "withdrawn" }])
    expect(driver.answers.at(-1)?.ok).toBe(true)
  })

  it.each(["cancel", "cancel one"] as const)("by %s stops its command, and waits for it", (how) => {
    const driver = read(["date", "ask"])
    driver.cancel(how === "cancel" ? undefined : id(driver, 0))
    expect(rows(driver)).toMatchObject([{ status: "unanswered", reason: "withdrawn" }])
    expect(cancels(driver)).toEqual([])
    driver.end(0, "stopped")
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    expect(commands(driver)).toMatchObject([
      { outcome: { status: "aborted" }, inDoubt: false },
      { outcome: { status: "aborted" } },
    ])
  })

  it("leaves a command in doubt that says so when it is cut off", () => {
    const driver = read(["wary"])
    driver.cancel()
    driver.end(0, "stopped")
    expect(commands(driver)).toMatchObject([{ outcome: { status: "aborted" }, inDoubt: true }])
  })

  it("whose command was just done has it done", () => {
    const driver = read(["date"])
    driver.cancel()
    driver.finish(0)
    expect(commands(driver)).toMatchObject([{ outcome: { status: "completed" } }])
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    expect(driver.entries).toEqual([])
  })

  it("lets those behind it go on, which waited for nothing else", () => {
    const driver = read(["ask"])
    driver.commands = []
    driver.submit("second")
    driver.finish(0)
    driver.withdraw(id(driver, 0))
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    expect(statuses(driver)).toEqual(["unanswered", "done"])
  })

  it("has its command stopped after a death as well, in doubt like every call that was cut off", () => {
    const driver = read(["date"])
    driver.cancel()
    driver.kill()
    expect(commands(driver)).toMatchObject([{ outcome: { status: "aborted" }, inDoubt: true }])
    expect(driver.data.inputCalls ?? []).toEqual([])
  })
})

describe("an open question about a command when the process dies", () => {
  it("is asked again, with the same number and the same end of its time", () => {
    const driver = read(["ask"])
    const [before] = driver.data.questions
    driver.kill()
    expect(driver.data.questions.map(({ input, task }) => [task.id, input])).toEqual([[before?.task.id, before?.input]])
    expect(events(driver, "permission_request")).toHaveLength(2)
    expect(driver.started).toEqual([])
    driver.answer(0, "allow_once")
    driver.drain()
    expect(driver.started).toHaveLength(1)
    expect(outputs(driver)).toEqual(["result"])
    expect(statuses(driver)).toEqual(["done"])
  })

  it("is over when its time ended meanwhile, and the input goes on", () => {
    const driver = read(["ask"])
    driver.now += 200_000
    driver.kill()
    driver.fire("question")
    expect(ends(driver)).toEqual(["expired"])
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  // Every commit of the way from the input to its answer, the process dying before it and after it.
  it.each(
    ["allow_once", "reject_once"].flatMap((answer) =>
      [1, 2, 3, 4, 5].flatMap((commit) =>
        (["before", "after"] as const).map((when) => ({ answer: answer as PermissionAnswer, commit, when })),
      ),
    ),
  )("whose process dies $when commit $commit on the way to $answer runs at most once and is answered", (at) => {
    const driver = new Driver({}, ["onInput"])
    driver.commands = ["ask"]
    driver.dying = { commit: at.commit, when: at.when }
    const alive = (act: () => void) => {
      try {
        act()
      } catch (error) {
        if (!(error instanceof Died)) throw error
        driver.dying = null
        driver.kill()
      }
    }
    alive(() => driver.submit("go"))
    if (rows(driver).length === 0) driver.submit("go")
    // Some need no repetition: what is over by then changes nothing.
    for (let step = 0; step < 6; step++) {
      alive(() => driver.finish(0))
      alive(() => driver.answer(0, at.answer))
    }
    alive(() => driver.drain())
    alive(() => driver.drain())
    expect(statuses(driver)).toEqual(["done"])
    expect(driver.started.length).toBeLessThanOrEqual(1)
    if (at.answer === "reject_once") expect(driver.started).toEqual([])
    expect([...driver.tasks.values()].every((task) => task.status === "terminal")).toBe(true)
    expect(questions(driver)).toHaveLength(1)
    expect(ends(driver)).toEqual(["answered"])
  })
})

describe("commands of inputs under any order of answers, ends, withdrawals, cancels and deaths", () => {
  const index = fc.nat({ max: 3 })
  const step = fc.oneof(
    fc.record({
      do: fc.constant("answer" as const),
      at: index,
      answer: fc.constantFrom<PermissionAnswer>("allow_once", "reject_once"),
    }),
    fc.record({ do: fc.constantFrom("finish", "finish", "finish", "stop", "withdraw", "cancelOne"), at: index }),
    fc.record({ do: fc.constantFrom("expire", "kill", "cancel", "leave", "come", "submit", "submit"), at: index }),
    fc.record({ do: fc.constantFrom("dieBefore", "dieAfter"), at: index }),
  )
  type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

  const at = (driver: Driver, one: Step) => one.at % Math.max(1, driver.jobs.length)
  const acts: { readonly [K in Step["do"]]: (driver: Driver, one: Step) => void } = {
    answer: (driver, one) => driver.answer(one.at, "answer" in one ? one.answer : "reject_once"),
    finish: (driver, one) => driver.finish(at(driver, one)),
    stop: (driver, one) => driver.end(at(driver, one), "crashed"),
    withdraw: (driver, one) => driver.withdraw(id(driver, one.at)),
    cancelOne: (driver, one) => driver.cancel(id(driver, one.at)),
    cancel: (driver) => driver.cancel(),
    expire: (driver) => driver.fire("question"),
    kill: (driver) => driver.kill(),
    leave: (driver) => {
      driver.answerable = false
    },
    come: (driver) => {
      driver.answerable = true
    },
    submit: (driver) => driver.submit("go"),
    dieBefore: (driver, one) => {
      driver.dying = { commit: driver.commits + 1 + one.at, when: "before" }
    },
    dieAfter: (driver, one) => {
      driver.dying = { commit: driver.commits + 1 + one.at, when: "after" }
    },
  }

  it("run at most once, only where they were allowed, and every input and every cancel has its end", () => {
    fc.assert(
      fc.property(
        fc.subarray(["ask", "date", "wary ask", "refused"]),
        fc.array(step, { maxLength: 40 }),
        (given, steps) => {
          const driver = new Driver({}, ["onInput"])
          driver.commands = given
          let asked = 0
          let lost = 0
          const alive = (act: () => void) => {
            let died = false
            try {
              act()
            } catch (error) {
              if (!(error instanceof Died)) throw error
              died = true
            }
            if (!died) return
            driver.dying = null
            lost = asked
            driver.kill()
          }
          for (const one of steps) {
            if (one.do === "cancel" || one.do === "cancelOne") asked++
            alive(() => acts[one.do](driver, one))
            // Who asked a process that died is not answered.
            if (one.do === "kill") lost = asked
          }
          driver.dying = null
          driver.drain()
          driver.submit("last")
          driver.drain()
          const starts = driver.started.map(({ task }) => task)
          expect(new Set(starts).size).toBe(starts.length)
          for (const times of driver.world.values()) expect(times).toBe(1)
          for (const question of questions(driver)) {
            const end = endOf(question)
            expect(end).not.toBeNull()
            const allowed = end?.type === "answered" && end.answer === "allow_once"
            if (!allowed) expect(starts).not.toContain(question.owner)
          }
          expect(driver.data).toMatchObject({ state: "idle", questions: [], cancels: [], queue: [] })
          expect(driver.data.inputCalls ?? []).toEqual([])
          for (const task of driver.tasks.values()) expect(task.status).toBe("terminal")
          for (const row of rows(driver)) expect(["done", "unanswered"]).toContain(row.status)
          const answered = driver.answers.filter(({ kind }) => kind === "cancel").length
          expect(answered).toBeGreaterThanOrEqual(asked - lost)
        },
      ),
      { numRuns: 500 },
    )
  })
})
