/**
 * What is queued, written, reset and withdrawn, in the pure machine: where everything takes its place, and that no death around a commit
 * loses or doubles any of it.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { contextOf, deriveContext } from "../../src/domain/context.ts"
import type { EntryId, SubmissionId } from "../../src/domain/ids.ts"
import type { Message } from "../../src/domain/message.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { Died, Driver } from "./driver.ts"

const said = (value: string): Message => ({ role: "user", content: [text(value)] })
const kinds = (driver: Driver) => driver.entries.map((entry) => entry.kind)
const rows = (driver: Driver) => [...driver.submissions.values()]
const status = (driver: Driver) => rows(driver).map((row) => row.status)
const reasons = (driver: Driver) => rows(driver).map((row) => row.reason)
/** The texts of user messages, in the order of the transcript. */
const prompts = (driver: Driver) =>
  driver.entries.flatMap((entry) => entry.model).flatMap((m) => (m.role === "user" ? [textOf(m.content)] : []))
/** The texts that the model would see now. */
const seen = (driver: Driver) =>
  contextOf(driver.data.context).flatMap((m) =>
    m.role === "user" || m.role === "assistant" ? [textOf(m.content)] : [],
  )
const id = (driver: Driver, at: number): SubmissionId => rows(driver)[at]?.id as SubmissionId

/** A driver in the middle of a batch of calls. */
const inTools = (...calls: ReadonlyArray<string>) => {
  const driver = new Driver()
  driver.submit("go")
  driver.finish(0)
  driver.finish(0, calls)
  driver.finish(0)
  expect(driver.data.state).toBe("executing_tools")
  return driver
}

describe("a note", () => {
  it("is appended at once in an idle conversation, and nothing runs", () => {
    const driver = new Driver()
    driver.write({ data: { by: "ann" } })
    expect(kinds(driver)).toEqual(["app.note"])
    expect(driver.jobs).toEqual([])
    expect(rows(driver)).toMatchObject([{ kind: "write", status: "done", entry: driver.entries[0]?.id, answer: null }])
    expect(driver.answers).toMatchObject([{ kind: "write", ok: true, value: { status: "done" } }])
  })

  it("is appended at once in the middle of a run, ahead of what was queued before it", () => {
    const driver = inTools("a")
    driver.submit("later")
    driver.write()
    expect(kinds(driver).at(-1)).toBe("app.note")
    expect(status(driver)).toEqual(["placed", "queued", "done"])
    driver.drain()
    expect(status(driver)).toEqual(["done", "done", "done"])
  })

  it("waits behind a queued reset, which would hide it otherwise", () => {
    const driver = inTools("a")
    driver.reset()
    driver.write()
    expect(status(driver)).toEqual(["placed", "queued", "queued"])
    driver.finish(0)
    expect(kinds(driver).slice(-2)).toEqual(["pi.reset", "app.note"])
  })
})

describe("a write that the model sees", () => {
  it("is appended at once where the conversation is idle, and asks no model", () => {
    const driver = new Driver()
    driver.write({ model: [said("the build is red")] })
    expect(seen(driver)).toEqual(["the build is red"])
    expect(driver.jobs).toEqual([])
    expect(driver.data.state).toBe("idle")
  })

  it("waits for the end of the batch, and joins before the next request", () => {
    const driver = inTools("a")
    driver.write({ model: [said("the build is red")] })
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant"])
    driver.finish(0)
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.tool-result", "app.note"])
    expect(driver.data.state).toBe("preparing_request")
  })

  it("waits for the answer where no calls come", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.write({ model: [said("x")] })
    driver.finish(0)
    driver.finish(0)
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "app.note"])
    driver.drain()
    expect(driver.data.state).toBe("idle")
    expect(status(driver)).toEqual(["done", "done"])
  })

  it("edits what the model sees of an earlier entry, and an edit of the same entry later on wins", () => {
    const driver = new Driver()
    driver.write({ model: [said("secret")] })
    const entry = driver.entries[0]?.id as EntryId
    driver.write({ kind: "pi.edit", edits: [{ type: "replace", entry, model: [said("[removed]")] }] })
    expect(seen(driver)).toEqual(["[removed]"])
    driver.write({ kind: "pi.edit", edits: [{ type: "omit", entry }] })
    expect(seen(driver)).toEqual([])
    expect(driver.entries[0]?.model).toEqual([said("secret")])
  })

  it("is stale where its head lies before the present context: it ends without an entry, and says so", () => {
    const driver = new Driver()
    driver.write({ model: [said("old")] })
    const old = driver.entries[0]?.id as EntryId
    driver.reset()
    driver.write({ head: old, model: [said("back")] })
    expect(kinds(driver)).toEqual(["app.note", "pi.reset"])
    expect(rows(driver)[2]).toMatchObject({ status: "unanswered", reason: "stale", entry: null })
    expect(rows(driver)[2]?.detail).toMatch(/^head: expected an entry of the present context, got entry/)
    expect(driver.settled).toContain(id(driver, 2))
  })

  it("counts heads placed at the same boundary before it", () => {
    const driver = inTools("a")
    const first = driver.entries[0]?.id as EntryId
    driver.reset("go on here")
    driver.write({ head: first, model: [said("a summary")] })
    driver.finish(0)
    expect(reasons(driver)).toEqual(["reset", null, "stale"])
    expect(seen(driver)).toEqual(["go on here"])
  })
})

