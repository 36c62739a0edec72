/**
 * A process that is killed around every step of a job: none is lost, none runs again after its end is committed, and every attempt has the
 * same idempotency key.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { bundleProgram, type Program } from "../support/program.ts"
import type { DeathCase } from "./death-case.ts"

vi.setConfig({ testTimeout: 120_000 })

let program: Program

beforeAll(async () => {
  program = await bundleProgram("test/queue/death-child.ts")
})

afterAll(() => program.remove())

const live = (
  given: DeathCase,
): Promise<{ readonly signal: NodeJS.Signals | null; readonly stdout: string; readonly stderr: string }> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH ?? "", SUPER_PI_DEATH_CASE: JSON.stringify(given) }
    const child = spawn(process.execPath, [program.file], { env, stdio: ["ignore", "pipe", "pipe"] })
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk) => {
      stdout += chunk
    })
    child.stderr.on("data", (chunk) => {
      stderr += chunk
    })
    child.on("error", reject)
    child.on("close", (_code, signal) => resolve({ signal, stdout, stderr }))
  })

type Crash = NonNullable<DeathCase["crash"]>

/** Lives with these deaths one after the other, then one to the end; what is left. */
const outlive = async (crashes: ReadonlyArray<Crash>) => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-queue-death-"))
  try {
    const [db, effects] = [join(directory, "jobs.db"), join(directory, "effects.log")]
    for (const crash of crashes) {
      const life = await live({ db, effects, crash })
      expect(life.signal, life.stderr).toBe("SIGKILL")
    }
    const last = await live({ db, effects, crash: null })
    expect(last.signal, last.stderr).toBe(null)
    const file = new Database(db, { readonly: true })
    const paid = file.prepare("SELECT value FROM documents WHERE kind = 'paid'").pluck().all()
    const jobs = file.prepare("SELECT state FROM jobs").pluck().all()
    file.close()
    const keys = existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : []
    return { end: JSON.parse(last.stdout.trim().split("\n").at(-1) ?? ""), paid, jobs, keys }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const commit = (n: number, when: Crash["when"]): Crash => ({ at: "commit", n, when })
const effect = (when: Crash["when"]): Crash => ({ at: "effect", n: 1, when })

/** Where it dies; how often the effect happens in all, and which attempt completes the job. */
const points: ReadonlyArray<readonly [title: string, crash: Crash, effects: number, attempt: number]> = [
  ["before the insert is committed", commit(1, "before"), 1, 1],
  ["after the insert", commit(1, "after"), 1, 1],
  ["before the claim is committed", commit(2, "before"), 1, 1],
  ["after the claim", commit(2, "after"), 1, 2],
  ["before the effect", effect("before"), 1, 2],
  ["after the effect", effect("after"), 2, 2],
  ["before the end is committed", commit(3, "before"), 2, 2],
  ["after the end", commit(3, "after"), 1, 1],
]

describe("a job whose process is killed", () => {
  it.each(points)("%s is done once", async (_title, crash, effects, attempt) => {
    const { end, jobs, keys, paid } = await outlive([crash])
    expect(end).toMatchObject({ state: "completed", attempt })
    expect(jobs).toEqual(["completed"])
    expect(paid.length).toBe(1)
    expect(keys.length).toBe(effects)
    expect(new Set(keys).size).toBe(1)
    expect(paid[0]).toBe(JSON.stringify(keys[0]))
  })

  it("again and again is done once in the end", async () => {
    const { end, keys, paid } = await outlive([
      commit(1, "after"),
      commit(2, "after"),
      effect("after"),
      effect("before"),
    ])
    expect(end).toMatchObject({ state: "completed", attempt: 4 })
    expect(paid.length).toBe(1)
    expect(keys.length).toBe(2)
    expect(new Set(keys).size).toBe(1)
  })
})
