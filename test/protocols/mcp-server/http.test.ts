/**
 * `POST /mcp` against a real node: direct calls, tasks, resources, sessions, origins, and both eras of the protocol.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ConversationId } from "../../../src/domain/ids.ts"
import { type Answer, hello, modern, openSession, rpc, send, textOf } from "./client.ts"
import { type McpNode, startMcpNode } from "./node.ts"

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const [hers, his] = [bearer("token-a"), bearer("token-b")]
const auto = { ownMode: "auto", remoteDefaultMode: "auto", remoteMaxMode: "auto" } as const

let node: McpNode
let free: McpNode
beforeAll(async () => {
  node = await startMcpNode({ tokens: "token-a,token-b" })
  free = await startMcpNode({ service: { remote: auto } })
})
afterAll(() => Promise.all([node.close(), free.close()]))

const askModern = async (id: number, method: string, params: Record<string, unknown> = {}, headers = {}) => {
  const named = typeof params.name === "string" ? { "mcp-name": params.name } : {}
  const head = { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...named, ...headers }
  return (await (await send(node.url, modern(id, method, params), head)).json()) as Answer
}

describe("direct calls", () => {
  it("are listed with what their effects mean for a client", async () => {
    const { ask } = await openSession(node, hers)
    const { tools } = (await ask("tools/list")).result as {
      readonly tools: ReadonlyArray<{ readonly name: string; readonly annotations: Record<string, unknown> }>
    }
    expect(tools.map(({ name }) => name)).toEqual([
      ...["read", "write", "edit", "bash", "grep", "find", "ls"],
      "harness_task",
    ])
    const hints = Object.fromEntries(tools.map(({ annotations, name }) => [name, annotations]))
    expect(hints.read).toMatchObject({ readOnlyHint: true, destructiveHint: false, openWorldHint: false })
    expect(hints.bash).toMatchObject({ readOnlyHint: false, destructiveHint: true, openWorldHint: true })
  })

  it("act in the workspace and answer with structured content", async () => {
    const { call } = await openSession(node, hers)
    const content = "a !{touch made} {{command:0}}\n"
    const written = await call("write", { path: "one.txt", content })
    expect(written.isError).toBeUndefined()
    expect(readFileSync(join(node.directory, "one.txt"), "utf8")).toBe(content)
    expect(existsSync(join(node.directory, "made"))).toBe(false)
    expect(await call("ls", {})).toMatchObject({ structuredContent: { path: "." } })
  })

  it("go through the permissions of remote callers, and say why they were refused", async () => {
    const { call } = await openSession(node, hers)
    const refused = await call("bash", { command: "touch made" })
    expect(refused.isError).toBe(true)
    expect(textOf(refused)).toContain("permissions.allow")
    expect(existsSync(join(node.directory, "made"))).toBe(false)
    expect(textOf(await call("read", { path: "/etc/passwd" }))).toContain("workspace")
  })

  it("tell a caller what is wrong with its arguments", async () => {
    const { call } = await openSession(node, hers)
    const wrong = await call("read", { path: 5 })
    expect(wrong.isError).toBe(true)
    expect(textOf(wrong)).toContain("path: expected")
  })

  it("run once for a request that is repeated", async () => {
    const { call } = await openSession(node, hers)
    const file = join(node.directory, "repeated.txt")
    const first = await call("write", { path: "repeated.txt", content: "first" }, 77)
    writeFileSync(file, "changed since")
    expect(textOf(await call("write", { path: "repeated.txt", content: "first" }, 77))).toBe(textOf(first))
    expect(readFileSync(file, "utf8")).toBe("changed since")
  })

  it("run at the same time", async () => {
    const { call } = await openSession(free)
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => call("bash", { command: `echo ${n}` })))
    expect(answers.map(textOf)).toEqual(["1", "2", "3", "4", "5", "6"])
  })

  it("leave a transcript that only their principal can read", async () => {
    const { ask, call } = await openSession(node, hers)
    const { _meta } = (await call("ls", {})) as { readonly _meta: Record<string, number> }
    const id = _meta["superpi/conversationId"] ?? 0
    const uri = `superpi://conversation/${id}/transcript`
    const listed = (await ask("resources/list")).result as { readonly resources: ReadonlyArray<{ uri: string }> }
    expect(listed.resources.map((one) => one.uri)).toContain(uri)
    const read = (await ask("resources/read", { uri })).result as {
      readonly contents: ReadonlyArray<{ readonly text: string }>
    }
    const lines = (read.contents[0]?.text ?? "")
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly kind: string })
    expect(lines.map(({ kind }) => kind)).toContain("pi.tool-result")
    const stranger = await openSession(node, his)
    const theirs = await stranger.ask("resources/read", { uri })
    const nobodys = await stranger.ask("resources/read", { uri: "superpi://conversation/999999/transcript" })
    expect(theirs.error?.code).toBe(-32602)
    expect(theirs.error?.message.replace(String(id), "999999")).toBe(nobodys.error?.message)
  })

  it("ask no service and count no token", async () => {
    const { call } = await openSession(free)
    const { _meta } = (await call("ls", {})) as { readonly _meta: Record<string, number> }
    const conversationId = ConversationId.make(_meta["superpi/conversationId"] ?? 0)
    const state = await Effect.runPromise(free.sessions.state({ conversationId }))
    expect(state).toMatchObject({ model: "direct/call", usage: { input: 0, output: 0 } })
  })
})

describe("harness_task", () => {
  it("works on a prompt in a conversation of its own", async () => {
    const { call } = await openSession(node, hers)
    const done = await call("harness_task", { prompt: "hello", harness: "planner" })
    expect(textOf(done)).toBe("an answer")
    expect(done.structuredContent).toMatchObject({ harness: "super-pi-planner" })
  })

  it("names the harnesses where it is given another", async () => {
    const { call } = await openSession(node, hers)
    const wrong = await call("harness_task", { prompt: "hello", harness: "nobody" })
    expect(wrong.isError).toBe(true)
    expect(textOf(wrong)).toContain("harness")
  })
})

describe("prompts", () => {
  it("are one for each harness, and one for plans", async () => {
    const { ask } = await openSession(node, hers)
    const { prompts } = (await ask("prompts/list")).result as { readonly prompts: ReadonlyArray<{ name: string }> }
    expect(prompts.map(({ name }) => name)).toEqual([
      ...["super-pi-code", "super-pi-assistant", "super-pi-librarian", "super-pi-planner"],
      "plan_architecture",
    ])
    const got = await ask("prompts/get", { name: "plan_architecture", arguments: { goal: "a bridge" } })
    expect(JSON.stringify(got.result)).toContain("a bridge")
    expect((await ask("prompts/get", { name: "plan_architecture" })).error?.message).toContain("goal: expected a text")
  })
})

describe("sessions", () => {
  it("are needed by every request but the first", async () => {
    expect((await send(node.url, rpc(1, "tools/list"), hers)).status).toBe(400)
    const gone = await send(node.url, rpc(1, "tools/list"), { ...hers, "mcp-session-id": "nobody" })
    expect(gone.status).toBe(404)
  })

  it("belong to the principal that opened them", async () => {
    const { session } = await openSession(node, hers)
    const stranger = await send(node.url, rpc(1, "ping"), { ...session, ...his })
    expect(stranger.status).toBe(404)
  })

  it("end with DELETE", async () => {
    const { session } = await openSession(node, hers)
    expect((await send(node.url, null, session, "DELETE")).status).toBe(200)
    expect((await send(node.url, rpc(1, "ping"), session)).status).toBe(404)
    expect((await send(node.url, null, hers, "DELETE")).status).toBe(400)
  })

  it("are bounded in number, and end when they are not used", async () => {
    const small = await startMcpNode({ maxSessions: 1, sessionTtlMs: 1 })
    try {
      const { session } = await openSession(small)
      const ping = async () => (await send(small.url, rpc(1, "ping"), session)).status
      await expect.poll(ping, { timeout: 30_000 }).toBe(404)
      const full = await startMcpNode({ maxSessions: 1 })
      try {
        await openSession(full)
        const refused = await send(full.url, hello())
        expect(refused.status).toBe(503)
        expect(((await refused.json()) as Answer).error?.message).toContain("too many sessions")
      } finally {
        await full.close()
      }
    } finally {
      await small.close()
    }
  })

  it("have the harness that the client names, by any of its names", async () => {
    const { ask } = await openSession(node, hers, "?harness=planner")
    const { tools } = (await ask("tools/list")).result as { readonly tools: ReadonlyArray<{ name: string }> }
    expect(tools.map(({ name }) => name)).toEqual(["read", "grep", "find", "ls", "harness_task"])
    const unknown = await send(`${node.url}?harness=nobody`, hello(), hers)
    expect(unknown.status).toBe(400)
    expect(((await unknown.json()) as Answer).error?.code).toBe(-32602)
  })

  it("have the mode that the client asks for, which only ever tightens", async () => {
    const plan = await openSession(free, { "x-super-pi-mode": "plan" })
    const refused = await plan.call("write", { path: "planned.txt", content: "x" })
    expect(refused.isError).toBe(true)
    expect(existsSync(join(free.directory, "planned.txt"))).toBe(false)
    const more = await openSession(node, { ...hers, "x-super-pi-mode": "auto" })
    expect(textOf(await more.call("bash", { command: "touch made" }))).toContain("permissions.allow")
    expect(existsSync(join(node.directory, "made"))).toBe(false)
    const unknown = await send(node.url, hello(), { ...hers, "x-super-pi-mode": "root" })
    expect(unknown.status).toBe(400)
    expect(((await unknown.json()) as Answer).error?.message).toContain('expected "plan", "accept-edits", "auto"')
  })

  it("speak the older versions too", async () => {
    for (const version of ["2025-06-18", "2025-03-26", "2024-11-05"]) {
      const answer = (await (await send(node.url, hello(version), hers)).json()) as Answer
      expect(answer.result?.protocolVersion).toBe(version)
    }
  })
})

describe("the endpoint", () => {
  it("takes POST and DELETE only", async () => {
    expect((await send(node.url, null, hers, "GET")).status).toBe(405)
  })

  it("answers with one event where the client takes nothing else", async () => {
    const response = await send(node.url, hello(), { ...hers, accept: "text/event-stream" })
    expect(response.headers.get("content-type")).toContain("text/event-stream")
    expect((await response.text()).match(/^data: /gm)).toHaveLength(1)
    expect((await send(node.url, hello(), { ...hers, accept: "text/html" })).status).toBe(406)
    expect((await send(node.url, hello(), { ...hers, "content-type": "text/plain" })).status).toBe(415)
  })

  it("refuses web pages of other origins while no token is configured", async () => {
    const status = async (origin: string) => (await send(free.url, hello(), { origin })).status
    expect(await status("https://evil.example")).toBe(403)
    expect(await status("http://localhost:5173")).toBe(200)
    expect((await send(node.url, hello(), { ...hers, origin: "https://evil.example" })).status).toBe(200)
  })

  it("says where a body stops being JSON, and takes any body without falling over", { timeout: 60_000 }, async () => {
    const wrong = await send(node.url, '{"a":', hers)
    expect(wrong.status).toBe(400)
    expect(((await wrong.json()) as Answer).error?.code).toBe(-32700)
    const deep = await send(node.url, "[".repeat(100_000), hers)
    expect(deep.status).toBe(400)
    const { session } = await openSession(free)
    const bodies = fc.oneof(
      fc.string(),
      fc.json(),
      fc.json().map((params) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`),
      fc
        .json()
        .map((args) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":${args}}}`),
      fc.json().map((meta) => `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`),
    )
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const response = await send(free.url, body, session)
        await response.text()
        expect(response.status).toBeLessThan(500)
      }),
      { numRuns: 60 },
    )
    expect((await send(free.url, rpc(1, "ping"), session)).status).toBe(200)
  })
})

describe("the stateless protocol", () => {
  it("is discovered, and needs no session", async () => {
    const found = await askModern(1, "server/discover", {}, hers)
    expect(found.result).toMatchObject({ resultType: "complete", supportedVersions: ["2026-07-28"] })
    expect((await askModern(2, "tools/list", {}, hers)).result).toMatchObject({ cacheScope: "private" })
  })

  it("keeps requests of two clients apart that have the same id", async () => {
    writeFileSync(join(node.directory, "two.txt"), "one line\n")
    const call = (name: string, args: object) => askModern(1, "tools/call", { name, arguments: args }, hers)
    const [listed, read] = await Promise.all([call("ls", {}), call("read", { path: "two.txt" })])
    expect(listed.result).toMatchObject({ structuredContent: { path: "." } })
    expect(textOf(read.result ?? {})).toContain("one line")
    writeFileSync(join(node.directory, "two.txt"), "another line\n")
    expect(textOf((await call("read", { path: "two.txt" })).result ?? {})).toContain("another line")
  })

  it("checks what the headers say against the body", async () => {
    const wrong = { ...hers, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call" }
    const answer = (await (await send(node.url, modern(1, "tools/list"), wrong)).json()) as Answer
    expect(answer.error?.code).toBe(-32020)
  })
})