describe("a reset", () => {
  it("begins a new context with the handoff as its first message; the transcript stays", () => {
    const driver = new Driver()
    driver.submit("long story")
    driver.drain()
    driver.reset("we were at the end")
    expect(seen(driver)).toEqual(["we were at the end"])
    expect(driver.entries).toHaveLength(3)
    driver.submit("go on")
    driver.drain()
    expect(seen(driver)).toEqual(["we were at the end", "go on", "said"])
  })

  it("without a handoff leaves nothing", () => {
    const driver = new Driver()
    driver.submit("long story")
    driver.drain()
    driver.reset()
    expect(contextOf(driver.data.context)).toEqual([])
  })

  it("is queued while a run is going; placed after its calls, it ends the run without an answer", () => {
    const driver = inTools("a")
    driver.reset()
    expect(driver.data.state).toBe("executing_tools")
    driver.finish(0)
    expect(driver.data.run).toBeNull()
    expect(driver.data.state).toBe("idle")
    expect(rows(driver)).toMatchObject([{ status: "unanswered", reason: "reset" }, { status: "done" }])
    expect([...driver.tasks.values()].every((task) => task.status === "terminal")).toBe(true)
    expect(contextOf(driver.data.context)).toEqual([])
  })

  it("behind an answer leaves it an answer", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.reset()
    driver.finish(0)
    driver.finish(0)
    expect(status(driver)).toEqual(["done", "done"])
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.reset"])
  })

  it("lets what was queued before it run in the new context", () => {
    const driver = inTools("a")
    driver.submit("next")
    driver.reset("fresh")
    driver.finish(0)
    expect(kinds(driver).slice(-2)).toEqual(["pi.reset", "pi.user"])
    expect(driver.data.run?.submissions.map((row) => row.id)).toEqual([id(driver, 1)])
    expect(seen(driver)).toEqual(["fresh", "next"])
    driver.drain()
    expect(status(driver)).toEqual(["unanswered", "done", "done"])
  })
})

describe("steers", () => {
  it("join one at a time, each after a batch of its own", () => {
    const driver = inTools("a")
    driver.submit("first", "steer")
    driver.submit("second", "steer")
    driver.finish(0)
    expect(prompts(driver)).toEqual(["go", "first"])
    driver.finish(0)
    driver.finish(0, ["b"])
    driver.finish(0)
    driver.finish(0)
    expect(prompts(driver)).toEqual(["go", "first", "second"])
    driver.drain()
    expect(status(driver)).toEqual(["done", "done", "done"])
  })

  it("join all at once where the conversation says so", () => {
    const driver = inTools("a")
    driver.configure({ steeringMode: "all" })
    driver.submit("first", "steer")
    driver.submit("later")
    driver.submit("second", "steer")
    driver.finish(0)
    expect(prompts(driver)).toEqual(["go", "first", "second"])
    driver.drain()
    expect(prompts(driver)).toEqual(["go", "first", "second", "later"])
  })

  it("that no batch took up start the next run, beside the oldest follow-up and in their order", () => {
    const driver = new Driver()
    driver.submit("go")
    driver.submit("follow")
    driver.submit("steer", "steer")
    driver.submit("follow again")
    driver.finish(0)
    driver.finish(0)
    expect(prompts(driver)).toEqual(["go", "follow", "steer"])
    expect(driver.data.run?.submissions).toHaveLength(2)
    driver.drain()
    expect(prompts(driver)).toEqual(["go", "follow", "steer", "follow again"])
  })
})

