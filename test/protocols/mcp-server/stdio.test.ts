/**
 * The MCP server on two streams: answers, bad lines, the end of the input, both eras of the protocol.
 */
import { PassThrough } from "node:stream"
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { serveMcpStdio } from "../../../src/protocols/mcp/server/stdio.ts"
import { type McpNode, startMcpNode } from "./node.ts"

let node: McpNode
beforeAll(async () => {
  node = await startMcpNode()
})
afterAll(() => node.close())

interface Message {
  readonly id?: number | string | null
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

const line = (value: object) => `${JSON.stringify(value)}\n`
const hello = line({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
})
const ping = (id: number) => line({ jsonrpc: "2.0", id, method: "ping" })

/** Serves one client that says all of `input` and ends its side; resolves to what it was told. */
const talk = async (input: string | Uint8Array): Promise<ReadonlyArray<Message>> => {
  const streams = { input: new PassThrough(), output: new PassThrough(), lastAnswersMs: 60_000 }
  let text = ""
  streams.output.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
  })
  const serving = Effect.runFork(serveMcpStdio(node.served, streams))
  streams.input.end(input)
  await Effect.runPromise(Fiber.join(serving))
  return text
    .split("\n")
    .filter((one) => one !== "")
    .map((one) => JSON.parse(one) as Message)
}

const answerTo = (messages: ReadonlyArray<Message>, id: number) => messages.find((one) => one.id === id)

describe("super-pi mcp", () => {
  it("answers what was asked before its input ended, and is over then", async () => {
    const call = { name: "ls", arguments: {} }
    const messages = await talk(hello + line({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call }) + ping(2))
    expect(answerTo(messages, 0)?.result).toMatchObject({ serverInfo: { name: "super-pi" } })
    expect(answerTo(messages, 1)?.result).toMatchObject({ structuredContent: { path: "." } })
    expect(answerTo(messages, 2)?.result).toEqual({})
  })

  it("answers lines that are no message with the protocol's error, and goes on", async () => {
    const invalid = line({ jsonrpc: "2.0", id: 7, method: 5 })
    const messages = await talk(`${hello}nonsense\n${"[".repeat(1_000)}\n${invalid}[]\n${ping(9)}`)
    expect(messages.flatMap(({ error }) => error?.code ?? [])).toEqual([-32700, -32700, -32600, -32600])
    expect(answerTo(messages, 7)?.error?.message).toContain("expected a JSON-RPC 2.0 request")
    expect(answerTo(messages, 9)?.result).toEqual({})
  })

  it("serves the stateless protocol where the client begins with it", async () => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    }
    const ask = (id: number, method: string) => line({ jsonrpc: "2.0", id, method, params: { _meta } })
    const messages = await talk(ask(1, "server/discover") + ask(2, "tools/list"))
    expect(answerTo(messages, 1)?.result).toMatchObject({ supportedVersions: ["2026-07-28"] })
    expect(answerTo(messages, 2)?.result).toMatchObject({ resultType: "complete" })
  })

  it("takes any lines without falling over", { timeout: 60_000 }, async () => {
    const lines = fc.array(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.json().map((params) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`),
        fc.json().map((id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`),
      ),
      { maxLength: 5 },
    )
    await fc.assert(
      fc.asyncProperty(lines, async (given) => {
        const messages = await talk(`${hello}${given.map((one) => `${one}\n`).join("")}${ping(424_242)}`)
        expect(answerTo(messages, 424_242)?.result).toEqual({})
      }),
      { numRuns: 40 },
    )
  })
})
