/**
 * The cancel of one submission in the pure machine: it ends the run that the submission is part of, and nothing of anybody else's.
 */
import { describe, expect, it } from "vitest"
import type { SubmissionId } from "../../src/domain/ids.ts"
import { Died, Driver } from "./driver.ts"

const rows = (driver: Driver) => [...driver.submissions.values()]
const id = (driver: Driver, at: number): SubmissionId => rows(driver)[at]?.id ?? (0 as SubmissionId)
const ends = (driver: Driver) => rows(driver).map(({ reason, status }) => reason ?? status)
const cancels = (driver: Driver) => driver.answers.filter(({ kind }) => kind === "cancel").map(({ value }) => value)

/** Two inputs: one whose model is asked, and one that waits. */
const two = (): Driver => {
  const driver = new Driver()
  driver.submit("one")
  driver.submit("two")
  driver.finish(0)
  return driver
}

describe("a cancel of one submission", () => {
  it("ends the run that it is part of; what is queued takes its place in the same commit", () => {
    const driver = two()
    driver.cancel(id(driver, 0))
    expect(cancels(driver)).toEqual([])
    const before = driver.commits
    driver.end(0, "stopped")
    expect(driver.commits).toBe(before + 1)
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    expect(ends(driver)).toEqual(["aborted", "placed"])
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    expect(ends(driver)).toEqual(["aborted", "done"])
  })

  it("withdraws one that is queued, and the run goes on", () => {
    const driver = two()
    driver.cancel(id(driver, 1))
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    expect(ends(driver)).toEqual(["placed", "withdrawn"])
    driver.drain()
    expect(ends(driver)).toEqual(["done", "withdrawn"])
  })

  it("changes nothing for one that is done, or that is not there", () => {
    const driver = two()
    driver.finish(0)
    expect(ends(driver)).toEqual(["done", "placed"])
    const before = driver.commits
    driver.cancel(id(driver, 0))
    driver.cancel(9_999 as SubmissionId)
    expect(cancels(driver)).toEqual([{ cancelled: false }, { cancelled: false }])
    expect(driver.commits).toBe(before)
    driver.drain()
    expect(ends(driver)).toEqual(["done", "done"])
  })

  it("ends the run for a steer that joined it, and for whoever else is in it", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0, ["safe"])
    driver.finish(0)
    driver.submit("steer", "steer")
    driver.finish(0)
    expect(ends(driver)).toEqual(["placed", "placed"])
    driver.cancel(id(driver, 1))
    driver.drain()
    expect(ends(driver)).toEqual(["aborted", "aborted"])
  })

  it("leaves the commands and the questions of inputs that are queued", () => {
    const driver = new Driver({}, ["onInput"])
    driver.submit("one")
    driver.finish(0)
    driver.commands = ["date", "ask"]
    driver.submit("two")
    driver.finish(1)
    driver.cancel(id(driver, 0))
    expect(driver.data.questions).toHaveLength(1)
    expect(driver.data.inputCalls).toMatchObject([
      { slot: { status: "running", task: { abortRequested: false } } },
      { slot: { status: "asking" } },
    ])
    driver.end(0, "stopped")
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    driver.answer(0, "allow_once")
    driver.drain()
    expect(ends(driver)).toEqual(["aborted", "done"])
  })

  it("ends a parked run, and what waited behind it goes on", () => {
    const driver = new Driver()
    driver.submit("one")
    driver.submit("two")
    for (let deaths = 0; deaths < 5; deaths++) driver.kill()
    expect(driver.data.parked).not.toBeNull()
    driver.cancel(id(driver, 0))
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    driver.drain()
    expect(ends(driver)).toEqual(["aborted", "done"])
  })

  it("followed by a cancel of everything is one of everything", () => {
    const driver = two()
    driver.cancel(id(driver, 0))
    driver.cancel()
    driver.submit("three")
    driver.end(0, "stopped")
    expect(cancels(driver)).toEqual([{ cancelled: true }, { cancelled: true }])
    expect(ends(driver)).toEqual(["aborted", "withdrawn", "queued"])
    expect(driver.data.state).toBe("idle")
  })

  it("leaves a compaction that somebody asked for", () => {
    const driver = two()
    driver.cancel(id(driver, 0))
    driver.compact()
    driver.drain()
    expect(driver.answers.find(({ kind }) => kind === "compact")?.ok).toBe(true)
    expect(ends(driver)).toEqual(["aborted", "done"])
  })

  it("does not take a late word of the run's plugins for one of the next run's", () => {
    const driver = new Driver({}, ["onYield"])
    driver.submit("one")
    driver.submit("two")
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.state).toBe("settling_run")
    driver.cancel(id(driver, 0))
    expect(driver.data.state).toBe("preparing_request")
    // The job of the hook, stopped only now.
    driver.end(0, "stopped")
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    expect(ends(driver)).toEqual(["aborted", "done"])
  })

  it("waits for what plugins do after the run, and the next run does not", () => {
    const driver = new Driver({}, ["afterRun"])
    driver.submit("one")
    driver.submit("two")
    driver.finish(0)
    driver.cancel(id(driver, 0))
    driver.end(0, "stopped")
    expect(driver.data.state).toBe("preparing_request")
    expect(cancels(driver)).toEqual([])
    driver.finish(driver.jobs.findIndex(({ type }) => type === "afterRun"))
    expect(cancels(driver)).toEqual([{ cancelled: true }])
    driver.drain()
    expect(ends(driver)).toEqual(["aborted", "done"])
  })

  it.each([1, 2, 3, 4].flatMap((commit) => (["before", "after"] as const).map((when) => ({ commit, when }))))(
    "is finished after a death $when commit $commit from it on, or never happened",
    ({ commit, when }) => {
      const driver = new Driver()
      driver.submit("one")
      driver.submit("two")
      driver.finish(0)
      driver.finish(0, ["unsafe"])
      driver.finish(0)
      const from = driver.commits
      driver.dying = { commit: from + commit, when }
      const alive = (act: () => void) => {
        try {
          act()
        } catch (error) {
          if (!(error instanceof Died)) throw error
          driver.dying = null
          driver.kill()
        }
      }
      alive(() => driver.cancel(id(driver, 0)))
      alive(() => driver.drain())
      alive(() => driver.drain())
      const happened = commit > 1 || when === "after"
      expect(ends(driver)).toEqual([happened ? "aborted" : "done", "done"])
      expect(driver.data).toMatchObject({ state: "idle", queue: [], cancels: [] })
      expect([...driver.world.values()].every((times) => times <= 1)).toBe(true)
    },
  )
})
