/**
 * A turn that needs a person's answer, its process killed around every commit: the question is one, the answer counts once, what was not
 * allowed does not happen, and the turn ends.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { endOf, questionOf } from "../../src/domain/question.ts"
import { readWorld, type World } from "../../stress/database.ts"
import { bundleProgram, type Program } from "../support/program.ts"
import type { KillCase, KillPoint, Told } from "./case.ts"

/** Processes one after the other; the time is for a machine that does much else. */
vi.setConfig({ testTimeout: 180_000 })

/** Commits of a life that nothing kills; the first test holds them to the truth. The first three open, submit and say the prompt. */
const commits = { act: 7, ask: 8 }
const asking = 4

let program: Program
beforeAll(async () => {
  program = await bundleProgram("test/questions/child.ts")
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
  readonly world: World
  readonly told: Told
  /** How often the tool acted. */
  readonly acts: number
}

/** Kills at each point in turn, then lets one life run to its end. */
const lives = async (
  points: ReadonlyArray<KillPoint>,
  turn: KillCase["turn"],
  says: KillCase["says"],
): Promise<Outcome> => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-questions-"))
  try {
    const given = { db: join(directory, "questions.db"), acts: join(directory, "acts"), turn, says }
    for (const kill of points) {
      const life = await live({ ...given, kill })
      expect(life.signal, `${JSON.stringify(kill)}: ${life.stdout}${life.stderr}`).toBe("SIGKILL")
    }
    const last = await live({ ...given, kill: null })
    const told: Told = JSON.parse(last.stdout || `"${last.stderr}"`)
    expect(told).toMatchObject({ status: "done" })
    const acts = existsSync(given.acts) ? readFileSync(given.acts, "utf8").trim().split("\n").length : 0
    return { world: readWorld(given.db), told, acts }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Holds for every outcome. */
const check = ({ acts, world }: Outcome, says: KillCase["says"]): void => {
  const questions = world.tasks.filter((task) => questionOf(task) !== null)
  expect(questions).toHaveLength(1)
  for (const question of questions) {
    expect(question.status).toBe("terminal")
    const end = endOf(question)
    expect(end?.type).toBe("answered")
    if (end?.type === "answered" && typeof end.answer === "string") expect(end.answer).toBe(says)
  }
  expect(acts).toBeLessThanOrEqual(says === "allow_once" ? 1 : 0)
  for (const task of world.tasks) expect(task.status).toBe("terminal")
}

const points = (turn: KillCase["turn"]): ReadonlyArray<readonly [string, KillPoint]> =>
  Array.from({ length: commits[turn] - asking + 1 }, (_, at) => asking + at).flatMap((n) =>
    (["before", "after"] as const).map((when) => [`${when} commit ${n}`, { n, when }] as const),
  )

describe.each(["act", "ask"] as const)("the turn %s, which nothing kills", (turn) => {
  it("makes as many commits as are killed below, and asks once", async () => {
    const outcome = await lives([], turn, "allow_once")
    expect(outcome.told).toEqual({ status: "done", commits: commits[turn], asked: 1 })
    check(outcome, "allow_once")
    expect(outcome.acts).toBe(turn === "act" ? 1 : 0)
  })
})

describe.concurrent("a call that a person allows, killed", () => {
  it.each(points("act"))("%s", async (_, point) => {
    check(await lives([point], "act", "allow_once"), "allow_once")
  })
})

describe.concurrent("a call that a person rejects, killed", () => {
  it.each(points("act").filter(([, { n }]) => n < commits.act))("%s", async (_, point) => {
    check(await lives([point], "act", "reject_once"), "reject_once")
  })
})

describe.concurrent("a tool that asks, killed", () => {
  it.each(points("ask"))("%s", async (_, point) => {
    check(await lives([point], "ask", "allow_once"), "allow_once")
  })
})
