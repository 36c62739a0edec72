/**
 * `examples/acp-client.ts` as it stands there, against the built program: it streams, asks on the terminal and tells how it ended.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { buildProgram, launcher, makeBench } from "../cli/program.ts"
import { type Example, exampleProgram } from "./program.ts"

const bench = makeBench()
const workspace = join(bench.directory, "work")
mkdirSync(workspace)
let example: Example

beforeAll(async () => {
  await buildProgram()
  example = await exampleProgram("examples/acp-client.ts")
}, 180_000)
afterAll(() => {
  example.remove()
  bench.remove()
})

describe("examples/acp-client.ts", () => {
  it("prompts, is asked whether a command may run, and shows what came of it", async () => {
    const script = bench.write(
      "script.json",
      JSON.stringify({
        rules: [
          {
            match: "make it",
            steps: [
              { text: "I make it.", tools: [{ name: "bash", args: { command: "touch made" } }] },
              { text: "It is made." },
            ],
          },
        ],
      }),
    )
    const child = spawn(process.execPath, [example.file, "make it"], {
      cwd: workspace,
      env: {
        ...bench.env,
        SUPER_PI_AGENT: `${process.execPath} ${launcher} acp --model script/test`,
        SUPER_PI_SCRIPT: script,
      },
    })
    let stdout = ""
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk
    })
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      const before = stdout
      stdout += chunk
      if (stdout.includes("4) ") && !before.includes("4) ")) child.stdin.write("1\n")
    })
    const code = await new Promise((done) => child.on("close", done))
    expect(stderr).toBe("")
    expect(stdout).toContain("I make it.")
    expect(stdout).toContain("1) Allow once")
    expect(stdout).toContain("← completed")
    expect(stdout).toMatch(/It is made\.\n\(end_turn; session acp_/)
    expect(existsSync(join(workspace, "made"))).toBe(true)
    expect(code).toBe(0)
  })
})
