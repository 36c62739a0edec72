/**
 * A turn with three tool calls (unsafe, safe, unsafe at once), killed at every commit boundary and around every model request and tool call. After
 * each restart: the same answer, nothing acknowledged missing, no unsafe call twice, a history that every provider accepts.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { EntryKind } from "../../src/domain/entry.ts"
import { contextFaults } from "../../stress/context-faults.ts"
import { faultsAtRest } from "../../stress/invariants.ts"
import { bundleProgram, type Program } from "../support/program.ts"
import { answer, type ChildLine, type CrashPoint, nextAnswer, safeLine, unsafeTokens } from "./case.ts"
import { Lives, type Variant } from "./lives.ts"

/** Commits, model requests and calls of the turn when nothing kills it; the first test holds them to the truth. */
const whole = { commit: 8, model: 2, tool: 3 }

/** The same with a second input that is queued meanwhile and answered in one turn of its own. */
const withFollowUp = { commit: 10, model: 3, tool: 3 }

/** With a first turn, and a compaction before the last request. */
const withCompaction = { commit: 12, model: 4, tool: 3 }

/** Two processes one after the other; the time is for a machine that does much else. */
vi.setConfig({ testTimeout: 180_000 })

let program: Program

beforeAll(async () => {
  program = await bundleProgram("test/crash/child.ts")
})

afterAll(() => program.remove())

const settledOf = (lines: ReadonlyArray<ChildLine>, request = "turn") =>
  lines.find((line) => line.type === "settled" && line.request === request)

const killed = (point: CrashPoint): string => `${point.when} ${point.at} ${point.n}`

/** Kills at each point in turn, then lets one life run to its end. */
const survives = async (points: ReadonlyArray<CrashPoint>, variant: Variant = {}): Promise<void> => {
  const { compaction = false, followUp = false } = variant
  const lives = new Lives(program.file, variant)
  try {
    for (const point of points) {
      const life = await lives.live(point)
      expect(life.signal, `${killed(point)}: ${life.stderr}`).toBe("SIGKILL")
      expect(life.lost).toEqual([])
    }
    const last = await lives.live(null)
    expect(last, last.stderr).toMatchObject({ code: 0, lost: [] })
    expect(settledOf(last.lines)).toMatchObject({ status: "done", text: answer })
    if (followUp) expect(settledOf(last.lines, "next")).toMatchObject({ status: "done", text: nextAnswer })
    expect(faultsAtRest(lives.world(), lives.effects(), contextFaults)).toEqual([])
    for (const token of unsafeTokens) expect(lives.effects().get(token)?.starts ?? 0).toBeLessThanOrEqual(1)
    expect(lives.written(safeLine)).toBeGreaterThanOrEqual(1)
    expect(lives.world().submissions).toHaveLength(followUp || compaction ? 2 : 1)
    const placed = lives.world().entries.filter((entry) => entry.kind === EntryKind.compaction)
    expect(placed).toHaveLength(compaction ? 1 : 0)
  } finally {
    lives.remove()
  }
}

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, at) => at + 1)

const points = (at: CrashPoint["at"], whens: ReadonlyArray<CrashPoint["when"]>): ReadonlyArray<CrashPoint> =>
  numbers(whole[at]).flatMap((n) => whens.map((when) => ({ at, n, when })))

const commits = points("commit", ["before", "after"])
const requests = points("model", ["before", "during", "after"])
const calls = points("tool", ["before", "during", "after"])

