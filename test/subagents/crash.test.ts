/**
 * A parent with three subagents, killed before and after every commit: the children finish, each summary arrives once, no child does anything
 * twice. On a database in memory for every commit; by SIGKILL of a real process for some.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Logger } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { Sessions } from "../../src/actors/sessions.ts"
import { TaskKind } from "../../src/domain/task.ts"
import { type MemoryDatabase, makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { bundleProgram, type Program } from "../support/program.ts"
import { type Ended, expected, life, nodeOf } from "./life.ts"

vi.setConfig({ testTimeout: 180_000 })

interface Death {
  readonly n: number
  readonly when: "before" | "after"
}

/** A life on the database; null where it died. A dead one answers nothing any more, and nothing that it does is kept. */
const live = (database: MemoryDatabase, death: Death | null, effects: Array<string>) => {
  let commits = 0
  let dead = false
  return new Promise<{ readonly ended: Ended | null; readonly commits: number }>((resolve, reject) => {
    const die = Effect.suspend(() => {
      dead = true
      resolve({ ended: null, commits })
      return Effect.never
    })
    /** Every question and every write of a dead process stays without an answer. */
    const mortal = (store: StoreService): StoreService => {
      const guarded = Object.entries(store).map(([name, member]) => {
        if (typeof member !== "function")
          return [name, Effect.isEffect(member) ? guard(member as Effect.Effect<unknown>) : member]
        return [
          name,
          (...args: ReadonlyArray<unknown>) =>
            guard(
              Effect.suspend(() => (member as (...all: ReadonlyArray<unknown>) => Effect.Effect<unknown>)(...args)),
            ),
        ]
      })
      const all = Object.fromEntries(guarded) as unknown as StoreService // the same members, each guarded
      return {
        ...all,
        commit: (commit) =>
          Effect.suspend(() => {
            if (dead) return Effect.never
            const n = ++commits
            if (death?.n === n && death.when === "before") return die
            const written = store.commit(commit)
            return death?.n === n ? Effect.zipRight(written, die) : written
          }),
      }
    }
    const guard = <A>(effect: Effect.Effect<A>): Effect.Effect<A> =>
      Effect.suspend(() => (dead ? Effect.never : effect))
    const store = Layer.effect(Store, Effect.map(makeMemoryStore(database), mortal))
    const happen = (name: string) => {
      if (!dead) effects.push(name)
    }
    const program = Effect.flatMap(Sessions, (sessions) =>
      // Before the node stops: a clean stop has commits of its own.
      Effect.tap(life(sessions), (ended) => Effect.sync(() => resolve({ ended, commits }))),
    ).pipe(Effect.provide(nodeOf(store, happen)), Effect.provide(Logger.remove(Logger.defaultLogger)))
    Effect.runPromise(program).catch(reject)
  })
}

/** What must hold of the rows in the end. */
const checkRows = (database: MemoryDatabase, label: string) => {
  const tasks = [...database.records.tasks.values()]
  const subagents = tasks.filter(({ kind }) => kind === TaskKind.subagent)
  expect(
    subagents.map(({ status, outcome }) => `${status} ${outcome?.status}`),
    label,
  ).toEqual(["terminal completed", "terminal completed", "terminal completed"])
  expect(
    tasks.filter(({ status }) => status !== "terminal"),
    label,
  ).toEqual([])
  expect(database.records.conversations.size, label).toBe(4)
  expect(
    [...database.records.submissions.values()].map(({ status }) => status),
    label,
  ).toEqual(["done", "done", "done", "done"])
}

describe("killed around every commit, on a database in memory", () => {
  it("makes the same of it in the end, with every summary once and every unsafe call at most once", async () => {
    const effects: Array<string> = []
    const whole = memoryDatabase()
    const { commits, ended } = await live(whole, null, effects)
    expect(ended).toEqual(expected)
    expect([...effects].sort()).toEqual(["a", "b", "c"])
    checkRows(whole, "whole")
    // Open, input, delegation, and for each child: begin, turn, call, answer, end.
    expect(commits).toBeGreaterThanOrEqual(18)
    let killed = 0
    for (let n = 1; n <= commits; n++) {
      for (const when of ["before", "after"] as const) {
        const label = `${when} commit ${n}`
        const database = memoryDatabase()
        const happened: Array<string> = []
        const first = await live(database, { n, when }, happened)
        if (first.ended === null) killed++
        const second = await live(database, null, happened)
        const { children = [], ...parent } = second.ended ?? {}
        expect(parent, label).toEqual({ status: expected.status, text: expected.text, summaries: expected.summaries })
        expect(
          children.map(({ asked }) => asked),
          label,
        ).toEqual([["a"], ["b"], ["c"]])
        for (const name of ["a", "b", "c"]) {
          expect(happened.filter((one) => one === name).length, `${label}: ${name}`).toBeLessThanOrEqual(1)
        }
        checkRows(database, label)
      }
    }
    // The node's own commits come when they come: some lives have fewer.
    expect(killed).toBeGreaterThan(commits)
  })
})

describe("killed by SIGKILL", () => {
  let program: Program
  const directory = mkdtempSync(join(tmpdir(), "super-pi-subagents-crash-"))
  beforeAll(async () => {
    program = await bundleProgram("test/subagents/kill-child.ts")
  })
  afterAll(() => {
    program.remove()
    rmSync(directory, { recursive: true, force: true })
  })

  const run = (given: { readonly db: string; readonly effects: string; readonly death: Death | null }) =>
    new Promise<{ readonly signal: NodeJS.Signals | null; readonly ended: Ended | null; readonly stderr: string }>(
      (resolve, reject) => {
        const env = { PATH: process.env.PATH ?? "", SUPER_PI_SUBAGENTS_CASE: JSON.stringify(given) }
        const child = spawn(process.execPath, [program.file], { env, stdio: ["ignore", "pipe", "pipe"] })
        const out = { stdout: "", stderr: "" }
        for (const stream of ["stdout", "stderr"] as const) child[stream].on("data", (chunk) => (out[stream] += chunk))
        child.on("error", reject)
        child.on("close", (_code, signal) => {
          resolve({ signal, ended: out.stdout === "" ? null : JSON.parse(out.stdout), stderr: out.stderr })
        })
      },
    )

  // The delegation's commit, the begin of a child, and deep in the children's turns.
  it.each([
    { n: 3, when: "before" },
    { n: 3, when: "after" },
    { n: 7, when: "after" },
    { n: 12, when: "before" },
    { n: 16, when: "after" },
  ] as const)("$when commit $n, the next process makes the same of it", async (death) => {
    const paths = {
      db: join(directory, `${death.when}-${death.n}.db`),
      effects: join(directory, `${death.when}-${death.n}.log`),
    }
    const killed = await run({ ...paths, death })
    expect(killed.signal, killed.stderr).toBe("SIGKILL")
    const next = await run({ ...paths, death: null })
    expect(next.ended, next.stderr).toMatchObject({
      status: "done",
      text: expected.text,
      summaries: expected.summaries,
    })
    expect(next.ended?.children.map(({ asked }) => asked)).toEqual([["a"], ["b"], ["c"]])
    const happened = readFileSync(paths.effects, "utf8").trim().split("\n")
    expect(new Set(happened).size).toBe(happened.length)
  })
})
