/** `super-pi gateway` as a process: what it prints, what keeps it from starting, and how it stops. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench, type Running } from "../cli/program.ts"

let bench: Bench
beforeAll(async () => {
  await buildProgram()
  bench = makeBench()
}, 120_000)
afterAll(() => bench.remove())

/** The address that it serves on, once it has said so. */
const urlOf = ({ child }: Running): (() => string) => {
  let said = ""
  child.stderr?.on("data", (chunk: string) => {
    said += chunk
  })
  return () => /http:\/\/[\d.]+:\d+/.exec(said)?.[0] ?? ""
}

const refused = async (args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
  const { code, stderr } = await bench.run(["gateway", ...args], { env })
  return `${code} ${stderr.trim()}`
}

describe("super-pi gateway", () => {
  it("says where it listens and what there is, serves, and stops on SIGTERM with 0", async () => {
    const running = bench.start(["gateway", "0", "--model", "mock/echo", "--verbose"])
    const url = urlOf(running)
    await running.until(/WebSocket \/rpc/, "stderr")
    await running.until(/serving on http:\/\/127\.0\.0\.1:\d+ \(without a token, from this machine\)/, "stderr")
    await fetch(`${url()}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "super-pi-code", messages: [{ role: "user", content: "the words of a test" }] }),
    })
    await running.until(/POST \/v1\/chat\/completions/, "stderr")
    // What --verbose adds.
    await running.until(/You said: the words of a test/, "stderr")
    running.child.kill("SIGTERM")
    const { code, stderr } = await running.ended
    expect(code).toBe(0)
    expect(stderr).toContain("GET /health")
  }, 60_000)

  it("answers with its health, and asks for a token where there is one", async () => {
    const env = { SUPER_PI_GATEWAY_TOKEN: "alice=key-a", SUPER_PI_LOG_LEVEL: "debug" }
    const running = bench.start(["gateway", "0"], { env })
    const found = urlOf(running)
    await running.until(/serving on http:[\s\S]*WebSocket/, "stderr")
    const url = found()
    const health = await fetch(`${url}/health`)
    expect(await health.json()).toMatchObject({ status: "ok", database: "ok" })
    expect((await fetch(`${url}/v1/models`)).status).toBe(401)
    const models = await fetch(`${url}/v1/models`, { headers: { authorization: "Bearer key-a" } })
    expect(models.status).toBe(200)
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
    const metrics = await fetch(`${url}/metrics`, { headers: { authorization: "Bearer key-a" } })
    expect(await metrics.text()).toMatch(/^super_pi_node_up 1$/m)
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
    const initialized = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        authorization: "Bearer key-a",
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    })
    expect(initialized.status).toBe(200)
    await running.until(/MCP client asks for protocol version 2025-06-18/, "stderr")
    running.child.kill("SIGTERM")
    expect((await running.ended).code).toBe(0)
  }, 60_000)

  it("does not start with a wrong port, an open address without a token, or settings that it does not understand", async () => {
    expect(await refused([])).toMatch(/^2 .*needs PORT/)
    expect(await refused(["x"])).toMatch(/^2 super-pi: PORT: expected a number from 0 to 65535, got "x"/)
    expect(await refused(["70000"])).toMatch(/^2 /)
    expect(await refused(["0", "--host", "0.0.0.0"])).toBe(
      '1 super-pi: host: expected a loopback address while no token is configured, got "0.0.0.0"; set SUPER_PI_GATEWAY_TOKEN or gateway.tokens',
    )
    expect(await refused(["0"], { SUPER_PI_GATEWAY_BIND: "::" })).toMatch(/^1 .*got "::"/)
    const config = join(bench.directory, "other")
    mkdirSync(config)
    bench.write("other/settings.json", '{"gateway": {"tokens": {"alice": "not one"}}}')
    const fault = await refused(["0"], { SUPER_PI_CONFIG_DIR: config })
    expect(fault).toMatch(/^1 super-pi: settings\.json: gateway\.tokens.*; nothing is served until it is repaired$/)
    expect(fault).not.toContain("not one")
  }, 60_000)
})
