/**
 * Questions in the pure machine: calls that wait for a person, tools that ask one, and what deaths, cancels and time do to both.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { callOf } from "../../src/domain/effect.ts"
import { textOf } from "../../src/domain/message.ts"
import type { PermissionAnswer } from "../../src/domain/question.ts"
import { endOf, questionOf } from "../../src/domain/question.ts"
import type { Task } from "../../src/domain/task.ts"
import { Died, Driver } from "../conversation/driver.ts"

/** A driver whose response with `calls` was prepared. */
const batch = (calls: ReadonlyArray<string>, prepare: (driver: Driver) => void = () => undefined): Driver => {
  const driver = new Driver()
  prepare(driver)
  driver.submit("go")
  driver.finish(0)
  driver.finish(0, calls)
  driver.finish(0)
  return driver
}

const questions = (driver: Driver): ReadonlyArray<Task> =>
  [...driver.tasks.values()].filter((task) => questionOf(task) !== null)
const calls = (driver: Driver): ReadonlyArray<Task> =>
  [...driver.tasks.values()].filter((task) => callOf(task) !== null)
const toolMessages = (driver: Driver) =>
  driver.entries.flatMap((entry) => entry.model).flatMap((message) => (message.role === "tool" ? [message] : []))
const results = (driver: Driver) => toolMessages(driver).map(({ content }) => textOf(content))
const statuses = (driver: Driver) => [...driver.submissions.values()].map((row) => row.status)
const ends = (driver: Driver) => questions(driver).map((task) => endOf(task)?.type ?? null)
const events = (driver: Driver, type: string) => driver.events.filter((event) => event.type === type)

