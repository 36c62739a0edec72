/**
 * `examples/ag-ui-client.ts` as it stands there, as a process of its own against a real node: it prints what comes and is asked for a permission.
 */
import { execFile } from "node:child_process"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type AguiNode, startNode } from "../protocols/agui/node.ts"
import { type Example, exampleProgram } from "./program.ts"

let example: Example
let node: AguiNode
beforeAll(async () => {
  example = await exampleProgram("examples/ag-ui-client.ts")
  node = await startNode({
    rules: [{ match: "^act", steps: [{ text: "Acting.", tools: [{ name: "act", args: {} }] }, { text: "Done." }] }],
  })
})
afterAll(async () => {
  await node.stop()
  example.remove()
})

/** Runs the example, and types `answer` when it is asked. */
const run = (thread: string, answer: string): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [example.file, "act", node.url, thread])
    let output = ""
    let typed = false
    child.stdout?.on("data", (chunk) => {
      output += chunk
    })
    child.stderr?.on("data", (chunk) => {
      if (!typed && String(chunk).includes("allow?")) {
        typed = true
        child.stdin?.end(`${answer}\n`)
      }
    })
    child.on("close", (code) => resolve({ code, output }))
  })

describe("examples/ag-ui-client.ts", () => {
  it("runs a call that is allowed at the terminal", async () => {
    const { code, output } = await run("allowed", "y")
    expect(code).toBe(0)
    expect(output).toContain("Acting.\n")
    expect(output).toContain("→ act {}")
    expect(output).toContain("← acted 1\n")
    expect(output).toContain("Done.\n")
    expect(output.trimEnd().split("\n").slice(-2)).toEqual(["state: settling_run", "state: idle"])
  })

  it("does not run one that is rejected", async () => {
    const { output } = await run("rejected", "n")
    expect(output).toContain("rejected this call")
    expect(node.acts()).toBe(1)
  })
})
