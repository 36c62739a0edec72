/**
 * The JSON-RPC examples as they stand there, as processes of their own, against a server of their own.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startServer } from "../../examples/json-rpc/server.ts"
import { buildProgram, launcher } from "../cli/program.ts"
import { type Example, exampleProgram } from "./program.ts"

const execute = promisify(execFile)
let client: Example
let showcase: Example

beforeAll(async () => {
  await buildProgram()
  client = await exampleProgram("examples/json-rpc-client.ts")
  showcase = await exampleProgram("examples/json-rpc-showcase.ts")
}, 120_000)
afterAll(() => {
  client?.remove()
  showcase?.remove()
})

describe("examples/json-rpc-client.ts", () => {
  it("asks a running server and prints the answer as it comes", async () => {
    const server = await startServer(launcher)
    try {
      const { stderr, stdout } = await execute(process.execPath, [client.file, String(server.port), "Hello there"])
      expect(stderr).toBe("")
      expect(stdout).toBe("You said: Hello there\n(done)\n")
    } finally {
      await server.stop()
    }
  }, 60_000)
})

describe("examples/json-rpc-showcase.ts", () => {
  it("shows that two deliveries are on their way and that nothing is missing afterwards", async () => {
    const { stderr, stdout } = await execute(process.execPath, [showcase.file, launcher])
    expect(stderr).toBe("")
    expect(stdout.split("\n")).toEqual([
      "delivery 1: snapshot",
      "the conversation answers: You said: one",
      "the conversation answers: You said: two",
      "the watcher has acknowledged nothing and got 2 deliveries, the most that may be on their way",
      "after acknowledging, everything that waited came: no gap, no double",
      "",
    ])
  }, 60_000)
})