describe("a call that has to be allowed first", () => {
  it("is stored with its question before anybody is asked, and has not begun", () => {
    const driver = batch(["unsafe ask"])
    const [call] = calls(driver)
    expect(call).toMatchObject({ status: "pending" })
    expect(questions(driver)).toMatchObject([{ status: "waiting", owner: call?.id }])
    expect(driver.started).toEqual([])
    expect(driver.data.state).toBe("executing_tools")
    const [asked] = questions(driver)
    expect(events(driver, "permission_request")).toMatchObject([
      { question_id: asked?.id, tool: "unsafe ask", reason: "It has effects.", options: [{}, {}, {}, {}] },
    ])
  })

  it("starts in the commit of the answer that allows it", () => {
    const driver = batch(["unsafe ask"])
    const before = driver.commits
    driver.answer(0, "allow_once")
    expect(driver.commits).toBe(before + 1)
    expect(driver.started).toHaveLength(1)
    expect(questions(driver)).toMatchObject([
      { status: "terminal", outcome: { status: "completed", result: "allow_once" } },
    ])
    expect(events(driver, "question_settled")).toMatchObject([{ result: "allowed", by: "somebody" }])
    driver.drain()
    expect(results(driver)).toEqual(["result"])
    expect(statuses(driver)).toEqual(["done"])
  })

  it("does not run when it is denied, and the result says who denied it", () => {
    const driver = batch(["unsafe ask"])
    driver.answer(0, "reject_once", "ann")
    expect(results(driver)).toEqual([expect.stringMatching(/^Denied: a person \(ann\) rejected/)])
    expect(toolMessages(driver)[0]?.details).toMatchObject({ permission: { result: "denied" } })
    driver.drain()
    expect(driver.started).toEqual([])
    expect(statuses(driver)).toEqual(["done"])
  })

  it("does not run when its time is over, which is no denial", () => {
    const driver = batch(["unsafe ask"])
    driver.fire("question")
    expect(ends(driver)).toEqual(["expired"])
    expect(results(driver)).toEqual([expect.stringMatching(/^Not run: nobody answered in time/)])
    expect(toolMessages(driver)[0]?.details).toMatchObject({ permission: { result: "expired" } })
    expect(driver.started).toEqual([])
  })

  it("is blocked at once where nobody can be asked, which is neither", () => {
    const driver = batch(["unsafe ask"], (one) => {
      one.answerable = false
    })
    expect(questions(driver)).toEqual([])
    expect(results(driver)).toEqual([expect.stringMatching(/^It has effects\. Nobody could be asked/)])
    expect(toolMessages(driver)[0]?.details).toMatchObject({ permission: { result: "nobody" } })
    expect(events(driver, "tool_blocked")).toHaveLength(1)
  })

  it("waits without a limit in a conversation that is set to wait", () => {
    const driver = batch(["unsafe ask"], (one) => {
      one.answerable = false
      one.configure({ questions: "wait" })
    })
    expect(driver.timers.has("question")).toBe(false)
    driver.kill()
    driver.answer(0, "allow_once")
    driver.drain()
    expect(results(driver)).toEqual(["result"])
  })

  it("lets the others of its batch go on, and holds the turn until it is answered", () => {
    const driver = batch(["unsafe", "unsafe ask", "safe"])
    expect(driver.started).toHaveLength(2)
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.state).toBe("executing_tools")
    expect(driver.jobs).toEqual([])
    driver.answer(0, "allow_once")
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  it("holds up those behind it in a sequential batch", () => {
    const driver = batch(["unsafe ask one", "unsafe one"])
    expect(driver.started).toEqual([])
    driver.answer(0, "allow_once")
    expect(driver.started).toHaveLength(1)
    driver.finish(0)
    expect(driver.started).toHaveLength(2)
    const order = calls(driver).map((call) => call.id)
    expect(driver.started.map((one) => one.task)).toEqual(order)
  })

  it("is withdrawn by a cancel, which ends the run at once", () => {
    const driver = batch(["unsafe ask"])
    driver.cancel()
    expect(ends(driver)).toEqual(["withdrawn"])
    expect(driver.data.state).toBe("idle")
    expect(driver.answers.at(-1)).toMatchObject({ kind: "cancel", ok: true, value: { cancelled: true } })
    expect(driver.timers.has("question")).toBe(false)
  })

  it("does not keep the machine from steering, compacting and configuring", () => {
    const driver = batch(["unsafe ask"])
    driver.submit("and this", "steer")
    driver.configure()
    driver.compact()
    expect(driver.answers.slice(-3).map(({ ok }) => ok)).toEqual([true, true, true])
    expect(driver.data.questions).toHaveLength(1)
    driver.answer(0, "allow_once")
    driver.drain()
    expect(statuses(driver)).toEqual(["done", "done"])
  })
})

describe('an answer "always"', () => {
  const remember = { commands: ["git push:*"], tools: ["deploy"] }
  const kept = (answer: PermissionAnswer) => {
    const driver = batch(["unsafe ask"], (one) => {
      one.asks = { reason: "It has effects.", remember }
    })
    driver.answer(0, answer)
    return [...driver.documents.values()].find((one) => one.kind === "pi.agent")?.value
  }

  it("is kept in the session, in the commit of the answer", () => {
    expect(kept("allow_always")).toMatchObject({
      settingsOverride: { permissions: { allow: ["git push:*"], allowTools: ["deploy"] } },
    })
    expect(kept("reject_always")).toMatchObject({
      settingsOverride: { permissions: { deny: ["git push:*"], denyTools: ["deploy"] } },
    })
  })

  it("is the only one that is kept", () => {
    expect(kept("allow_once")).toBeUndefined()
    expect(kept("reject_once")).toBeUndefined()
  })
})

describe("an open question when the process dies", () => {
  it("is asked again, with the same number and the same end of its time", () => {
    const driver = batch(["unsafe ask"])
    const before = questions(driver)
    driver.kill()
    expect(driver.data.questions.map((one) => one.task.id)).toEqual(before.map((one) => one.id))
    expect(driver.data.questions[0]?.input).toEqual(questionOf(before[0] as Task))
    expect(events(driver, "permission_request")).toHaveLength(2)
    expect(driver.started).toEqual([])
    driver.answer(0, "allow_once")
    driver.drain()
    expect(driver.started).toHaveLength(1)
    expect(results(driver)).toEqual(["result"])
  })

  it("is over when its time ended meanwhile", () => {
    const driver = batch(["unsafe ask"])
    driver.now += 200_000
    driver.kill()
    driver.fire("question")
    expect(ends(driver)).toEqual(["expired"])
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  it("is withdrawn with the run when a cancel was accepted before", () => {
    const driver = batch(["unsafe", "unsafe ask"])
    driver.cancel()
    driver.kill()
    driver.drain()
    expect(ends(driver)).toEqual(["withdrawn"])
    expect(driver.data.state).toBe("idle")
  })

  it.each(["before", "after"] as const)("%s the commit that asks, leaves a call that has not begun", (when) => {
    const driver = new Driver()
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["unsafe ask"])
    driver.dying = { commit: driver.commits + 1, when }
    expect(() => driver.finish(0)).toThrow(Died)
    driver.dying = null
    driver.kill()
    expect(driver.started).toEqual([])
    expect(questions(driver)).toHaveLength(when === "before" ? 0 : 1)
    driver.answer(0, "allow_once")
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
  })

  it("before the answer's commit, is open still", () => {
    const driver = batch(["unsafe ask"])
    driver.dying = { commit: driver.commits + 1, when: "before" }
    expect(() => driver.answer(0, "allow_once")).toThrow(Died)
    driver.dying = null
    driver.kill()
    expect(driver.answers.filter(({ kind }) => kind === "answer")).toEqual([])
    expect(driver.data.questions).toHaveLength(1)
    expect(driver.started).toEqual([])
  })

  it("after the answer's commit and before the call starts, is answered, and the call is not run again", () => {
    const driver = batch(["unsafe ask"])
    driver.dying = { commit: driver.commits + 1, when: "after" }
    expect(() => driver.answer(0, "allow_once")).toThrow(Died)
    driver.dying = null
    driver.kill()
    expect(ends(driver)).toEqual(["answered"])
    driver.drain()
    expect(statuses(driver)).toEqual(["done"])
    expect([...driver.world.values()].every((times) => times <= 1)).toBe(true)
  })

  it("after the commit of a denial, stays denied", () => {
    const driver = batch(["unsafe ask"])
    driver.dying = { commit: driver.commits + 1, when: "after" }
    expect(() => driver.answer(0, "reject_once")).toThrow(Died)
    driver.dying = null
    driver.kill()
    driver.drain()
    expect(driver.started).toEqual([])
    expect(results(driver)).toEqual([expect.stringMatching(/^Denied/)])
  })
})

describe("a running tool that asks", () => {
  const answers = { colour: { selected: [], text: "blue" } }
  const told = (driver: Driver) => driver.answers.filter(({ kind }) => kind === "ask").map(({ value }) => value)

  it("is told what was answered", () => {
    const driver = batch(["safe"])
    driver.ask(0)
    expect(events(driver, "ui_request")).toMatchObject([{ title: "Colours", questions: [{ id: "colour" }] }])
    driver.answer(0, answers)
    expect(told(driver)).toEqual([{ type: "answered", answers, by: "somebody" }])
  })

  it("is told at once where nobody can be asked", () => {
    const driver = batch(["safe"])
    driver.answerable = false
    driver.ask(0)
    expect(told(driver)).toMatchObject([{ type: "nobody" }])
    expect(questions(driver)).toEqual([])
  })

  it("finds its question again after a death, instead of asking a second one", () => {
    const driver = batch(["safe"])
    driver.ask(0)
    driver.kill()
    driver.ask(0)
    expect(questions(driver)).toHaveLength(1)
    driver.answer(0, answers)
    expect(told(driver)).toEqual([{ type: "answered", answers, by: "somebody" }])
  })

  it("takes its question along when it ends, however it does", () => {
    const driver = batch(["safe", "safe"])
    driver.ask(0)
    driver.ask(1)
    driver.finish(0)
    driver.end(0, "crashed")
    expect(ends(driver)).toEqual(["withdrawn", "withdrawn"])
  })
})

describe("questions under any order of answers, ends of time, deaths and cancels", () => {
  type Step =
    | { readonly do: "answer"; readonly at: number; readonly answer: PermissionAnswer }
    | { readonly do: "finish" | "end" | "ask"; readonly at: number }
    | { readonly do: "expire" | "kill" | "cancel" | "leave" | "come" | "dieBefore" | "dieAfter" | "submit" }
  const at = fc.nat({ max: 3 })
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({
      do: fc.constant("answer" as const),
      at,
      answer: fc.constantFrom<PermissionAnswer>("allow_once", "allow_always", "reject_once", "reject_always"),
    }),
    fc.record({ do: fc.constantFrom("finish" as const, "finish" as const, "end" as const, "ask" as const), at }),
    fc.record({
      do: fc.constantFrom("expire", "kill", "cancel", "leave", "come", "dieBefore", "dieAfter", "submit" as const),
    }),
  )
  const names = fc.array(fc.constantFrom("unsafe ask", "safe ask", "safe", "unsafe", "unsafe ask one"), {
    minLength: 1,
    maxLength: 4,
  })

  const perform = (driver: Driver, one: Step, calls: ReadonlyArray<string>): void => {
    switch (one.do) {
      case "answer": {
        const permission = driver.data.questions[one.at]?.input.body.kind === "permission"
        driver.answer(one.at, permission ? one.answer : "reject_once")
        return
      }
      case "finish": {
        const model =
          driver.jobs[one.at]?.type === "model" && driver.entries.every(({ kind }) => kind !== "pi.assistant")
        driver.finish(one.at, model ? calls : [])
        return
      }
      case "end":
        driver.end(one.at, "stopped")
        return
      case "ask":
        driver.ask(one.at)
        return
      case "expire":
        driver.fire("question")
        return
      case "kill":
        driver.kill()
        return
      case "cancel":
        driver.cancel()
        return
      case "submit":
        driver.submit("more")
        return
      case "leave":
      case "come":
        driver.answerable = one.do === "come"
        return
      case "dieBefore":
      case "dieAfter":
        driver.dying = { commit: driver.commits + 1, when: one.do === "dieBefore" ? "before" : "after" }
    }
  }

  it("are settled at most once each, and no call runs that was not allowed", () => {
    fc.assert(
      fc.property(names, fc.array(step, { maxLength: 40 }), (calls, steps) => {
        const driver = batch(calls)
        for (const one of steps) {
          try {
            perform(driver, one, calls)
          } catch (error) {
            if (!(error instanceof Died)) throw error
            driver.dying = null
            driver.kill()
          }
        }
        driver.dying = null
        driver.drain()
        // The driver refuses a second end of a row; here each question has its one, and each call that was asked about its answer.
        for (const question of questions(driver)) {
          expect(question.status).toBe("terminal")
          expect(endOf(question)).not.toBeNull()
          if (questionOf(question)?.body.kind !== "permission") continue
          const end = endOf(question)
          const allowed = end?.type === "answered" && typeof end.answer === "string" && end.answer.startsWith("allow")
          if (!allowed) expect(driver.started.some((call) => call.task === question.owner)).toBe(false)
        }
        const settled = driver.events.flatMap((event) => (event.type === "question_settled" ? [event.question_id] : []))
        expect(new Set(settled).size).toBe(settled.length)
        expect(driver.data.questions).toEqual([])
        for (const task of driver.tasks.values()) expect(task.status).toBe("terminal")
        for (const times of driver.world.values()) expect(times).toBe(1)
      }),
      { numRuns: 1_000 },
    )
  })
})
