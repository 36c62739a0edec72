/**
 * Programs of others as clients of `super-pi mcp`: the inspector's command line, and OpenCode. Skipped where they are not installed or do
 * not run.
 */
import { execFile, execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { buildProgram, launcher, makeBench } from "../../cli/program.ts"
import { missing, program } from "../../clients/programs.ts"

const bench = makeBench()
const workspace = join(bench.directory, "work")
const directories = ["SUPER_PI_DATA_DIR", "SUPER_PI_CONFIG_DIR"].map((name) => [name, bench.env[name] ?? ""] as const)

beforeAll(async () => {
  mkdirSync(workspace)
  writeFileSync(join(workspace, "one.txt"), "a line\n")
  await buildProgram()
}, 180_000)
afterAll(() => bench.remove())

/** Runs a program to its end; its stdin is over at once. */
const run = (file: string, args: ReadonlyArray<string>, env: Record<string, string> = bench.env) =>
  new Promise<{ readonly code: number | string | null; readonly stdout: string; readonly said: string }>((done) => {
    const child = execFile(file, args, { cwd: workspace, env }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : (error.code ?? null), stdout, said: `${stdout}\n${stderr}` }),
    )
    child.stdin?.end()
  })

const noInspector = missing("node24", "inspector")

describe(noInspector === null ? "the inspector" : `the inspector (skipped: ${noInspector})`, () => {
  const inspect = async (...args: ReadonlyArray<string>): Promise<Record<string, unknown>> => {
    const places = directories.flatMap(([name, value]) => ["-e", `${name}=${value}`])
    const { code, said, stdout } = await run(program("node24"), [
      ...[program("inspector"), "--cli", process.execPath, launcher, "mcp", ...places, ...args],
    ])
    expect(code, said).toBe(0)
    return JSON.parse(stdout)
  }

  it.skipIf(noInspector !== null)("lists the tools", { timeout: 120_000 }, async () => {
    const { tools } = (await inspect("--method", "tools/list")) as { readonly tools: ReadonlyArray<{ name: string }> }
    const names = ["read", "write", "edit", "bash", "grep", "find", "ls", "harness_task"]
    expect(tools.map(({ name }) => name)).toEqual(names)
  })

  it.skipIf(noInspector !== null)("calls one", { timeout: 120_000 }, async () => {
    const called = await inspect("--method", "tools/call", "--tool-name", "read", "--tool-arg", "path=one.txt")
    expect(called).toMatchObject({ content: [{ type: "text", text: expect.stringContaining("a line") }] })
  })

  it.skipIf(noInspector !== null)("reads a resource", { timeout: 120_000 }, async () => {
    const uri = "superpi://workspace/context"
    const { contents } = (await inspect("--method", "resources/read", "--uri", uri)) as {
      readonly contents: ReadonlyArray<{ readonly text: string }>
    }
    expect(JSON.parse(contents[0]?.text ?? "")).toMatchObject({ harness: "super-pi-code", directory: workspace })
  })

  it.skipIf(noInspector !== null)("gets a prompt", { timeout: 120_000 }, async () => {
    const named = ["--prompt-name", "plan_architecture", "--prompt-args", "goal=a bridge"]
    expect(JSON.stringify(await inspect("--method", "prompts/get", ...named))).toContain("a bridge")
  })
})

/** Why OpenCode does not run here, or null. Its package holds a placeholder where its binary was not fetched. */
const noOpenCode = (): string | null => {
  const absent = missing("opencode")
  if (absent !== null) return absent
  try {
    execFileSync(program("opencode"), ["--version"], { env: { ...bench.env }, stdio: "pipe", timeout: 60_000 })
    return null
  } catch (error) {
    return error instanceof Error ? (error.message.split("\n")[0] ?? "it fails") : String(error)
  }
}
const why = noOpenCode()

describe(why === null ? "OpenCode" : `OpenCode (skipped: ${why})`, () => {
  it.skipIf(why !== null)("shows the server connected", { timeout: 180_000 }, async () => {
    const home = join(bench.directory, "opencode")
    mkdirSync(join(home, "config", "opencode"), { recursive: true })
    const command = [process.execPath, launcher, "mcp", "--cwd", workspace]
    const entry = { type: "local", command, environment: Object.fromEntries(directories), timeout: 60_000 }
    writeFileSync(join(home, "config", "opencode", "opencode.json"), JSON.stringify({ mcp: { "super-pi": entry } }))
    const { code, said, stdout } = await run(program("opencode"), ["mcp", "list"], {
      PATH: process.env.PATH ?? "",
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_DATA_HOME: join(home, "data"),
      XDG_CACHE_HOME: join(home, "cache"),
      XDG_STATE_HOME: join(home, "state"),
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
    })
    expect(code, said).toBe(0)
    expect(stripVTControlCharacters(stdout), said).toMatch(/super-pi\s+connected/)
  })
})
