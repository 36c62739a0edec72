/**
 * `super-pi mcp` as a process: how it ends, and what becomes of a call in whose middle it dies.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { EffectView } from "../../../src/domain/effect.ts"
import { buildProgram, makeBench } from "../../cli/program.ts"
import { type McpProcess, startMcpProcess } from "./process.ts"

const bench = makeBench()
const workspace = join(bench.directory, "work")
const children: Array<McpProcess> = []

beforeAll(async () => {
  mkdirSync(workspace)
  await buildProgram()
}, 180_000)
afterAll(() => {
  // Where there is no sandbox, what a killed server had started goes on until it sees this.
  writeFileSync(join(workspace, "stop"), "")
  for (const { child } of children) child.kill("SIGKILL")
  bench.remove()
})

const start = async (...args: ReadonlyArray<string>): Promise<McpProcess> => {
  const started = await startMcpProcess(bench.env, workspace, args)
  children.push(started)
  return started
}

const effects = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<EffectView>> =>
  JSON.parse((await bench.run(["effects", ...args, "--json"])).stdout)

/** Says that it runs and goes on until somebody stops it. */
const begins = (server: McpProcess, mark: string): Promise<unknown> => {
  const command = `echo ${mark} >> ${mark}; echo ${mark} runs; while [ ! -e stop ]; do sleep 0.2; done`
  server.begin("tools/call", { name: "bash", arguments: { command }, _meta: { progressToken: mark } })
  return server.told(({ params }) => params?.message === `${mark} runs`)
}

describe("super-pi mcp as a process", () => {
  it("is over when its client is, and says nothing but the protocol", { timeout: 60_000 }, async () => {
    const server = await start()
    const { result } = await server.ask("tools/call", { name: "ls", arguments: {} })
    expect(result).toMatchObject({ structuredContent: { path: "." } })
    server.end()
    expect(await server.ended).toEqual({ code: 0, signal: null })
    expect(server.noise).toEqual([])
  })

  it("stops on SIGTERM with 0", { timeout: 60_000 }, async () => {
    const server = await start()
    server.child.kill("SIGTERM")
    expect(await server.ended).toEqual({ code: 0, signal: null })
  })

  it("cancels what its client left at work, and that is not in doubt", { timeout: 60_000 }, async () => {
    const server = await start("--mode", "auto")
    await begins(server, "left")
    server.end()
    expect(await server.ended).toEqual({ code: 0, signal: null })
    expect(await effects()).toEqual([])
  })

  it("killed in the middle of a call, it has the call in doubt and does not make it again", {
    timeout: 120_000,
  }, async () => {
    const first = await start("--mode", "auto")
    await begins(first, "ran")
    first.child.kill("SIGKILL")
    await first.ended
    expect(await effects()).toMatchObject([{ state: "cut_off", tool: "bash" }])

    const second = await start("--mode", "auto")
    const { result } = await second.ask("tools/call", { name: "read", arguments: { path: "ran" } })
    expect(JSON.stringify(result)).toContain("ran")
    await expect.poll(effects, { timeout: 60_000 }).toMatchObject([{ state: "in_doubt", tool: "bash" }])
    expect(readFileSync(join(workspace, "ran"), "utf8")).toBe("ran\n")
    second.end()
    expect((await second.ended).code).toBe(0)
    const [doubt] = await effects()
    expect(doubt?.call_id).toMatch(/^mcp_/)
    expect((await bench.run(["effects", "settle", String(doubt?.task_id), "happened"])).code).toBe(0)
    expect(await effects()).toEqual([])
  })
})
