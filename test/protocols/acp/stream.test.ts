/**
 * What an editor may send that is no message: each line gets its error, and the connection and its sessions live.
 */
import { PassThrough } from "node:stream"
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { serveAcp } from "../../../src/protocols/acp/serve.ts"
import { readLine } from "../../../src/protocols/acp/stream.ts"
import { makeFakeSessions } from "../fake-sessions.ts"
import { protocolService } from "../service.ts"

interface Answer {
  readonly id: unknown
  readonly result?: { readonly [key: string]: unknown }
  readonly error?: { readonly code: number; readonly message: string }
}

/** A connection that takes text as it is. `end` gives everything that came back. */
const raw = async () => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const served = Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const { sessions } = yield* makeFakeSessions({})
        yield* serveAcp(protocolService(sessions), { cwd: process.cwd() }, { input, output })
      }),
    ),
  ).then(() => output.end())
  let text = ""
  output.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
  })
  return {
    send: (line: string | Uint8Array) => void input.write(line),
    end: async (): Promise<ReadonlyArray<Answer>> => {
      input.end()
      await served
      return text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    },
  }
}

const call = (id: unknown, method: string, params: unknown = {}) =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`
const initialize = call(0, "initialize", { protocolVersion: 1 })

describe("a line", () => {
  it.each([
    ["{", -32700, "Parse error: the line is not JSON"],
    ["[]", -32600, "Invalid Request: expected one message, got an array: batches are not supported"],
    ["7", -32600, "Invalid Request: expected an object"],
    ['{"jsonrpc":"1.0","id":3,"method":"initialize"}', -32600, 'Invalid Request: jsonrpc: expected "2.0"'],
    [
      '{"jsonrpc":"2.0","id":{},"method":"initialize"}',
      -32600,
      "Invalid Request: id: expected a string, a number or null",
    ],
    ['{"jsonrpc":"2.0","id":1,"method":7}', -32600, "Invalid Request: method: expected a string"],
    ['{"jsonrpc":"2.0"}', -32600, "Invalid Request: method: expected a string"],
    [`${"[".repeat(300)}${"]".repeat(300)}`, -32700, "Parse error: nested deeper than 256 levels"],
  ])("that is no message is told what was expected: %s", async (line, code, message) => {
    const connection = await raw()
    connection.send(`${line}\n${initialize}`)
    const answers = await connection.end()
    expect(answers.find(({ error }) => error !== undefined)?.error).toMatchObject({ code, message })
    expect(answers.find(({ id }) => id === 0)?.result).toMatchObject({ protocolVersion: 1 })
  })

  it("that is not UTF-8, or too long, is told so and the next one is read", async () => {
    const connection = await raw()
    connection.send(new Uint8Array([0xff, 0xfe, 0x0a]))
    const chunk = Buffer.alloc(1024 * 1024, 0x20)
    for (let sent = 0; sent < 17; sent++) connection.send(chunk)
    connection.send(`\n${initialize}`)
    const answers = await connection.end()
    expect(answers.map(({ error }) => error?.message)).toEqual([
      "Parse error: the line is not UTF-8",
      "Parse error: the line is longer than 16777216 bytes",
      undefined,
    ])
  })

  it("never makes the reader throw", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .record(
          {
            jsonrpc: fc.constantFrom("2.0", "1.0", 2),
            id: fc.jsonValue(),
            method: fc.jsonValue(),
            params: fc.jsonValue(),
          },
          { requiredKeys: [] },
        )
        .map((value) => Buffer.from(JSON.stringify(value))),
    )
    fc.assert(
      fc.property(bytes, (line) => {
        const read = readLine({ type: "line", bytes: line })
        expect(read === null || "message" in read || read.error.code < 0).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe("requests", () => {
  it("before initialize, and of methods that there are not, get the protocol's own errors", async () => {
    const connection = await raw()
    connection.send(call(1, "session/list"))
    connection.send(initialize)
    connection.send(call(2, "session/nothing"))
    const answers = await connection.end()
    expect(answers.find(({ id }) => id === 1)?.error?.code).toBe(-32600)
    expect(answers.find(({ id }) => id === 2)?.error?.code).toBe(-32601)
  })

  it("with wrong parameters are told which and what was expected", async () => {
    const connection = await raw()
    connection.send(initialize)
    connection.send(call(1, "session/new", { cwd: 7, mcpServers: [] }))
    connection.send(call(2, "session/prompt", { sessionId: "acp_x", prompt: [{ type: "text" }] }))
    connection.send(call(3, "session/prompt", { sessionId: "acp_x", prompt: [] }))
    connection.send(call(4, "_superpi/session/fork", { sessionId: 7 }))
    const answers = await connection.end()
    const of = (id: number) => answers.find((one) => one.id === id)?.error
    expect(of(1)).toMatchObject({ code: -32602, message: "Invalid params: cwd: expected string, received number" })
    expect(of(2)?.code).toBe(-32602)
    expect(of(3)?.code).toBe(-32002)
    expect(of(4)).toMatchObject({ code: -32602, message: "Invalid params: sessionId: expected string" })
  })

  it("of any shape are answered once each, and the connection lives", async () => {
    const methods = [
      "session/new",
      "session/load",
      "session/resume",
      "session/list",
      "session/close",
      "session/delete",
      "session/set_mode",
      "session/set_config_option",
      "session/prompt",
      "authenticate",
      "_superpi/session/fork",
    ]
    const params = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.record(
        {
          sessionId: fc.oneof(fc.string(), fc.jsonValue({ maxDepth: 1 })),
          cwd: fc.constantFrom("/", "", "relative", 7, null),
          mcpServers: fc.oneof(fc.constant([]), fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 2 })),
          prompt: fc.array(
            fc.oneof(
              fc.jsonValue({ maxDepth: 2 }),
              fc.record({
                type: fc.constantFrom("text", "image", "resource", "resource_link", "audio"),
                text: fc.string(),
                data: fc.string(),
                mimeType: fc.string(),
              }),
            ),
            { maxLength: 3 },
          ),
          _meta: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant({ harness: 1 })),
          cursor: fc.string(),
        },
        { requiredKeys: [] },
      ),
    )
    const calls = fc.array(fc.tuple(fc.constantFrom(...methods), params), { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(calls, async (all) => {
        const connection = await raw()
        connection.send(initialize)
        for (const [index, [method, value]] of all.entries()) connection.send(call(`c${index}`, method, value))
        connection.send(call("last", "initialize", { protocolVersion: 1 }))
        const answers = await connection.end()
        expect(answers.find(({ id }) => id === "last")?.result).toBeDefined()
        for (const [index, [method]] of all.entries()) {
          const own = answers.filter(({ id }) => id === `c${index}`)
          // A prompt that runs is not waited for when the editor goes.
          expect(own.length === 1 || (method === "session/prompt" && own.length === 0)).toBe(true)
        }
      }),
      { numRuns: 40 },
    )
  })

  it("beyond what may run at once are answered busy", async () => {
    const connection = await raw()
    connection.send(initialize)
    for (let sent = 0; sent < 300; sent++) connection.send(call(`r${sent}`, "session/list"))
    const answers = await connection.end()
    expect(answers.filter(({ id }) => typeof id === "string")).toHaveLength(300)
    for (const { error } of answers) if (error !== undefined) expect(error.code).toBe(-32004)
  })
})
