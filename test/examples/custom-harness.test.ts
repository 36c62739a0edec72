/** `examples/custom-harness.ts` as it stands there, as a process of its own. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Example, exampleProgram } from "./program.ts"

const execute = promisify(execFile)
let example: Example

beforeAll(async () => {
  example = await exampleProgram("examples/custom-harness.ts")
}, 120_000)
afterAll(() => example.remove())

describe("examples/custom-harness.ts", () => {
  it("runs with its own tool, section and rule, and no tool beside them", async () => {
    const { stderr, stdout } = await execute(process.execPath, [example.file])
    expect(stderr).toBe("")
    expect(stdout.split("\n")).toEqual([
      "help-desk, mode accept-edits",
      "  file_ticket was blocked: only a person files a critical ticket; file it as normal",
      '  file_ticket: {"number":1}',
      "  says: I filed a ticket. Please use the extinguisher.",
      "tools: file_ticket",
      "section: File one ticket for each problem, at most as normal.",
      "tickets: normal: The printer burns",
      "",
    ])
  }, 60_000)
})
