/**
 * `examples/live-provider.ts` as it stands there, as a process of its own: what it says when something is missing, and its turn with a stand-in in
 * the place of the service.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startStandIn } from "../models/stand-in.ts"
import { type Example, exampleProgram } from "./program.ts"

const execute = promisify(execFile)
let example: Example

beforeAll(async () => {
  example = await exampleProgram("examples/live-provider.ts")
}, 120_000)
afterAll(() => example.remove())

const run = (env: Record<string, string>) =>
  execute(process.execPath, [example.file], { env: { PATH: process.env.PATH ?? "", ...env } })

describe("examples/live-provider.ts", () => {
  it("asks nobody unless it is told to and has a key, and says what to set", async () => {
    const cost = "SUPER_PI_LIVE=1 (this asks a real service, which costs money)"
    const keys = "the key of a provider: GEMINI_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY"
    expect(await run({})).toEqual({ stderr: "", stdout: `nothing was asked; set ${cost} and ${keys}\n` })
    expect((await run({ SUPER_PI_LIVE: "1" })).stdout).toBe(`nothing was asked; set ${keys}\n`)
    expect((await run({ OPENAI_API_KEY: "sk-x" })).stdout).toBe(`nothing was asked; set ${cost}\n`)
  }, 60_000)

  it("runs one turn with its tool", async () => {
    const args = { cents: [1999, 349, 12] }
    const service = await startStandIn({
      rules: [{ match: "cents", steps: [{ tools: [{ name: "add_prices", args }] }, { text: "23.60 in all." }] }],
    })
    try {
      const { stderr, stdout } = await run({
        SUPER_PI_LIVE: "1",
        ANTHROPIC_API_KEY: "sk-x",
        SUPER_PI_ANTHROPIC_BASE_URL: service.url,
      })
      expect(stderr).toBe("")
      expect(stdout).toContain('→ add_prices {"cents":[1999,349,12]}\n← 2360\n')
      expect(stdout).toContain("23.60 in all.")
      expect(service.requests).toHaveLength(2)
    } finally {
      await service.close()
    }
  }, 60_000)
})
