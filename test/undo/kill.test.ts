/**
 * A repository that `super-pi-code` worked on with the scripted model, undone, is byte-identical; also when the process was killed before or
 * after any commit and another one went on.
 */
import { spawn } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { build } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gitIn, makeRepository, picture } from "../harness/checkpoint-support.ts"
import type { UndoCase } from "./child.ts"

const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-undo-")))
const program = join(directory, "child.mjs")

beforeAll(async () => {
  const tools = join(import.meta.dirname, "../../src/tools")
  await build({
    entryPoints: { child: join(import.meta.dirname, "child.ts"), "sandbox-worker": join(tools, "sandbox-worker.ts") },
    outdir: directory,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "error",
    absWorkingDir: join(import.meta.dirname, "../.."),
  })
  copyFileSync(join(directory, "sandbox-worker.mjs"), join(directory, "sandbox-worker.js"))
  writeFileSync(join(directory, "package.json"), '{"type":"module"}')
  symlinkSync(join(import.meta.dirname, "../../node_modules"), join(directory, "node_modules"))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

interface Life {
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

const live = (given: UndoCase): Promise<Life> =>
  new Promise((resolve, reject) => {
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: directory,
      SUPER_PI_UNDO_CASE: JSON.stringify(given),
    }
    const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] })
    const text = { stdout: "", stderr: "" }
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (chunk: string) => {
        text[stream] += chunk
      })
    }
    child.on("error", reject)
    child.on("close", (_code, signal) => resolve({ signal, ...text }))
  })

let worlds = 0
/** A repository, and everything that must be as before: objects of git may only be added. */
const world = async () => {
  const base = join(directory, String(++worlds))
  const root = join(base, "repository")
  mkdirSync(root, { recursive: true })
  mkdirSync(join(base, "data"))
  await Effect.runPromise(makeRepository(root))
  const facts = () => ({
    files: Object.fromEntries(Object.entries(picture(root)).filter(([path]) => !path.startsWith(".git/objects"))),
    status: gitIn(root, "status", "--porcelain=v2", "--branch"),
    stash: gitIn(root, "stash", "list"),
    head: gitIn(root, "rev-parse", "HEAD"),
  })
  const given: Omit<UndoCase, "kill"> = { db: join(base, "super-pi.db"), dataDir: join(base, "data"), root }
  return { facts, given }
}

describe("a repository that super-pi-code worked on", () => {
  let commits = 0

  it("is byte-identical after the undo", async () => {
    const { facts, given } = await world()
    const before = facts()
    const { stderr, stdout } = await live({ ...given, kill: null })
    expect(stderr).toBe("")
    const said = JSON.parse(stdout)
    commits = said.commits
    expect(said.results).toHaveLength(4)
    expect(said.results.filter((result: string) => /broke|Blocked|Exit code/.test(result))).toEqual([])
    expect(said).toMatchObject({ checkpoints: 3, result: { undone: [1, 2, 3], left: [] } })
    expect(facts()).toEqual(before)
  })

  it("is byte-identical after the undo by another process, also where the first one was killed", async () => {
    expect(commits).toBeGreaterThan(10)
    // Every third commit, before and after in turn: two processes for each take their time.
    for (let commit = 2; commit < commits; commit += 3) {
      const when = commit % 2 === 0 ? "before" : "after"
      const { facts, given } = await world()
      const before = facts()
      const first = await live({ ...given, kill: { commit, when } })
      expect(first.signal).toBe("SIGKILL")
      const second = await live({ ...given, kill: null })
      const at = `${when} commit ${commit}`
      expect([at, second.stderr]).toEqual([at, ""])
      expect([at, facts()]).toEqual([at, before])
    }
  }, 600_000)
})
