/**
 * Inputs that only change choices, in the pure machine: they take their turn, ask no model, and are done in the commit that makes the change.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { WhenBusy } from "../../src/domain/submission.ts"
import { Died, Driver } from "./driver.ts"

const make = (): Driver => new Driver({}, ["onInput"])
const rows = (driver: Driver) => [...driver.submissions.values()]
const statuses = (driver: Driver) => rows(driver).map(({ status }) => status)
const kinds = (driver: Driver) => driver.entries.map(({ kind }) => kind)
const stored = (driver: Driver) => [...driver.documents.values()].find(({ kind }) => kind === "pi.agent")?.value
const requests = (driver: Driver) => driver.events.filter(({ type }) => type === "turn_started").length

describe("an input that only changes choices", () => {
  it("is done in one commit with its change, and asks no model", () => {
    const driver = make()
    driver.submit("/be brief")
    const before = driver.commits
    driver.finish(0)
    expect(driver.commits).toBe(before + 1)
    const [entry] = driver.entries
    expect(entry).toMatchObject({ kind: "pi.command", model: [], data: { text: "/be brief", said: "changed" } })
    expect(rows(driver)).toMatchObject([{ status: "done", detail: "changed", entry: entry?.id, answer: entry?.id }])
    expect(driver.settled).toEqual([rows(driver)[0]?.id])
    expect(stored(driver)).toMatchObject({ instructions: "/be brief" })
    expect(driver.events.filter(({ type }) => type === "notice")).toMatchObject([{ level: "info", message: "changed" }])
    expect(driver.data).toMatchObject({ state: "idle", run: null, queue: [] })
    expect(driver.jobs).toEqual([])
    expect([...driver.tasks.values()]).toEqual([])
    expect(driver.data.conversation.title).toBeNull()
  })

  it("waits for the run before it, and what is behind it goes on with the change", () => {
    const driver = make()
    driver.submit("one")
    driver.finish(0)
    driver.submit("/be brief")
    driver.submit("two")
    driver.finish(1)
    driver.finish(1)
    expect(statuses(driver)).toEqual(["placed", "queued", "queued"])
    driver.finish(0)
    driver.finish(0)
    expect(statuses(driver)).toEqual(["done", "done", "placed"])
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.command", "pi.user"])
    driver.drain()
    expect(requests(driver)).toBe(2)
  })

  it("behind an answer lets the conversation rest", () => {
    const driver = make()
    driver.submit("one")
    driver.finish(0)
    driver.submit("/be brief")
    driver.finish(1)
    driver.drain()
    expect(driver.data.state).toBe("idle")
    expect(statuses(driver)).toEqual(["done", "done"])
    expect(requests(driver)).toBe(1)
  })

  it("counts from the next request on where it steers", () => {
    const driver = make()
    driver.submit("one")
    driver.finish(0)
    driver.finish(0)
    driver.finish(0, ["safe"])
    driver.finish(0)
    driver.submit("/be brief", "steer")
    driver.finish(1)
    driver.finish(0)
    expect(statuses(driver)).toEqual(["placed", "done"])
    expect(driver.data.run?.submissions).toHaveLength(1)
    driver.drain()
    expect(statuses(driver)).toEqual(["done", "done"])
  })

  it("keeps its order where all that is queued is taken at once", () => {
    const driver = make()
    driver.configure({ followUpMode: "all" })
    driver.submit("one")
    driver.finish(0)
    for (const value of ["two", "/be brief", "three"]) driver.submit(value)
    driver.drain()
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.user", "pi.command", "pi.user", "pi.assistant"])
    expect(statuses(driver)).toEqual(["done", "done", "done", "done"])
  })

  it.each([1, 2].flatMap((commit) => (["before", "after"] as const).map((when) => ({ commit, when }))))(
    "is made once, or not yet, by a process that dies $when commit $commit",
    ({ commit, when }) => {
      const driver = make()
      driver.dying = { commit, when }
      const alive = (act: () => void) => {
        try {
          act()
        } catch (error) {
          if (!(error instanceof Died)) throw error
          driver.dying = null
          driver.kill()
        }
      }
      alive(() => driver.submit("/be brief"))
      if (rows(driver).length === 0) driver.submit("/be brief")
      alive(() => driver.drain())
      alive(() => driver.drain())
      expect(kinds(driver)).toEqual(["pi.command"])
      expect(statuses(driver)).toEqual(["done"])
      expect(stored(driver)).toMatchObject({ instructions: "/be brief" })
      expect(driver.data).toMatchObject({ state: "idle", queue: [] })
      expect(requests(driver)).toBe(0)
    },
  )

  const step = fc.oneof(
    fc.record({
      do: fc.constant("submit" as const),
      text: fc.constantFrom("/be brief", "/be kind", "ask"),
      whenBusy: fc.constantFrom<WhenBusy>("followUp", "steer"),
    }),
    fc.record({
      do: fc.constantFrom("finish", "finish", "finish", "kill", "cancel", "dieBefore", "dieAfter"),
      at: fc.nat(3),
    }),
  )

  it("has its end under any order of inputs, ends, cancels and deaths, and starts no run", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const driver = make()
        const perform = (one: (typeof steps)[number]): void => {
          if (one.do === "submit") driver.submit(one.text, one.whenBusy)
          else if (one.do === "finish") driver.finish(one.at % Math.max(1, driver.jobs.length))
          else if (one.do === "kill") driver.kill()
          else if (one.do === "cancel") driver.cancel()
          else driver.dying = { commit: driver.commits + 1 + one.at, when: one.do === "dieBefore" ? "before" : "after" }
        }
        for (const one of steps) {
          try {
            perform(one)
          } catch (error) {
            if (!(error instanceof Died)) throw error
            driver.dying = null
            driver.kill()
          }
        }
        driver.dying = null
        driver.drain()
        driver.submit("last")
        driver.drain()
        if (driver.data.parked !== null) return
        expect(driver.data).toMatchObject({ state: "idle", queue: [] })
        for (const row of rows(driver)) expect(["done", "unanswered"]).toContain(row.status)
        const commands = new Set(driver.entries.filter(({ kind }) => kind === "pi.command").map(({ id }) => id))
        const done = rows(driver).filter((row) => row.status === "done" && row.entry === row.answer)
        expect(new Set(done.map(({ entry }) => entry))).toEqual(commands)
        const asked = driver.events.flatMap((event) => (event.type === "turn_started" ? event.submission_ids : []))
        for (const row of done) expect(asked).not.toContain(row.id)
      }),
      { numRuns: 400 },
    )
  })
})
