/**
 * Writes, edits, a fork, a reset and a handoff, killed before and after every commit: the next life makes the same conversations, nothing
 * twice; and no fork is ever there without its documents.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { makeSqliteReader } from "../../src/storage/sqlite/store.ts"
import { bundleProgram, type Program } from "../support/program.ts"
import type { ForksCase } from "./forks-child.ts"

/** Commits that what is asked for takes; a life has more where the node's own work falls into it. */
const whole = 17

vi.setConfig({ testTimeout: 180_000 })

let program: Program
const directory = mkdtempSync(join(tmpdir(), "super-pi-forks-crash-"))
beforeAll(async () => {
  program = await bundleProgram("test/crash/forks-child.ts")
})
afterAll(() => {
  program.remove()
  rmSync(directory, { recursive: true, force: true })
})

interface Life {
  readonly signal: NodeJS.Signals | null
  readonly last: { readonly commits: number; readonly shape: unknown } | null
  readonly stderr: string
}

const live = (given: ForksCase): Promise<Life> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH ?? "", SUPER_PI_FORKS_CASE: JSON.stringify(given) }
    const child = spawn(process.execPath, [program.file], { env, stdio: ["ignore", "pipe", "pipe"] })
    const out = { stdout: "", stderr: "" }
    for (const stream of ["stdout", "stderr"] as const) child[stream].on("data", (chunk) => (out[stream] += chunk))
    child.on("error", reject)
    child.on("close", (_code, signal) => {
      resolve({ signal, last: out.stdout === "" ? null : JSON.parse(out.stdout), stderr: out.stderr })
    })
  })

/** What every state of the database must hold, between two lives. */
const check = (path: string) =>
  Effect.gen(function* () {
    const store = yield* makeSqliteReader({ path })
    const rows = yield* store.conversations({ principal: null, limit: 100 })
    for (const { conversation } of rows) {
      const kinds = (yield* store.documents(conversation.id)).map((document) => document.kind)
      expect(kinds).toEqual(expect.arrayContaining(["pi.agent", "pi.provider"]))
      if (conversation.parent === null) continue
      expect(yield* store.globalDocument("pi.fork-request", `${conversation.parent.conversation}:fork`)).not.toBeNull()
      const agent = (yield* store.documents(conversation.id)).find((document) => document.kind === "pi.agent")
      expect(agent?.value).toEqual({ model: "script/forks", instructions: "early", effort: "low" })
    }
  }).pipe(Effect.scoped, Effect.runPromise)

let baseline: unknown = null
const unkilled = async () => {
  baseline ??= (await live({ db: join(directory, "whole.db"), crash: null })).last
  return baseline as NonNullable<Life["last"]>
}

describe("writes, forks, resets and handoffs", () => {
  it("make at least as many commits as are killed below, and look as they should", async () => {
    const { commits, shape } = await unkilled()
    expect(commits).toBeGreaterThanOrEqual(whole)
    expect(shape).toMatchObject({
      handed: "done",
      fork: {
        entries: [
          { kind: "pi.user", text: ["one"] },
          { kind: "pi.user", text: ["two"] },
          { kind: "pi.system" },
          { kind: "pi.assistant" },
          { kind: "pi.reset", text: ["from here"], head: 4 },
          { kind: "pi.user", text: ["three"] },
          { kind: "pi.system" },
          { kind: "pi.assistant" },
        ],
        context: ["system", "user", "user", "assistant"],
      },
    })
  })
})

describe.concurrent("killed around a commit", () => {
  const points = Array.from({ length: whole }, (_, at) => at + 1).flatMap((n) => [
    { n, when: "before" as const },
    { n, when: "after" as const },
  ])
  it.each(points)("$when commit $n, all of it is the same in the end", async (crash) => {
    const db = join(directory, `${crash.when}-${crash.n}.db`)
    const killed = await live({ db, crash })
    expect(killed.signal, killed.stderr).toBe("SIGKILL")
    if (existsSync(db)) await check(db)
    const next = await live({ db, crash: null })
    expect(next.last?.shape, next.stderr).toEqual((await unkilled()).shape)
    await check(db)
  })
})