describe("follow-ups", () => {
  it("are answered one run each, oldest first", () => {
    const driver = new Driver()
    for (const value of ["one", "two", "three"]) driver.submit(value)
    driver.drain()
    const answers = rows(driver).map((row) => row.answer)
    expect(new Set(answers).size).toBe(3)
    expect(prompts(driver)).toEqual(["one", "two", "three"])
  })

  it("are answered by one run where the conversation says so", () => {
    const driver = new Driver()
    driver.configure({ followUpMode: "all" })
    for (const value of ["one", "two", "three"]) driver.submit(value)
    driver.drain()
    const answers = rows(driver).map((row) => row.answer)
    expect(answers[1]).toBe(answers[2])
    expect(answers[0]).not.toBe(answers[1])
  })

  it("show as a kind of the application's where they were submitted so; the model sees their content", () => {
    const driver = new Driver()
    driver.send({
      type: "submit",
      content: [text("ann: can you?")],
      whenBusy: "followUp",
      requestId: null,
      entry: { kind: "chat.mention", data: { author: "ann" } },
      reply: { succeed: () => undefined, fail: () => undefined },
    })
    expect(driver.entries).toMatchObject([
      { kind: "chat.mention", data: { author: "ann" }, model: [said("ann: can you?")] },
    ])
    driver.drain()
    expect(status(driver)).toEqual(["done"])
  })
})

describe("a run that failed", () => {
  const failed = () => {
    const driver = new Driver()
    driver.submit("one")
    driver.submit("two")
    driver.write({ model: [said("a note for the model")] })
    driver.finish(0)
    driver.failModel(0, false)
    expect(driver.data.state).toBe("idle")
    expect(status(driver)).toEqual(["unanswered", "queued", "queued"])
    return driver
  }

  it("leaves what is queued to the next input, which goes behind it", () => {
    const driver = failed()
    driver.submit("three")
    expect(kinds(driver).slice(-2)).toEqual(["app.note", "pi.user"])
    expect(prompts(driver)).toEqual(["one", "a note for the model", "two"])
    driver.drain()
    expect(prompts(driver)).toEqual(["one", "a note for the model", "two", "three"])
    expect(status(driver)).toEqual(["unanswered", "done", "done", "done"])
  })

  it("leaves it to the next write, too", () => {
    const driver = failed()
    driver.write({ model: [said("more")] })
    expect(prompts(driver)).toEqual(["one", "a note for the model", "more", "two"])
    expect(driver.data.state).toBe("preparing_request")
    driver.drain()
    expect(status(driver)).toEqual(["unanswered", "done", "done", "done"])
  })

  it("does not hold up a note", () => {
    const driver = failed()
    driver.write()
    expect(driver.data.state).toBe("idle")
    expect(kinds(driver).at(-1)).toBe("app.note")
    expect(status(driver)).toEqual(["unanswered", "queued", "queued", "done"])
  })
})

describe("withdrawing", () => {
  it("takes what is queued out of the queue and ends it", () => {
    const driver = inTools("a")
    driver.submit("later")
    driver.reset()
    driver.withdraw(id(driver, 1))
    driver.withdraw(id(driver, 2))
    expect(reasons(driver)).toEqual([null, "withdrawn", "withdrawn"])
    expect(driver.answers.slice(-2)).toMatchObject([
      { kind: "withdraw", ok: true, value: { status: "unanswered", reason: "withdrawn" } },
      { kind: "withdraw", ok: true },
    ])
    driver.drain()
    expect(status(driver)).toEqual(["done", "unanswered", "unanswered"])
    expect(prompts(driver)).toEqual(["go"])
  })

  it("fails for what is not queued, and changes nothing", () => {
    const driver = inTools("a")
    const commits = driver.commits
    driver.withdraw(id(driver, 0))
    expect(driver.answers.at(-1)).toMatchObject({ kind: "withdraw", ok: false })
    expect(driver.commits).toBe(commits)
  })
})

