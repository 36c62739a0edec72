/**
 * What many idle actors hold: no fiber, no timer, no queue, and little memory.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { afterAll, beforeAll, expect, it } from "vitest"

const folder = mkdtempSync(join(tmpdir(), "super-pi-memory-"))
const file = join(folder, "idle.mjs")
beforeAll(() =>
  build({
    entryPoints: [fileURLToPath(new URL("./idle.ts", import.meta.url))],
    outfile: file,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "silent",
  }),
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("ten thousand actors that have handled mail hold at most 400 bytes each, and give it back when they stop", () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--expose-gc", file], { encoding: "utf8" })
  expect(stderr).toBe("")
  expect(status).toBe(0)
  const { perActor, left, resources } = JSON.parse(stdout) as {
    perActor: number
    left: number
    resources: Array<string>
  }
  expect(perActor).toBeLessThanOrEqual(400)
  expect(left).toBeLessThanOrEqual(40)
  expect(resources).not.toContain("Timeout")
})
