/**
 * Direct calls beside what else a conversation has: undo, plugins that change the model or commit, completions of ids, repeated requests, and
 * what the context says of the workspace.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { ConversationId } from "../../../src/domain/ids.ts"
import type { Harness } from "../../../src/harness/harness.ts"
import { makeRecentOutputs } from "../../../src/protocols/mcp/server/recent.ts"
import { openSession } from "./client.ts"
import { type McpNode, startMcpNode } from "./node.ts"

/** Commits what a run has changed. */
const commits: Harness = {
  id: "commits",
  name: "Commits",
  description: "Commits every run",
  plugins: ["permissions", "git-checkpoint", ["auto-commit", { enabled: true }]],
  prompt: "Commit.",
}

let node: McpNode
beforeAll(async () => {
  // Read when the node starts: every request of a conversation with JevRouter would go to these models.
  vi.stubEnv("JEV_PLANNING_MODEL", "script/planning")
  vi.stubEnv("JEV_IMPLEMENTATION_MODEL", "script/implementation")
  node = await startMcpNode({
    extraHarnesses: [commits],
    tokens: "alice=token-a,bob=token-b",
  })
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: node.directory, stdio: "pipe" })
  git("init", "--quiet")
  git("config", "user.name", "Test")
  git("config", "user.email", "test@example.com")
  git("commit", "--quiet", "--allow-empty", "-m", "first")
})
afterAll(() => node.close())

const hers = { authorization: "Bearer token-a" }
const his = { authorization: "Bearer token-b" }
const principal = "alice"

const file = (name: string) => join(node.directory, name)

/** The conversation of a call. */
const conversationOf = (result: Record<string, unknown>): ConversationId =>
  ConversationId.make((result._meta as Record<string, number>)["superpi/conversationId"] ?? 0)

/** What the model has said in a conversation. */
const answersIn = async (conversationId: ConversationId) => {
  const entries = await Effect.runPromise(node.sessions.transcript({ conversationId, principal }))
  return entries.flatMap(({ model }) => model).flatMap((message) => (message.role === "assistant" ? [message] : []))
}

interface Context {
  readonly rules: ReadonlyArray<{ readonly path: string; readonly text: string; readonly cut: boolean }> | null
  readonly rulesWithoutRoom: ReadonlyArray<string>
}

const contextOf = async (query = ""): Promise<Context> => {
  const { ask } = await openSession(node, hers, query)
  const { contents } = (await ask("resources/read", { uri: "superpi://workspace/context" })).result as {
    readonly contents: ReadonlyArray<{ readonly text: string }>
  }
  return JSON.parse(contents[0]?.text ?? "")
}

describe("a direct call", () => {
  it("can be undone", async () => {
    const { call } = await openSession(node, hers)
    writeFileSync(file("undone.txt"), "before\n")
    const conversationId = conversationOf(await call("write", { path: "undone.txt", content: "after\n" }))
    await call("write", { path: "new/undone.txt", content: "new\n" })
    expect(readFileSync(file("undone.txt"), "utf8")).toBe("after\n")
    // A call is answered as soon as it has ended; its run ends a moment later.
    const state = () => Effect.runPromise(node.sessions.state({ conversationId, principal }))
    await expect.poll(async () => (await state()).state, { timeout: 30_000 }).toBe("idle")
    const undo = () => Effect.runPromise(node.sessions.undo({ conversationId, principal, checkpoint: null }))
    await undo()
    expect(existsSync(file("new"))).toBe(false)
    expect(readFileSync(file("undone.txt"), "utf8")).toBe("after\n")
    await undo()
    expect(readFileSync(file("undone.txt"), "utf8")).toBe("before\n")
  })

  it("is made as it was asked for, whatever models JevRouter would choose", async () => {
    const { call } = await openSession(node, hers, "?harness=super-pi-code")
    const listed = await call("ls", {})
    expect(listed).toMatchObject({ structuredContent: { path: "." } })
    await call("write", { path: "routed.txt", content: "routed" })
    expect(readFileSync(file("routed.txt"), "utf8")).toBe("routed")
    const conversationId = conversationOf(await call("read", { path: "routed.txt" }))
    const { model, usage } = await Effect.runPromise(node.sessions.state({ conversationId, principal }))
    expect({ model, input: usage.input, output: usage.output }).toEqual({ model: "direct/call", input: 0, output: 0 })
    const said = await answersIn(conversationId)
    expect(new Set(said.map((message) => message.model))).toEqual(new Set(["direct/call"]))
    const calls = said.flatMap(({ content }) => content).flatMap((part) => (part.type === "toolCall" ? part.name : []))
    expect(calls).toEqual(["ls", "write", "read"])
    // JevRouter is at work all the same: a task goes to its model.
    const task = await call("harness_task", { prompt: "hello" })
    const { conversation_id: worked } = task.structuredContent as { readonly conversation_id: number }
    expect((await answersIn(ConversationId.make(worked))).map((message) => message.model)).toEqual(["script/planning"])
  })

  it("is committed by AutoCommit, and nothing else is", async () => {
    writeFileSync(file("mine.txt"), "not the agent's")
    const { call } = await openSession(node, hers, "?harness=commits")
    await call("write", { path: "committed.txt", content: "kept" })
    const git = (...args: ReadonlyArray<string>) =>
      execFileSync("git", args, { cwd: node.directory, encoding: "utf8" }).trim()
    await expect.poll(() => git("log", "-1", "--format=%s"), { timeout: 30_000 }).toBe("[super-pi] Change 1 file")
    expect(git("show", "--name-only", "--format=", "HEAD")).toBe("committed.txt")
  })

  it("has its structured content where its request is repeated", async () => {
    const { call } = await openSession(node, hers)
    const first = await call("find", { pattern: "*.txt" }, 70)
    expect(first.structuredContent).toBeDefined()
    expect(await call("find", { pattern: "*.txt" }, 70)).toEqual(first)
  })
})