describe("cancel", () => {
  it("withdraws the inputs that are queued; writes stay, and the next submission places them first", () => {
    const driver = inTools("a")
    driver.submit("later")
    driver.write({ model: [said("keep this")] })
    driver.cancel()
    driver.end(0, "stopped")
    expect(driver.data.state).toBe("idle")
    expect(reasons(driver)).toEqual(["aborted", "withdrawn", null])
    expect(status(driver)).toEqual(["unanswered", "unanswered", "queued"])
    driver.submit("next")
    driver.drain()
    expect(prompts(driver)).toEqual(["go", "keep this", "next"])
    expect(status(driver)).toEqual(["unanswered", "unanswered", "done", "done"])
  })
})

describe("a batch of calls", () => {
  it("ends the run with a new context where a result hands off", () => {
    const driver = inTools("handoff-a")
    driver.finish(0)
    expect(driver.data.state).toBe("idle")
    expect(status(driver)).toEqual(["done"])
    expect(seen(driver)).toEqual(["note of handoff-a"])
    expect(kinds(driver)).toEqual(["pi.user", "pi.assistant", "pi.tool-result", "pi.reset"])
  })

  it("takes the note of the last call in call order where several hand off, whichever ended last", () => {
    const driver = inTools("handoff-a", "handoff-b")
    driver.finish(1)
    driver.finish(0)
    expect(seen(driver)).toEqual(["note of handoff-b"])
  })

  it("lets what is queued go on behind the handoff in the same commit", () => {
    const driver = inTools("handoff-a")
    driver.submit("now the other thing")
    const commits = driver.commits
    driver.finish(0)
    expect(driver.commits).toBe(commits + 1)
    expect(seen(driver)).toEqual(["note of handoff-a", "now the other thing"])
    expect(driver.data.state).toBe("preparing_request")
  })

  it("ends the run without another request only where every result asks for it", () => {
    const one = inTools("end-a", "b")
    one.finish(0)
    one.finish(0)
    expect(one.data.state).toBe("preparing_request")
    const both = inTools("end-a", "end-b")
    both.finish(0)
    both.finish(0)
    expect(both.data.state).toBe("idle")
    expect(status(both)).toEqual(["done"])
    const refused = inTools("end-a", "refused")
    refused.finish(0)
    expect(refused.data.state).toBe("preparing_request")
  })

  it("remembers over a death what the results that came before it ask for", () => {
    for (const [tool, state, sees] of [
      ["handoff-a", "idle", ["note of handoff-a"]],
      ["end-a", "preparing_request", null],
    ] as const) {
      const driver = inTools(tool, "safe")
      driver.finish(0)
      driver.kill()
      expect(driver.data.state).toBe("executing_tools")
      driver.finish(0)
      expect(driver.data.state).toBe(state)
      if (sees !== null) expect(seen(driver)).toEqual(sees)
    }
    const both = inTools("end-a", "safe-end")
    both.finish(0)
    both.kill()
    both.finish(0)
    expect(both.data.state).toBe("idle")
  })

  it("offers the tools that a result adds, from the next request on and after a death", () => {
    const driver = new Driver()
    driver.configure({ tools: ["offer-a"] })
    driver.submit("go")
    driver.finish(0)
    driver.finish(0, ["offer-a"])
    driver.finish(0)
    driver.finish(0)
    expect(driver.data.agent.tools).toEqual(["offer-a", "extra"])
    driver.kill()
    expect(driver.data.agent.tools).toEqual(["offer-a", "extra"])
  })
})

/** Where everything takes its place, in the fewest words: the model of `docs/forks.md`, *Boundaries*. */
class QueueModel {
  busy = false
  queue: Array<{ readonly label: string; readonly type: "follow" | "steer" | "write" | "note" | "reset" }> = []
  placed: Array<string> = []
  steers: "one-at-a-time" | "all" = "one-at-a-time"
  follows: "one-at-a-time" | "all" = "one-at-a-time"

  hand(label: string, type: QueueModel["queue"][number]["type"]): void {
    const input = type === "follow" || type === "steer"
    const free =
      type === "note" ? this.queue.every((one) => one.type !== "reset") : !this.busy && this.queue.length === 0
    if (free) {
      this.placed.push(label)
      if (input) this.busy = true
      return
    }
    this.queue.push({ label, type })
    if (!this.busy) this.boundary("final")
  }

