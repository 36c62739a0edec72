/**
 * A call that pays, killed before, during and after its effect, while its tool finds out what became of it, and around every commit: whatever
 * happens it is paid at most once, what the transcript says is true, and what nobody can know is in doubt.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { callOf } from "../../src/domain/effect.ts"
import { textOf } from "../../src/domain/message.ts"
import type { Task } from "../../src/domain/task.ts"
import { readWorld } from "../../stress/database.ts"
import { bundleProgram, type Program } from "../support/program.ts"
import { answer, type Finding, type KillCase, type KillPoint } from "./case.ts"

/** Processes one after the other; the time is for a machine that does much else. */
vi.setConfig({ testTimeout: 180_000 })

let program: Program
beforeAll(async () => {
  program = await bundleProgram("test/effects/child.ts")
})
afterAll(() => program.remove())

interface Life {
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

const live = (given: KillCase): Promise<Life> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH ?? "", SUPER_PI_KILL_CASE: JSON.stringify(given) }
    const child = spawn(process.execPath, [program.file], { env, stdio: ["ignore", "pipe", "pipe"] })
    const text = { stdout: "", stderr: "" }
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (chunk: string) => {
        text[stream] += chunk
      })
    }
    child.on("error", reject)
    child.on("close", (_, signal) => resolve({ signal, ...text }))
  })

interface Outcome {
  readonly task: Task
  /** What the model was told about the call. */
  readonly result: string
  /** Keys of the payments that happened. */
  readonly payments: ReadonlyArray<string>
}

/** Kills at each point in turn, then lets one life run to its end. */
const after = async (points: ReadonlyArray<KillPoint>, finding: Finding): Promise<Outcome> => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-effects-"))
  try {
    const given = { db: join(directory, "effects.db"), payments: join(directory, "payments"), finding }
    for (const kill of points) {
      const life = await live({ ...given, kill })
      expect(life.signal, `${JSON.stringify(kill)}: ${life.stdout}${life.stderr}`).toBe("SIGKILL")
    }
    const last = await live({ ...given, kill: null })
    expect(JSON.parse(last.stdout || last.stderr)).toMatchObject({ status: "done", text: answer })
    const world = readWorld(given.db)
    const [task, ...more] = world.tasks.filter((row) => callOf(row) !== null)
    if (task === undefined || more.length > 0) throw new Error(`${more.length} calls too many, or none`)
    const results = world.entries
      .filter((entry) => entry.task === task.id)
      .flatMap((entry) => entry.model)
      .flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : []))
    expect(results).toHaveLength(1)
    const payments = existsSync(given.payments) ? readFileSync(given.payments, "utf8").trim().split("\n") : []
    expect(payments.length).toBeLessThanOrEqual(1)
    for (const key of payments) expect(key).toBe(callOf(task)?.effect)
    return { task, result: results[0] ?? "", payments }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const effect = (when: "before" | "during" | "after"): KillPoint => ({ at: "effect", when })
const commit = (n: number, when: "before" | "after"): KillPoint => ({ at: "commit", n, when })
const name = (points: ReadonlyArray<KillPoint>): string =>
  points
    .map((point) => [point.at, ...("n" in point ? [point.n] : []), ...("when" in point ? [point.when] : [])].join(" "))
    .join(", then ")

describe.concurrent("a payment whose tool can find out", () => {
  /** Killed there, and whether the payment is expected to have been made before the last life. */
  const cases: ReadonlyArray<ReadonlyArray<KillPoint>> = [
    [effect("before")],
    [effect("during")],
    [effect("after")],
    [effect("before"), { at: "reconcile" }],
    [effect("after"), { at: "reconcile" }],
    [effect("after"), { at: "reconcile" }, { at: "reconcile" }],
    // The first commit of a second life takes the call up; the second one holds what was found.
    ...(["before", "after"] as const).flatMap((when) => [
      [effect("before"), effect("before")],
      [effect("after"), commit(1, when)],
      [effect("after"), commit(2, when)],
      [effect("before"), commit(2, when)],
    ]),
  ]

  it.each(cases.map((points) => [name(points), points] as const))(
    "is paid exactly once, killed at %s",
    async (_, points) => {
      const { payments, result, task } = await after(points, "truth")
      expect(payments).toHaveLength(1)
      expect(result).toMatch(/^paid/)
      expect(task).toMatchObject({ status: "terminal", inDoubt: false, outcome: { status: "completed" } })
    },
  )
})

describe.concurrent("a payment of which nobody can tell what became", () => {
  // The fifth commit of the first life is that of the result.
  const points = [effect("before"), effect("during"), effect("after"), commit(5, "before")]
  const findings: ReadonlyArray<readonly [Finding, RegExp]> = [
    ["none", /interrupted.*may or may not/],
    ["unknown", /the bank does not answer\./],
    ["fails", /Finding out failed: the bank is closed\./],
  ]

  it.each(
    findings.flatMap(([finding, words]) => points.map((point) => [finding, name([point]), words, point] as const)),
  )("(finding: %s) is in doubt and not tried again, killed at %s", async (finding, _, words, point) => {
    const { payments, result, task } = await after([point], finding)
    expect(payments).toHaveLength(point.at === "effect" && point.when === "before" ? 0 : 1)
    expect(result).toMatch(words)
    expect(task).toMatchObject({ status: "terminal", inDoubt: true, outcome: { status: "failed" } })
  })
})

describe("a payment whose result was committed", () => {
  it("is neither looked into nor repeated", async () => {
    const { payments, result, task } = await after([commit(5, "after")], "fails")
    expect([payments.length, result, task.inDoubt]).toEqual([1, "paid", false])
  })
})
