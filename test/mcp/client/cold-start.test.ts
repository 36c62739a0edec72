/**
 * What MCP servers cost a command that has none: the protocol's client is code that does not even run. All commands are one script, in which
 * the modules of packages are functions with the names of their files; V8 says which of them were called.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "../../cli/program.ts"

const script = fileURLToPath(new URL("scripted-server.mjs", import.meta.url))

let bench: Bench
beforeAll(async () => {
  await buildProgram()
  bench = makeBench()
  mkdirSync(join(bench.directory, "config"))
}, 240_000)
afterAll(() => bench.remove())

/** What V8 writes: https://chromedevtools.github.io/devtools-protocol/v8/Profiler/#type-ScriptCoverage */
interface Coverage {
  readonly result: ReadonlyArray<{
    readonly url: string
    readonly functions: ReadonlyArray<{
      readonly functionName: string
      readonly ranges: ReadonlyArray<{ readonly count: number }>
    }>
  }>
}

/** Modules of the program that one run evaluates, and those of them that are the protocol's client. */
const evaluatedBy = async (name: string) => {
  const directory = join(bench.directory, name)
  const env = { NODE_V8_COVERAGE: directory }
  const { code, stdout } = await bench.run(["run", "--model", "mock/echo", "hello"], { env })
  expect(`${code} ${stdout}`).toContain("hello")
  const written = readdirSync(directory).map(
    (file): Coverage => JSON.parse(readFileSync(join(directory, file), "utf8")),
  )
  const modules = written
    .flatMap(({ result }) => result)
    .filter(({ url }) => /\/dist\/chunks\/program-[^/]+$/.test(url))
    .flatMap(({ functions }) => functions)
    .filter(({ functionName, ranges }) => functionName.includes("/") && ranges.some(({ count }) => count > 0))
    .map(({ functionName }) => functionName)
  return { modules, client: modules.filter((one) => one.includes("@modelcontextprotocol/client")) }
}

describe("super-pi run", () => {
  it("runs the protocol's client where a server is configured, and nothing of it where none is", async () => {
    const without = await evaluatedBy("without")
    expect(without.modules).toEqual(expect.arrayContaining([expect.stringMatching(/node_modules\/effect\//)]))
    expect(without.client).toEqual([])
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: {} }))
    expect((await evaluatedBy("empty")).client).toEqual([])
    const server = { command: process.execPath, args: [script] }
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: { one: { ...server, disabled: true } } }))
    expect((await evaluatedBy("disabled")).client).toEqual([])
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: { one: server } }))
    expect((await evaluatedBy("one")).client).not.toEqual([])
  }, 240_000)
})
