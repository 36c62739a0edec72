/**
 * The rules of the MCP client that need no server.
 */
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { boundedJson } from "../../../src/actors/mcp/bounded-json.ts"
import { readMcpConfig } from "../../../src/actors/mcp/config.ts"
import { resultOf } from "../../../src/actors/mcp/content.ts"
import { answerOf, questionOf } from "../../../src/actors/mcp/elicitation.ts"
import { afterFailure, afterLoss, afterSuccess, newHistory } from "../../../src/actors/mcp/machine.ts"
import { toolName } from "../../../src/actors/mcp/names.ts"
import { resolveServer } from "../../../src/actors/mcp/placeholders.ts"
import { searchTools } from "../../../src/actors/mcp/search.ts"
import { checkAnswer } from "../../../src/domain/question.ts"
import { echo } from "../../conversation/harness.ts"

const file = "/c/mcp_config.json"
const part = fc.oneof(fc.string({ minLength: 1, maxLength: 100 }), fc.stringMatching(/^[a-z_-]{1,40}$/))

describe("names", () => {
  it("are plain where they can be", () => {
    expect(toolName("files", "read_file")).toBe("mcp__files__read_file")
  })

  it("are what providers take, whatever a server calls itself and its tools", () => {
    fc.assert(
      fc.property(part, part, (server, tool) => {
        expect(toolName(server, tool)).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/)
        expect(toolName(server, tool)).toBe(toolName(server, tool))
      }),
    )
  })

  it("of two tools are two names", () => {
    fc.assert(
      fc.property(part, part, part, part, (a, b, c, d) => {
        fc.pre(a !== c || b !== d)
        expect(toolName(a, b)).not.toBe(toolName(c, d))
      }),
    )
    const ambiguous = [toolName("a__b", "c"), toolName("a", "b__c"), toolName("a_", "b"), toolName("a", "_b")]
    expect(new Set(ambiguous).size).toBe(4)
  })
})

describe("the configuration file", () => {
  const read = (value: unknown) => readMcpConfig(JSON.stringify(value), file)

  it("has processes and addresses; with both a process", () => {
    const { faults, servers } = read({
      mcpServers: {
        a: { command: "npx", args: ["-y", "x"], env: { T: "1" } },
        b: { url: "https://x/mcp", headers: { A: "b" } },
        c: { serverUrl: "http://x/sse", type: "sse", disabled: true },
        d: { command: "run", url: "https://x" },
      },
    })
    expect(faults).toEqual([])
    expect(servers).toEqual([
      {
        disabled: false,
        server: { name: "a", transport: "stdio", command: "npx", args: ["-y", "x"], env: { T: "1" } },
      },
      { disabled: false, server: { name: "b", transport: "http", url: "https://x/mcp", headers: { A: "b" } } },
      { disabled: true, server: { name: "c", transport: "sse", url: "http://x/sse", headers: {} } },
      { disabled: false, server: { name: "d", transport: "stdio", command: "run", args: [], env: {} } },
    ])
  })

  it("says what is wrong with which key of which file, and the others count", () => {
    const { faults, servers } = read({
      mcpServer: {},
      mcpServers: {
        ok: { command: "x" },
        a: { comand: "x" },
        b: { url: "ftp://x" },
        c: { command: "x", args: [1] },
        d: 5,
        e: { url: "https://x", oauth: { clientid: "x" } },
      },
    })
    expect(servers.map(({ server }) => server.name)).toEqual(["ok"])
    expect(faults).toEqual([
      `${file}: unknown key "mcpServer"; did you mean "mcpServers"?`,
      `${file}: unknown key "mcpServers.a.comand"; did you mean "mcpServers.a.command"?`,
      `${file}: mcpServers.a: expected a "command" or a "url", got "comand"; the server is not started`,
      `${file}: mcpServers.b.url: expected an absolute http or https URL, got "ftp://x"; the server is not started`,
      `${file}: mcpServers.c.args: expected an array of strings, got [1]; the server is not started`,
      `${file}: mcpServers.d: expected an object, got 5; the server is not started`,
      `${file}: unknown key "mcpServers.e.oauth.clientid"; did you mean "mcpServers.e.oauth.clientId"?`,
      `${file}: mcpServers.e.oauth.clientId: expected a client id, got nothing; the server is not started`,
    ])
    expect(readMcpConfig("{", file).faults[0]).toContain(`${file}:1:2: expected JSON`)
  })

  it("never throws", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void readMcpConfig(text, file)))
    fc.assert(fc.property(fc.jsonValue(), (value) => void read({ mcpServers: value })))
    fc.assert(fc.property(fc.jsonValue(), (value) => void read({ mcpServers: { a: value } })))
  })

  it("placeholders are variables of the environment, and a missing one is named", () => {
    const placeholder = (name: string) => `$\{${name}}`
    const server = {
      name: "a",
      transport: "http",
      url: "http://x",
      headers: { A: `Bearer ${placeholder("T")}` },
    } as const
    expect(resolveServer(server, { T: "1" })).toMatchObject({ headers: { A: "Bearer 1" } })
    expect(resolveServer(server, {})).toEqual({ problem: "headers: expected variables that are set, but T is not" })
    const { servers } = read({
      mcpServers: {
        b: { url: "http://x", oauth: { clientId: "me", clientSecret: placeholder("S"), callbackPort: 8123 } },
      },
    })
    const known = servers.map((one) => resolveServer(one.server, { S: "2" }))
    expect(known).toMatchObject([{ oauth: { clientId: "me", clientSecret: "2", callbackPort: 8123 } }])
    expect(servers.map((one) => resolveServer(one.server, {}))).toEqual([
      { problem: "oauth.clientSecret: expected variables that are set, but S is not" },
    ])
  })
})

