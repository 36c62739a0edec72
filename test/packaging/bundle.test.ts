/**
 * `scripts/bundle.mjs`: programs outside of `dist` (benches, the stress run, children of tests) find what they need beside them.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bundleProgram, type Program } from "../support/program.ts"

const execute = promisify(execFile)
const directory = mkdtempSync(path.join(tmpdir(), "super-pi-bundle-"))
let program: Program

beforeAll(async () => {
  program = await bundleProgram("test/packaging/programs/bench-turn.ts")
})

afterAll(async () => {
  rmSync(directory, { recursive: true, force: true })
  await program.remove()
})

const turn = (database: string) => execute(process.execPath, [program.file, path.join(directory, database)])

describe("a bundled program", () => {
  it("runs a tool on a sandbox thread", async () => {
    expect((await turn("whole.db")).stdout).toBe("answered\n")
  })

  it("of a bench fails when its tool fails, instead of measuring something else", async () => {
    rmSync(path.join(path.dirname(program.file), "sandbox-worker.js"))
    const failure = await turn("broken.db").then(
      ({ stdout }) => stdout,
      (error: { readonly stderr: string }) => error.stderr,
    )
    expect(failure).toMatch(/the tool failed: .*sandbox-worker\.js: expected beside/)
  })
})
