/**
 * `super-pi mcp login` and `logout` as commands of their own, with and without a node that runs: the built program, a login service on loopback.
 */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "../../cli/program.ts"
import { type LoginServer, loginServer } from "./login-server.ts"

let bench: Bench
let http: LoginServer
beforeAll(async () => {
  await buildProgram()
  http = await loginServer()
  bench = makeBench()
  expect((await bench.run(["mcp", "add", "web", http.url])).code).toBe(0)
  const entry = { url: http.url, headers: { "x-key": ["$", "{WEB_KEY}"].join("") } }
  bench.write("config/mcp_config.json", JSON.stringify({ mcpServers: { web: entry, files: { command: "true" } } }))
  bench.write("config/settings.json", JSON.stringify({ mcpStartupTimeoutMs: 60_000 }))
  bench.env.WEB_KEY = "secret"
}, 240_000)
afterAll(async () => {
  bench.remove()
  await http.close()
})

const logins = () => join(bench.directory, "data", "mcp-logins")

/** Runs the command, and goes where it sends the browser. */
const logIn = async (args: ReadonlyArray<string> = []): Promise<string> => {
  const running = bench.start(["mcp", "login", "web", ...args])
  let printed = ""
  const address = new Promise<string>((resolve) => {
    running.child.stdout?.on("data", (chunk: string) => {
      printed += chunk
      const [found] = /^http\S+(?=\n)/m.exec(printed) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  const came = await Promise.race([address, running.ended])
  if (typeof came === "string") await (await fetch(came)).text()
  const { code, stderr, stdout } = await running.ended
  return `${code} ${stdout.replace(/^http.*$/m, "ADDRESS")}${stderr}`
}

const web = async () => {
  const [view] = JSON.parse((await bench.run(["mcp", "list", "--json"])).stdout)
  return { state: view.state, tools: view.tools.length }
}

const done = (outcome: string) => `0 Open this address to log in at web:\nADDRESS\nweb: ${outcome}\n`

describe("super-pi mcp login", () => {
  it("keeps a login in a file that only its owner can read, and logout takes it away", async () => {
    expect(await web()).toEqual({ state: "needs_login", tools: 0 })
    expect((await bench.run(["mcp", "list"])).stdout).toContain("log in with: super-pi mcp login web")
    expect(await logIn()).toBe(done("logged in"))
    expect(readdirSync(logins())).toHaveLength(1)
    for (const name of readdirSync(logins())) expect(statSync(join(logins(), name)).mode & 0o777).toBe(0o600)
    expect(statSync(logins()).mode & 0o777).toBe(0o700)
    expect(await web()).toEqual({ state: "ready", tools: 2 })
    expect(await bench.run(["mcp", "logout", "web"])).toMatchObject({
      code: 0,
      stdout: "web: the login is forgotten\n",
    })
    expect(readdirSync(logins())).toEqual([])
    expect(await web()).toEqual({ state: "needs_login", tools: 0 })
  }, 240_000)

  it("lets a node that runs have the server's tools at once, and logout takes the server away from it", async () => {
    const node = bench.start(["gateway", "0", "--model", "mock/echo"])
    await node.until(/serving on http:/, "stderr")
    expect(await web()).toEqual({ state: "needs_login", tools: 0 })
    expect(await logIn(["--no-browser"])).toBe(done("logged in, ready"))
    expect(await web()).toEqual({ state: "ready", tools: 2 })
    expect((await bench.run(["mcp", "logout", "web"])).code).toBe(0)
    // Its tools stay, as those of any server that is away.
    expect(await web()).toEqual({ state: "needs_login", tools: 2 })
    expect(await logIn()).toBe(done("logged in, ready"))
    node.child.kill("SIGTERM")
    expect((await node.ended).code).toBe(0)
    await bench.run(["mcp", "logout", "web"])
  }, 240_000)

  it("says what went wrong, and leaves no file", async () => {
    http.refuse = true
    expect(await logIn()).toMatch(/^1 [\s\S]*super-pi: the login at web failed: access_denied/)
    expect(readdirSync(logins())).toEqual([])
    const { code, stderr } = await bench.run(["mcp", "login", "files"])
    expect(`${code} ${stderr}`).toBe(
      '1 super-pi: MCP server "files" is a command; only servers behind a URL have a login\n',
    )
    expect((await bench.run(["mcp", "login", "wep"])).stderr).toContain('did you mean "web"?')
  }, 240_000)
})