describe("results", () => {
  it("are made of whatever a server answers", () => {
    const block = fc.record(
      { type: fc.constantFrom("text", "image", "audio", "resource", "resource_link", "x") },
      { requiredKeys: [] },
    )
    const value = fc.oneof(
      fc.jsonValue(),
      fc.record({ content: fc.array(fc.oneof(fc.jsonValue(), block)), structuredContent: fc.jsonValue() }),
    )
    fc.assert(fc.property(value, (answer) => void expect(resultOf(answer).output.length).toBeGreaterThan(0)))
  })

  it("of any depth are taken, and what is too deep is left out", () => {
    const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`)
    expect(resultOf({ structuredContent: deep(50) }).structuredOutput).toEqual(deep(50))
    for (const levels of [200, 200_000]) {
      const structuredContent = deep(levels)
      expect(resultOf({ structuredContent, content: [{ type: structuredContent }] }).structuredOutput).toBeUndefined()
    }
    expect(boundedJson({ a: '[[[[\\"{{{{' }, 100)).not.toBeNull()
  })

  it("are bounded, and say what was left out", () => {
    const { output } = resultOf({ content: [{ type: "text", text: "x".repeat(100_000) }] })
    expect(output).toHaveLength(2)
    expect(output[1]).toMatchObject({ text: "[50,848 more characters were left out]" })
  })
})

describe("questions of servers", () => {
  it("may name their fields like what every object has", () => {
    const fields = ["valueOf", "__proto__", "constructor", "toString"]
    const properties = Object.fromEntries(fields.map((id) => [id, { type: "string" }]))
    const answers = Object.fromEntries(fields.map((id) => [id, { selected: [], text: id }]))
    const params = { message: "?", requestedSchema: { properties } }
    const accepted = { action: "accept", content: Object.fromEntries(fields.map((id) => [id, id])) }
    expect(answerOf(params, { type: "answered", by: "me", answers })).toEqual(accepted)
    expect(answerOf(params, { type: "answered", by: "me", answers: {} })).toEqual({ action: "accept", content: {} })
  })

  it("are asked and answered without throwing, whatever the server asks for", () => {
    const schema = fc.record({
      properties: fc.dictionary(fc.string(), fc.jsonValue()),
      required: fc.array(fc.string()),
    })
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.record({ message: fc.string(), requestedSchema: schema })), (params) => {
        const question = questionOf("server", params, "1")
        const answers = Object.fromEntries(
          (question?.questions ?? []).map(({ id }) => [id, { selected: [], text: "1" }]),
        )
        expect(["accept", "cancel"]).toContain(answerOf(params, { type: "answered", answers, by: "me" }).action)
      }),
    )
  })

  it("take a number where one is due, and nothing where a field may be left out", () => {
    const params = {
      message: "?",
      requestedSchema: { properties: { n: { type: "integer" }, s: { type: "string" } }, required: ["n"] },
    }
    const question = questionOf("server", params, "1")
    const answered = (text: string) =>
      answerOf(params, {
        type: "answered",
        by: "me",
        answers: { n: { selected: [], text }, s: { selected: ["(leave out)"], text: null } },
      })
    expect(answered("7")).toEqual({ action: "accept", content: { n: 7 } })
    expect(answered("seven")).toEqual({ action: "cancel" })
    const body = { kind: "choice" as const, title: "", questions: question?.questions ?? [] }
    expect(
      checkAnswer(body, { n: { selected: [], text: "7" }, s: { selected: ["(leave out)"], text: null } })._tag,
    ).toBe("Right")
  })
})

describe("a link", () => {
  it("waits longer after each failure, at most a minute, and gives up after ten", () => {
    let history = newHistory
    const waits: Array<number> = []
    for (let attempt = 1; attempt <= 10; attempt++) {
      const step = afterFailure(history, "unreachable", 0.999_999)
      history = step.history
      if (step.state === "backoff") waits.push(step.waitMs)
      else expect(attempt).toBe(10)
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
  })

  it("forgets earlier failures once a connection has lasted, and tries a wrong configuration not again", () => {
    const failed = afterFailure(afterFailure(newHistory, "unreachable", 0).history, "unreachable", 0).history
    const ready = afterSuccess(failed, 1000)
    expect(afterLoss(ready, 2000, 0).history.failures).toBe(3)
    expect(afterLoss(ready, 70_000, 0).history.failures).toBe(1)
    expect(afterFailure(newHistory, "misconfigured", 0).state).toBe("failed")
    expect(afterFailure(newHistory, "login", 0).state).toBe("needs_login")
  })
})

describe("the search for tools", () => {
  it("finds by words of names and descriptions, names first", () => {
    const named = (name: string, description: string) => ({ ...echo, spec: { ...echo.spec, name, description } })
    const tools = [named("a", "reads a file"), named("file_write", "writes"), named("b", "mails")]
    expect(searchTools(tools, "File", 5).map(({ spec }) => spec.name)).toEqual(["file_write", "a"])
    expect(searchTools(tools, "nothing", 5)).toEqual([])
  })
})