describe("a turn with three tool calls", () => {
  it("makes as many commits, requests and calls as are killed below", async () => {
    const lives = new Lives(program.file)
    try {
      const life = await lives.live(null)
      expect(life.code, life.stderr).toBe(0)
      expect(life.lines.find((line) => line.type === "counts")).toEqual({ type: "counts", ...whole })
      expect(settledOf(life.lines)).toMatchObject({ status: "done", text: answer })
      expect(faultsAtRest(lives.world(), lives.effects(), contextFaults)).toEqual([])
      for (const token of unsafeTokens) expect(lives.effects().get(token)).toEqual({ starts: 1, ends: 1 })
      expect(lives.written(safeLine)).toBe(1)
    } finally {
      lives.remove()
    }
  })

  it("repeats nothing when it is opened again after it has ended", async () => {
    const lives = new Lives(program.file)
    try {
      await lives.live(null)
      const before = lives.world()
      const again = await lives.live(null)
      expect(settledOf(again.lines)).toMatchObject({ status: "done", text: answer })
      expect(lives.world().entries).toEqual(before.entries)
      for (const token of unsafeTokens) expect(lives.effects().get(token)?.starts).toBe(1)
      expect(lives.written(safeLine)).toBe(1)
    } finally {
      lives.remove()
    }
  })
})

describe("the same turn with a second input queued", () => {
  it("makes as many commits and requests as are killed below", async () => {
    const lives = new Lives(program.file, { followUp: true })
    try {
      const life = await lives.live(null)
      expect(life.lines.find((line) => line.type === "counts")).toEqual({ type: "counts", ...withFollowUp })
      expect(settledOf(life.lines, "next")).toMatchObject({ status: "done", text: nextAnswer })
      expect(faultsAtRest(lives.world(), lives.effects(), contextFaults)).toEqual([])
    } finally {
      lives.remove()
    }
  })
})

describe.concurrent("killed once, it ends the same", () => {
  it.each([...commits, ...requests, ...calls].map((point) => [killed(point), point] as const))(
    "%s",
    async (_, point) => {
      await survives([point])
    },
  )
})

describe.concurrent("killed once with a second input queued, both are answered", () => {
  const after = numbers(withFollowUp.commit).map((n): CrashPoint => ({ at: "commit", n, when: "after" }))
  it.each(after.map((point) => [killed(point), point] as const))("%s", async (_, point) => {
    await survives([point], { followUp: true })
  })
})

describe("the same turn in a long conversation, whose second request waits for a compaction", () => {
  it("makes as many commits and requests as are killed below", async () => {
    const lives = new Lives(program.file, { compaction: true })
    try {
      const life = await lives.live(null)
      expect(life.lines.find((line) => line.type === "counts")).toEqual({ type: "counts", ...withCompaction })
      expect(settledOf(life.lines)).toMatchObject({ status: "done", text: answer })
      expect(faultsAtRest(lives.world(), lives.effects(), contextFaults)).toEqual([])
    } finally {
      lives.remove()
    }
  })
})

describe.concurrent("killed once around its compaction, it is compacted once and ends the same", () => {
  const around = (at: "commit" | "model", from: number, whens: ReadonlyArray<CrashPoint["when"]>) =>
    numbers(withCompaction[at])
      .filter((n) => n >= from)
      .flatMap((n) => whens.map((when): CrashPoint => ({ at, n, when })))
  // The compaction is the third request; before its first commit the turn is the one that is killed above.
  const points = [...around("commit", 8, ["before", "after"]), ...around("model", 3, ["before", "during", "after"])]
  it.each(points.map((point) => [killed(point), point] as const))("%s", async (_, point) => {
    await survives([point], { compaction: true })
  })
})

describe.concurrent("killed again while it recovers, it ends the same", () => {
  // Behind the last commit nothing is left to recover.
  const first = commits.slice(0, -1).filter(({ n, when }) => when === (n % 2 === 0 ? "after" : "before"))
  const twice = first.map((point, at): readonly [string, ReadonlyArray<CrashPoint>] => {
    const again: CrashPoint = { at: "commit", n: 1, when: at % 4 < 2 ? "before" : "after" }
    return [`${killed(point)}, then ${killed(again)}`, [point, again]]
  })
  it.each(twice)("%s", async (_, both) => {
    await survives(both)
  })
})
