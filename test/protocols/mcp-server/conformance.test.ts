/**
 * The official conformance suite against our server, for both revisions of the protocol. `conformance-baseline.yml` names what is expected
 * to fail; an entry that passes by now fails the run.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { missing, program } from "../../clients/programs.ts"
import { fixtures } from "./fixtures.ts"
import { type McpNode, startMcpNode } from "./node.ts"

const absent = missing("node24", "conformance")
const baseline = join(import.meta.dirname, "conformance-baseline.yml")

let node: McpNode
let directory: string
beforeAll(async () => {
  node = await startMcpNode({ extend: fixtures })
  directory = mkdtempSync(join(tmpdir(), "super-pi-conformance-"))
})
afterAll(async () => {
  await node.close()
  rmSync(directory, { recursive: true, force: true })
})

const run = (...args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number | null; readonly output: string }>((resolve, reject) => {
    const child = spawn(program("node24"), [program("conformance"), "server", "--url", node.url, ...args], {
      cwd: directory,
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text))
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, output }))
  })

describe.skipIf(absent !== null)("the official conformance suite", () => {
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    it(`finds nothing wrong for ${revision} but what the baseline names`, { timeout: 180_000 }, async () => {
      const { code, output } = await run("--requirements", revision, "--expected-failures", baseline)
      expect(output).toContain("SUMMARY")
      expect(code, output).toBe(0)
    })
  }
})