  boundary(where: "afterTools" | "final"): void {
    const isInput = (type: string) => type === "follow" || type === "steer"
    const writes = this.queue.filter((one) => !isInput(one.type))
    const ends = where === "final" || writes.some((one) => one.type === "reset")
    const some = (type: string, mode: string) => {
      const all = this.queue.filter((one) => one.type === type)
      return mode === "all" ? all : all.slice(0, 1)
    }
    const inputs = [...some("steer", this.steers), ...(ends ? some("follow", this.follows) : [])]
    const gone = new Set([...writes, ...inputs])
    this.placed.push(...writes.map((one) => one.label))
    this.placed.push(...this.queue.filter((one) => inputs.includes(one)).map((one) => one.label))
    this.queue = this.queue.filter((one) => !gone.has(one))
    if (ends) this.busy = inputs.length > 0
  }
}

describe("a queue of any length", () => {
  const mode = fc.constantFrom("one-at-a-time" as const, "all" as const)
  const move = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("follow", "steer", "write", "note", "reset") },
    { weight: 4, arbitrary: fc.constantFrom("answer", "tools", "tools", "fail", "withdraw", "kill") },
  )
  /** The labels of what was placed, in the order of the transcript. */
  const labels = (driver: Driver) =>
    driver.entries.flatMap((entry) =>
      entry.data !== null
        ? [String(entry.data)]
        : entry.model.flatMap((m) => (m.role === "user" ? [textOf(m.content)] : [])),
    )

  it("takes its places as the model says, whatever comes when", () => {
    fc.assert(
      fc.property(mode, mode, fc.array(move, { maxLength: 40 }), (steeringMode, followUpMode, moves) => {
        const driver = new Driver()
        const model = new QueueModel()
        driver.configure({ steeringMode, followUpMode })
        model.steers = steeringMode
        model.follows = followUpMode
        for (const [at, each] of moves.entries()) {
          const label = `${each}-${at}`
          if (each === "follow" || each === "steer") driver.submit(label, each === "steer" ? "steer" : "followUp")
          else if (each === "note") driver.write({ data: label })
          else if (each === "write") driver.write({ model: [said(label)] })
          else if (each === "reset") driver.reset(label)
          if (["follow", "steer", "note", "write", "reset"].includes(each)) model.hand(label, each as "note")
          if (each === "withdraw") {
            const last = driver.data.queue.at(-1)
            if (last !== undefined) driver.withdraw(last.id)
            model.queue.pop()
          }
          if (each === "kill") driver.kill()
          if (model.busy && ["answer", "tools", "fail"].includes(each)) {
            driver.finish(0)
            if (each === "fail") driver.failModel(0, false)
            else driver.finish(0, each === "tools" ? ["safe"] : [])
            if (each === "tools") {
              driver.finish(0)
              driver.finish(0)
            }
            if (each === "fail") model.busy = false
            else model.boundary(each === "tools" ? "afterTools" : "final")
          }
          expect(labels(driver)).toEqual(model.placed)
          expect(driver.data.queue).toHaveLength(model.queue.length)
          expect(driver.data.run !== null).toBe(model.busy && driver.data.parked === null)
          fc.pre(driver.data.parked === null)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe("killed around any commit", () => {
  /** Everything of this file's subject in one conversation. */
  const story: ReadonlyArray<(driver: Driver) => void> = [
    (d) => d.submit("go"),
    (d) => d.finish(0),
    (d) => d.finish(0, ["safe-a", "handoff-safe"]),
    (d) => d.finish(0),
    (d) => d.write(),
    (d) => d.write({ model: [said("seen")] }),
    (d) => d.submit("steer", "steer"),
    (d) => d.reset("fresh"),
    (d) => d.write({ data: 1 }),
    (d) => d.withdraw(id(d, 2)),
    (d) => d.drain(),
    (d) => d.write({ kind: "pi.edit", edits: [{ type: "omit", entry: d.entries[0]?.id as EntryId }] }),
    (d) => d.submit("last"),
    (d) => d.cancel(),
    (d) => d.drain(),
    (d) => d.submit("really last"),
    (d) => d.drain(),
  ]

  const live = (dying: Driver["dying"]): Driver => {
    const driver = new Driver()
    driver.dying = dying
    for (const step of story) {
      try {
        step(driver)
      } catch (cause) {
        if (!(cause instanceof Died)) throw cause
        driver.dying = null
        driver.kill()
      }
    }
    driver.dying = null
    driver.submit("whatever is left")
    driver.drain()
    return driver
  }

  const commits = live(null).commits

  it.each(
    Array.from({ length: commits }, (_, at) => at + 1).flatMap((commit) => [
      ["before", commit] as const,
      ["after", commit] as const,
    ]),
  )("%s commit %i, everything that was stored ends, and nothing is placed twice", (when, commit) => {
    const driver = live({ commit, when })
    expect(status(driver).filter((one) => one === "queued" || one === "placed")).toEqual([])
    expect([...driver.tasks.values()].filter((task) => task.status !== "terminal")).toEqual([])
    const placed = rows(driver).flatMap((row) => (row.entry === null ? [] : [row.entry]))
    expect(new Set(placed).size).toBe(placed.length)
    for (const entry of placed) expect(driver.entries.some((one) => one.id === entry)).toBe(true)
    expect(contextOf(driver.data.context)).toEqual(deriveContext(driver.entries))
  })
})

describe("any order of inputs, writes, resets, withdrawals and deaths", () => {
  const n = fc.nat(30)
  const entryOf = (d: Driver, at: number): EntryId => d.entries[at % d.entries.length]?.id as EntryId
  const step: fc.Arbitrary<(d: Driver) => void> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .constantFrom("followUp" as const, "steer" as const, "reject" as const)
        .map((how) => (d: Driver) => d.submit("x", how)),
    },
    { weight: 2, arbitrary: fc.constant((d: Driver) => d.write()) },
    { weight: 2, arbitrary: fc.constant((d: Driver) => d.write({ model: [said("w")] })) },
    {
      weight: 2,
      arbitrary: n.map((at) => (d: Driver) => {
        if (d.entries.length > 0) d.write({ head: entryOf(d, at), model: [said("h")] })
      }),
    },
    {
      weight: 2,
      arbitrary: n.map((at) => (d: Driver) => {
        if (d.entries.length > 0) d.write({ kind: "pi.edit", edits: [{ type: "omit", entry: entryOf(d, at) }] })
      }),
    },
    { weight: 2, arbitrary: fc.option(fc.constant("note"), { nil: null }).map((h) => (d: Driver) => d.reset(h)) },
    {
      weight: 2,
      arbitrary: n.map((at) => (d: Driver) => {
        if (d.submissions.size > 0) d.withdraw(id(d, at % d.submissions.size))
      }),
    },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.cancel()) },
    {
      weight: 1,
      arbitrary: fc
        .record({
          steeringMode: fc.constantFrom("all" as const, "one-at-a-time" as const),
          followUpMode: fc.constantFrom("all" as const, "one-at-a-time" as const),
        })
        .map((agent) => (d: Driver) => d.configure(agent)),
    },
    {
      weight: 12,
      arbitrary: fc
        .tuple(n, fc.array(fc.constantFrom("safe", "unsafe", "handoff", "end", "end-one", "refused"), { maxLength: 3 }))
        .map(([at, calls]) => (d: Driver) => {
          if (d.jobs.length > 0) d.finish(at % d.jobs.length, calls)
        }),
    },
    { weight: 1, arbitrary: n.map((at) => (d: Driver) => d.failModel(at % Math.max(1, d.jobs.length), false)) },
    { weight: 1, arbitrary: fc.constant((d: Driver) => d.kill()) },
  )

  it("places each at most once, writes exactly as they were asked for, and ends them all", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const driver = new Driver({ maxRetries: 2 })
        for (const each of steps) {
          each(driver)
          expect(contextOf(driver.data.context)).toEqual(deriveContext(driver.entries))
        }
        driver.drain()
        if (driver.data.parked !== null) {
          driver.retry()
          driver.drain()
        }
        for (let more = 0; driver.data.queue.length > 0 && more < 100; more++) {
          driver.submit("last")
          driver.drain()
        }
        expect(driver.data.state).toBe("idle")
        for (const row of rows(driver)) {
          const entry = driver.entries.find((one) => one.id === row.entry)
          expect(["done", "unanswered"]).toContain(row.status)
          if (row.kind === "input") continue
          expect(row.status === "done").toBe(entry !== undefined)
          if (entry === undefined) continue
          const { head, ...asked } = row.content as { readonly head: unknown }
          expect(entry).toMatchObject(asked)
          expect(entry.head).toBe(head === "self" ? entry.id : head)
        }
        const placed = rows(driver).flatMap((row) => (row.entry === null ? [] : [row.entry]))
        expect(new Set(placed).size).toBe(placed.length)
      }),
      { numRuns: 1_000 },
    )
  })
})
