/**
 * The official conformance suite against our client: a part of it by default, all of it with SUPER_PI_CONFORMANCE=all. What it does not do
 * yet is in the baseline; an entry of that which passes fails the run.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { missing, program } from "../../clients/programs.ts"

const absent = missing("conformance", "node24")
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const directory = mkdtempSync(join(tmpdir(), "sp-conformance-"))
const client = join(directory, "client.mjs")

/** One after the other: the suite's own way of running all at once measures the machine. */
const part: ReadonlyArray<readonly [string, string]> = [
  ["initialize", "2025-11-25"],
  ["tools_call", "2025-11-25"],
  ["tools_call", "2026-07-28"],
  ["elicitation-sep1034-client-defaults", "2025-11-25"],
  ["sse-retry", "2025-11-25"],
  ["request-metadata", "2026-07-28"],
  ["sep-2322-client-request-state", "2026-07-28"],
  ["http-standard-headers", "2026-07-28"],
  ["auth/metadata-default", "2025-11-25"],
  ["auth/metadata-var3", "2026-07-28"],
  ["auth/token-endpoint-auth-basic", "2025-11-25"],
  ["auth/iss-supported", "2026-07-28"],
  ["auth/scope-step-up", "2025-11-25"],
]

const run = (args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
    execFile(
      program("node24"),
      [program("conformance"), ...args],
      { cwd: directory, maxBuffer: 64 * 1024 * 1024 },
      (error, out, err) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : 1
        resolve({ code, output: `${out}${err}` })
      },
    )
  })

const scenarios = async (): Promise<ReadonlyArray<readonly [string, string]>> => {
  if (process.env.SUPER_PI_CONFORMANCE !== "all") return part
  const { output } = await run(["list"])
  const lines = output.slice(output.indexOf("Client scenarios")).matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)
  const versions = ["2025-11-25", "2026-07-28"]
  return [...lines].flatMap(([, name = "", known = ""]) =>
    versions.filter((version) => known.includes(version)).map((version) => [name, version] as const),
  )
}

describe.skipIf(absent !== null)(`the official conformance suite${absent === null ? "" : ` (${absent})`}`, () => {
  beforeAll(async () => {
    await build({
      entryPoints: [here("conformance-client.ts")],
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      banner: { js: 'import{createRequire}from"node:module";const require=createRequire(import.meta.url);' },
      outfile: client,
      logLevel: "error",
    })
  }, 60_000)
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it("passes, but for what the baseline names", async () => {
    const failed: Array<string> = []
    for (const [scenario, version] of await scenarios()) {
      const { code, output } = await run([
        "client",
        ...["--command", `${process.execPath} ${client}`, "--scenario", scenario, "--spec-version", version],
        ...["--expected-failures", here("conformance-baseline.yml"), "--timeout", "60000"],
      ])
      if (code !== 0) failed.push(`${scenario} (${version}):\n${output.slice(-2000)}`)
    }
    expect(failed).toEqual([])
  }, 600_000)
})
