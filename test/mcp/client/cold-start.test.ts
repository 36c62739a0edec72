/**
 * What MCP servers cost a command that has none: the protocol's client is code that is not even loaded.
 */
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "../../cli/program.ts"

const script = fileURLToPath(new URL("scripted-server.mjs", import.meta.url))
const hook = pathToFileURL(fileURLToPath(new URL("loaded-modules.mjs", import.meta.url))).href

let bench: Bench
beforeAll(async () => {
  await buildProgram()
  bench = makeBench()
  mkdirSync(join(bench.directory, "config"))
}, 240_000)
afterAll(() => bench.remove())

/** Chunks of the program that one run loads, and those of them that hold the protocol's client. */
const loadedBy = async (name: string) => {
  const list = bench.write(name, "")
  const env = { NODE_OPTIONS: `--import ${hook}`, LOADED_MODULES: list }
  const { code, stdout } = await bench.run(["run", "--model", "mock/echo", "hello"], { env })
  expect(`${code} ${stdout}`).toContain("hello")
  const files = readFileSync(list, "utf8")
    .split("\n")
    .filter((url) => url.includes("/dist/"))
    .map((url) => fileURLToPath(url))
  return { files, client: files.filter((file) => readFileSync(file, "utf8").includes("StreamableHTTPClientTransport")) }
}

describe("super-pi run", () => {
  it("loads the protocol's client where a server is configured, and nothing of it where none is", async () => {
    const without = await loadedBy("without")
    expect(without.files.length).toBeGreaterThan(1)
    expect(without.client).toEqual([])
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: {} }))
    expect((await loadedBy("empty")).client).toEqual([])
    const server = { command: process.execPath, args: [script] }
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: { one: { ...server, disabled: true } } }))
    expect((await loadedBy("disabled")).client).toEqual([])
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: { one: server } }))
    expect((await loadedBy("one")).client).not.toEqual([])
  }, 240_000)
})
