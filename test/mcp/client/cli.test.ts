/**
 * MCP servers at the command line: the built program, real processes.
 */
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "../../cli/program.ts"

const script = fileURLToPath(new URL("scripted-server.mjs", import.meta.url))

let bench: Bench
const configFile = () => join(bench.env.SUPER_PI_CONFIG_DIR ?? "", "mcp_config.json")
const notesFile = () => join(bench.directory, "notes")
const notes = () =>
  existsSync(notesFile())
    ? readFileSync(notesFile(), "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    : []

const until = async (is: () => boolean): Promise<void> => {
  for (let round = 0; !is(); round++) {
    if (round > 3000) throw new Error(`it did not happen: ${JSON.stringify(notes())}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

beforeAll(async () => {
  await buildProgram()
  bench = makeBench()
  mkdirSync(join(bench.directory, "config"))
  bench.write("config/settings.json", JSON.stringify({ mcpStartupTimeoutMs: 60_000 }))
}, 240_000)
afterAll(() => bench.remove())

describe("super-pi mcp", () => {
  it("adds, lists, disables and removes servers in a file that is the person's own", async () => {
    const added = await bench.run(["mcp", "add", "one", process.execPath, "--", script])
    expect(added).toMatchObject({ code: 0, stdout: "one was added\n" })
    expect(JSON.parse(readFileSync(configFile(), "utf8"))).toEqual({
      mcpServers: { one: { command: process.execPath, args: [script] } },
    })
    expect(statSync(configFile()).mode & 0o777).toBe(0o600)
    const again = await bench.run(["mcp", "add", "one", "x"])
    expect(again).toMatchObject({
      code: 1,
      stderr: 'super-pi: there is an MCP server "one" already; remove it first: super-pi mcp remove one\n',
    })
    expect((await bench.run(["mcp", "add", "bad", "ftp://x"])).code).toBe(2)
    const listed = await bench.run(["mcp", "list"])
    expect(listed.stdout).toContain("one ready\n")
    expect(listed.stdout).toContain("  mcp__one__read\n")
    await bench.run(["mcp", "disable", "one"])
    const [view] = JSON.parse((await bench.run(["mcp", "list", "--json"])).stdout)
    expect(view).toMatchObject({ name: "one", state: "disabled", tools: [] })
    const wrong = await bench.run(["mcp", "remove", "on"])
    expect(wrong).toMatchObject({ code: 1, stderr: 'super-pi: there is no MCP server "on"; did you mean "one"?\n' })
    expect((await bench.run(["mcp", "remove", "one"])).code).toBe(0)
    expect((await bench.run(["mcp", "login", "one"])).stderr).toContain('there is no MCP server "one"')
  }, 120_000)

  it("a node that is killed in the middle of a call leaves it in doubt, ends the server, and does not call again", async () => {
    const server = { command: process.execPath, args: [script], env: { MCP_NOTES: notesFile() } }
    const wrong = { comand: "x" }
    bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: { one: server, wrong } }))
    const rules = [{ match: "", steps: [{ tools: [{ name: "mcp__one__silent", args: {} }] }, { text: "over" }] }]
    const env = { SUPER_PI_SCRIPT: bench.write("script.json", JSON.stringify({ rules })) }
    const running = bench.start(["run", "--model", "script/x", "--mode", "auto", "go"], { env })
    const ended = running.ended
    await until(() => notes().some(({ event }) => event === "call"))
    running.child.kill("SIGKILL")
    const { stderr } = await ended
    expect(stderr.match(/mcpServers\.wrong: expected a "command" or a "url"/g)).toHaveLength(1)
    const [{ pid }] = notes()
    await until(() => {
      try {
        process.kill(pid, 0)
        return false
      } catch {
        return true
      }
    })
    const next = await bench.run(["run", "-c", "--model", "script/x", "--mode", "auto", "and now?"], {
      env: {
        SUPER_PI_SCRIPT: bench.write(
          "script2.json",
          JSON.stringify({ rules: [{ match: "", steps: [{ text: "fine" }] }] }),
        ),
      },
    })
    expect(next.stdout).toContain("fine")
    const [effect] = JSON.parse((await bench.run(["effects", "--json"])).stdout)
    expect(effect).toMatchObject({ tool: "mcp__one__silent" })
    expect(notes().filter(({ event }) => event === "call")).toHaveLength(1)
  }, 120_000)
})