describe("structured outputs that are kept", () => {
  it("are the newest, within their bound", () => {
    const outputs = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.string({ maxLength: 30 })), { maxLength: 40 })
    fc.assert(
      fc.property(outputs, (given) => {
        const recent = makeRecentOutputs(80)
        const newest = new Map<string, string>()
        for (const [at, value] of given) {
          recent.keep(String(at), value)
          if (JSON.stringify(value).length <= 10) newest.set(String(at), value)
          const kept = [...newest.keys()].map((key) => recent.of(key)).filter((one) => one !== null)
          expect(kept.reduce((sum: number, one) => sum + JSON.stringify(one).length, 0)).toBeLessThanOrEqual(80)
          for (const [key, one] of newest) expect([one, null]).toContainEqual(recent.of(key))
          if (newest.get(String(at)) === value) expect(recent.of(String(at))).toBe(value)
        }
      }),
    )
  })
})

describe("completions", () => {
  const uri = "superpi://conversation/{id}/transcript"
  const complete = async (headers: Record<string, string>, ref: object, argument: object) => {
    const { ask } = await openSession(node, headers)
    return ((await ask("completion/complete", { ref, argument })).result as { completion: { values: Array<string> } })
      .completion.values
  }

  it("are the conversations of the caller that begin so, and nobody else's", async () => {
    const { call } = await openSession(node, hers)
    const id = String(conversationOf(await call("ls", {})))
    const ids = (headers: Record<string, string>, value: string) =>
      complete(headers, { type: "ref/resource", uri }, { name: "id", value })
    expect(await ids(hers, "")).toContain(id)
    expect(await ids(hers, id)).toContain(id)
    for (const one of await ids(hers, id.slice(0, 1))) expect(one.startsWith(id.slice(0, 1))).toBe(true)
    expect(await ids(hers, "x")).toEqual([])
    expect(await ids(his, "")).not.toContain(id)
  })

  it("are none for the goal of a prompt, which is free", async () => {
    const ref = { type: "ref/prompt", name: "plan_architecture" }
    expect(await complete(hers, ref, { name: "goal", value: "a" })).toEqual([])
  })

  it("of what there is not are refused", async () => {
    const { ask } = await openSession(node, hers)
    const ref = { type: "ref/resource", uri: "superpi://nothing/{id}" }
    const refused = await ask("completion/complete", { ref, argument: { name: "id", value: "" } })
    expect(refused.error?.code).toBe(-32602)
  })
})

describe("the context of the workspace", () => {
  it("has the rules files of the harness, the nearest first", async () => {
    writeFileSync(file("AGENTS.md"), "Be brief.\n")
    mkdirSync(join(node.directory, ".agents", "rules"), { recursive: true })
    writeFileSync(file(".agents/rules/tests.md"), "Test it.\n")
    mkdirSync(`${node.directory}.config`, { recursive: true })
    writeFileSync(`${node.directory}.config/AGENTS.md`, "Be kind.\n")
    const { rules, rulesWithoutRoom } = await contextOf()
    expect(rules).toEqual([
      { path: "AGENTS.md", text: "Be brief.", cut: false },
      { path: ".agents/rules/tests.md", text: "Test it.", cut: false },
      { path: `${node.directory}.config/AGENTS.md`, text: "Be kind.", cut: false },
    ])
    expect(rulesWithoutRoom).toEqual([])
  })

  it("names rules that a prompt has no room for", async () => {
    writeFileSync(file("AGENTS.md"), `${"A rule that says very little.\n".repeat(2_000)}`)
    const { rules, rulesWithoutRoom } = await contextOf()
    expect(rules?.[0]).toMatchObject({ path: "AGENTS.md", cut: true })
    expect(rulesWithoutRoom).toContain(`${node.directory}.config/AGENTS.md`)
  })

  it("has none for a harness without rules, and says where they are not known", async () => {
    expect((await contextOf("?harness=super-pi-assistant")).rules).toEqual([])
    expect((await contextOf("?harness=super-pi-librarian")).rules).toBeNull()
  })
})
