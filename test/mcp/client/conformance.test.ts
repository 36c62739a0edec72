/**
 * The official conformance suite against our client, whole: by default each scenario in the newest revision of the protocol that has it, in every
 * one with SUPER_PI_CONFORMANCE=all. What fails is exactly what the baseline names, with its reasons.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
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

interface Scenario {
  readonly name: string
  /** A revision of the protocol, or `extension`. */
  readonly version: string
}

const run = (args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
    const env = { ...process.env, NODE_COMPILE_CACHE: join(directory, "cache") }
    const command = [program("conformance"), ...args]
    execFile(program("node24"), command, { cwd: directory, env, maxBuffer: 64 * 1024 * 1024 }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : 1
      resolve({ code, output: `${out}${err}` })
    })
  })

/** Every scenario for clients, in every revision that has it, the newest last. */
const listed = async (): Promise<ReadonlyArray<Scenario>> => {
  const { output } = await run(["list"])
  const [, section = ""] = /^Client scenarios.*:$([\s\S]*?)^\S/m.exec(output) ?? []
  return [...section.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)].flatMap(([, name = "", versions = ""]) =>
    versions.split(",").map((version) => ({ name, version })),
  )
}

const newest = (all: ReadonlyArray<Scenario>): ReadonlyArray<Scenario> => [
  ...new Map(all.map((scenario) => [scenario.name, scenario])).values(),
]

/** Why the client does not pass, or null. */
const failureOf = async ({ name, version }: Scenario): Promise<string | null> => {
  const revision = version === "extension" ? [] : ["--spec-version", version]
  const command = `${process.execPath} ${client}`
  const args = ["client", "--command", command, "--scenario", name, "--timeout", "120000", ...revision]
  const { code, output } = await run(args)
  return code === 0 ? null : `${name} (${version}):\n${output.slice(-2000)}`
}

/** Few at a time: the suite's own way of running all at once measures the machine. */
const atOnce = 3

const failures = async (scenarios: ReadonlyArray<Scenario>): Promise<ReadonlyMap<string, string>> => {
  const failed = new Map<string, string>()
  const queue = [...scenarios]
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const failure = await failureOf(next)
      if (failure !== null) failed.set(next.name, failure)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return failed
}

const baseline = (): ReadonlyArray<string> => {
  const entries = readFileSync(here("conformance-baseline.yml"), "utf8").matchAll(/^ {2}- (\S+)( # .+)?$/gm)
  return [...entries].map(([line, name = "", reason]) => {
    if (reason === undefined) throw new Error(`the baseline gives no reason: ${line}`)
    return name
  })
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
  }, 120_000)
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it("passes, but for what the baseline names, and that does not", async () => {
    const all = await listed()
    expect(all.length).toBeGreaterThan(40)
    const failed = await failures(process.env.SUPER_PI_CONFORMANCE === "all" ? all : newest(all))
    const known = baseline()
    expect([...failed].filter(([name]) => !known.includes(name)).map(([, why]) => why)).toEqual([])
    // An entry that passes, or is no scenario any more, is to be taken out.
    expect(known.filter((name) => !failed.has(name))).toEqual([])
  }, 900_000)
})
