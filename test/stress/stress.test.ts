/**
 * A short stress run as part of the suite: a real node of the built program under load, killed twice and restarted, every invariant checked.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { readFlags, replay } from "../../stress/main.ts"
import { stress } from "../../stress/run.ts"

const root = path.resolve(import.meta.dirname, "../..")

it("keeps every promise under load while it is killed and restarted", { timeout: 240_000 }, async () => {
  await promisify(execFile)(process.execPath, ["scripts/build.mjs", "--if-changed"], { cwd: root })
  const directory = mkdtempSync(path.join(tmpdir(), "super-pi-stress-"))
  const seed = Number(process.env.SUPER_PI_STRESS_SEED ?? 1)
  const options = { conversations: 6, seconds: 4, kills: 2, seed }
  const report = await stress(options, directory, path.join(root, "bin/super-pi"))
  expect(report.faults, `replay with: ${replay(options)} (its files are in ${directory})`).toEqual([])
  expect(report.kills).toBe(2)
  expect(report.submissions).toBeGreaterThan(0)
  expect(report.unsafeCalls).toBeGreaterThan(0)
  rmSync(directory, { recursive: true, force: true })
})

it("reads its flags, and says which one is wrong", () => {
  expect(readFlags(["--seed", "7", "--kills", "0"], 0)).toMatchObject({
    seed: 7,
    kills: 0,
    conversations: 20,
    seconds: 20,
  })
  expect(() => readFlags(["--seconds", "none"], 0)).toThrow(
    '--seconds: expected a whole number of at least 1, got "none"',
  )
})
