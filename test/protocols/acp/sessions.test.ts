/**
 * Sessions that outlive their connection: found again, loaded with what was said, resumed, listed, forked, closed, deleted.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { PromptRequest } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { editorOf } from "./editor.ts"
import { onNode, promise } from "./node.ts"

const scratch = mkdtempSync(join(tmpdir(), "super-pi-acp-sessions-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const rules = [
  { match: "^hello", steps: [{ thinking: "hm", text: "good morning" }] },
  {
    match: "^look",
    steps: [{ text: "looking", tools: [{ id: "l1", name: "ls", args: { path: "." } }] }, { text: "seen" }],
  },
  {
    match: "^plan",
    steps: [
      { tools: [{ id: "t1", name: "todo", args: { action: "add", items: [{ text: "first" }, { text: "second" }] } }] },
      { text: "planned" },
    ],
  },
  { match: "^wait", steps: [{ text: "let me think", hang: true }, { text: "never" }] },
]

const prompt = (sessionId: string, text: string): PromptRequest => ({ sessionId, prompt: [{ type: "text", text }] })
const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown }).code
const failing = <A>(run: () => Promise<A>) => Effect.flip(promise(run))

describe("a stored session", () => {
  it("is loaded by another connection with everything that was said, in its order, before the answer", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const first = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          first.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => first.agent.request("session/prompt", prompt(sessionId, "hello")))
        yield* promise(() => first.agent.request("session/prompt", prompt(sessionId, "look around")))
        first.close()

        const second = yield* editorOf(service)
        const loaded = yield* promise(() =>
          second.agent.request("session/load", { sessionId, cwd: workspace, mcpServers: [] }),
        )
        expect(loaded.modes).toMatchObject({ currentModeId: "accept-edits" })
        const kinds = second.updates.map(({ update }) => update.sessionUpdate)
        expect(kinds.slice(0, 8)).toEqual([
          "user_message_chunk",
          "agent_thought_chunk",
          "agent_message_chunk",
          "user_message_chunk",
          "agent_message_chunk",
          "tool_call",
          "tool_call_update",
          "agent_message_chunk",
        ])
        expect(second.said("user_message_chunk")).toBe("hellolook around")
        expect(second.said("agent_message_chunk")).toBe("good morninglookingseen")
        expect(second.faults).toEqual([])
      }),
    ))

  it("is resumed without its history, and goes on", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const first = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          first.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => first.agent.request("session/prompt", prompt(sessionId, "hello")))
        first.close()
        const second = yield* editorOf(service)
        yield* promise(() => second.agent.request("session/resume", { sessionId, cwd: workspace }))
        expect(second.said("agent_message_chunk")).toBe("")
        yield* promise(() => second.agent.request("session/prompt", prompt(sessionId, "hello again")))
        expect(second.said("agent_message_chunk")).toBe("good morning")
        expect(second.said("user_message_chunk")).toBe("")
      }),
    ))

  it("shows its plan as it is now", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const first = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          first.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => first.agent.request("session/prompt", prompt(sessionId, "plan it")))
        const plan = {
          sessionUpdate: "plan",
          entries: [
            { content: "first", status: "pending", priority: "medium" },
            { content: "second", status: "pending", priority: "medium" },
          ],
        }
        expect(first.updates.map(({ update }) => update)).toContainEqual(plan)
        const second = yield* editorOf(service)
        yield* promise(() => second.agent.request("session/resume", { sessionId, cwd: workspace }))
        expect(second.updates.map(({ update }) => update)).toContainEqual(plan)
      }),
    ))

  it("is loaded in the middle of an answer: what was said is told once, the rest comes as it is said", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const first = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          first.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => first.agent.request("session/prompt", prompt(sessionId, "hello")))
        const ended = first.agent.request("session/prompt", prompt(sessionId, "wait"))
        yield* promise(() => first.until(() => first.said("agent_message_chunk").endsWith("let me think")))
        const second = yield* editorOf(service)
        yield* promise(() => second.agent.request("session/load", { sessionId, cwd: workspace, mcpServers: [] }))
        expect(second.said("user_message_chunk")).toBe("hellowait")
        expect(second.said("agent_message_chunk")).toBe("good morninglet me think")
        yield* promise(() => second.agent.notify("session/cancel", { sessionId }))
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "cancelled" })
      }),
    ))

  it("survives the end of the node", async () => {
    const path = join(scratch, "restart.db")
    const cwd = join(scratch, "ws")
    mkdirSync(cwd)
    const sessionId = await onNode(
      rules,
      ({ service }) =>
        Effect.gen(function* () {
          const editor = yield* editorOf(service)
          const opened = yield* promise(() => editor.agent.request("session/new", { cwd, mcpServers: [] }))
          yield* promise(() => editor.agent.request("session/prompt", prompt(opened.sessionId, "hello")))
          return opened.sessionId
        }),
      { path },
    )
    await onNode(
      rules,
      ({ service }) =>
        Effect.gen(function* () {
          const editor = yield* editorOf(service)
          const { sessions } = yield* promise(() => editor.agent.request("session/list", {}))
          expect(sessions).toMatchObject([{ sessionId, cwd, title: "hello" }])
          yield* promise(() => editor.agent.request("session/load", { sessionId, cwd, mcpServers: [] }))
          expect(editor.said("user_message_chunk")).toBe("hello")
          expect(editor.faults).toEqual([])
        }),
      { path },
    )
  })
})

describe("session/list", () => {
  it("lists by directory, newest first, in pages", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const other = join(workspace, "other")
        mkdirSync(other)
        for (let made = 0; made < 52; made++) {
          const opened = yield* promise(() =>
            editor.agent.request("session/new", { cwd: made === 0 ? other : workspace, mcpServers: [] }),
          )
          yield* promise(() => editor.agent.request("session/close", { sessionId: opened.sessionId }))
        }
        const there = yield* promise(() => editor.agent.request("session/list", { cwd: `${other}/` }))
        expect(there.sessions).toHaveLength(1)
        const page = yield* promise(() => editor.agent.request("session/list", { cwd: workspace }))
        expect(page.sessions).toHaveLength(50)
        const next = yield* promise(() =>
          editor.agent.request("session/list", { cwd: workspace, cursor: page.nextCursor ?? null }),
        )
        expect(next.sessions).toHaveLength(1)
        expect(next.nextCursor).toBeNull()
        const ids = [...page.sessions, ...next.sessions].map(({ sessionId }) => sessionId)
        expect(new Set(ids).size).toBe(51)
        expect(codeOf(yield* failing(() => editor.agent.request("session/list", { cursor: "%%" })))).toBe(-32602)
        expect(editor.faults).toEqual([])
      }),
    ))
})

describe("a session", () => {
  it("is forked with what was said, and goes its own way", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "hello")))
        const fork = yield* promise(() =>
          editor.agent.request<{ readonly sessionId: string }>("_superpi/session/fork", { sessionId, cwd: workspace }),
        )
        expect(fork.sessionId).not.toBe(sessionId)
        yield* promise(() => editor.agent.request("session/prompt", prompt(fork.sessionId, "look")))
        const told = (id: string) => editor.updates.filter((one) => one.sessionId === id).map(({ update }) => update)
        expect(told(fork.sessionId)).toContainEqual(expect.objectContaining({ toolCallId: "l1", status: "completed" }))
        expect(told(sessionId)).not.toContainEqual(expect.objectContaining({ toolCallId: "l1" }))
        const second = yield* editorOf(service)
        yield* promise(() =>
          second.agent.request("session/load", { sessionId: fork.sessionId, cwd: workspace, mcpServers: [] }),
        )
        expect(second.said("user_message_chunk")).toBe("hellolook")
        expect(editor.faults).toEqual([])
      }),
    ))

  it("that is closed cancels its own prompt and is loaded again", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = editor.agent.request("session/prompt", prompt(sessionId, "wait"))
        yield* promise(() => editor.until(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk"))
        yield* promise(() => editor.agent.request("session/close", { sessionId }))
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "cancelled" })
        const refused = yield* failing(() => editor.agent.request("session/prompt", prompt(sessionId, "hello")))
        expect(codeOf(refused)).toBe(-32002)
        yield* promise(() => editor.agent.request("session/load", { sessionId, cwd: workspace, mcpServers: [] }))
        expect(editor.said("user_message_chunk")).toBe("wait")
      }),
    ))

  it("that is deleted is gone, with its conversation", () =>
    onNode(rules, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "hello")))
        yield* promise(() => editor.agent.request("session/delete", { sessionId }))
        expect((yield* promise(() => editor.agent.request("session/list", {}))).sessions).toEqual([])
        expect(yield* sessions.list({})).toEqual([])
        const load = () => editor.agent.request("session/load", { sessionId, cwd: workspace, mcpServers: [] })
        expect(codeOf(yield* failing(load))).toBe(-32002)
        // Deleting twice is no error for the package's client.
        yield* promise(() => editor.agent.request("session/delete", { sessionId }))
      }),
    ))

  it("takes a mode up to the ceiling, a model, an effort and another harness", () =>
    onNode(rules, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const limited = { ...service, remote: { ownMode: "auto" as const, remoteMaxMode: "accept-edits" as const } }
        const editor = yield* editorOf(limited)
        const { modes, sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        expect(modes?.availableModes.map(({ id }) => id)).toEqual(["plan", "accept-edits"])
        yield* promise(() => editor.agent.request("session/set_mode", { sessionId, modeId: "plan" }))
        yield* promise(() =>
          editor.until((one) => one.sessionUpdate === "current_mode_update" && one.currentModeId === "plan"),
        )
        const raise = () => editor.agent.request("session/set_mode", { sessionId, modeId: "auto" })
        expect(codeOf(yield* failing(raise))).toBe(-32602)
        const set = (configId: string, value: string) =>
          promise(() => editor.agent.request("session/set_config_option", { sessionId, configId, value }))
        const { configOptions } = yield* set("effort", "high")
        expect(configOptions.find(({ id }) => id === "effort")).toMatchObject({ currentValue: "high" })
        yield* set("model", "mock/echo")
        yield* set("harness", "super-pi-planner")
        const { conversation_id: conversationId } = yield* sessions.findNamed({ namespace: "acp", name: sessionId })
        expect(yield* sessions.state({ conversationId })).toMatchObject({
          model: "mock/echo",
          effort: "high",
          harness: "super-pi-planner",
          mode: "plan",
        })
        for (const [id, value] of [
          ["effort", "enormous"],
          ["nothing", "x"],
          ["model", "nobody/serves-this"],
          ["harness", "nothing"],
        ] as const) {
          expect(codeOf(yield* Effect.flip(set(id, value)))).toBe(-32602)
        }
        expect(editor.faults).toEqual([])
      }),
    ))

  it("has the harness that _meta names, and says what is wrong with what it was given", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const open = (more: object) =>
          promise(() => editor.agent.request("session/new", { cwd: workspace, mcpServers: [], ...more }))
        const planner = yield* open({ _meta: { harness: "super-pi-planner" } })
        expect(planner.configOptions?.find(({ id }) => id === "harness")).toMatchObject({
          currentValue: "super-pi-planner",
        })
        expect(planner.modes?.availableModes.map(({ id }) => id)).toEqual(["plan"])
        const messages: Array<string> = []
        for (const more of [
          { _meta: { harness: "nobody" } },
          { _meta: { harness: 7 } },
          { cwd: "relative" },
          { cwd: join(workspace, "missing") },
          { additionalDirectories: ["/tmp"] },
        ]) {
          const error = yield* Effect.flip(open(more))
          expect(codeOf(error)).toBe(-32602)
          messages.push((error as Error).message)
        }
        expect(messages[0]).toMatch(/^_meta\.harness: expected/)
        expect(messages[1]).toBe("_meta.harness: expected a text that is not empty, got number")
        expect(messages[2]).toBe('cwd: expected an absolute path, got "relative"')
        expect(messages[3]).toMatch(/^cwd: expected/)
        expect(messages[4]).toMatch(/^additionalDirectories: expected none/)
        expect(editor.faults).toEqual([])
      }),
    ))

  it("needs a token where the node has tokens, and belongs to whoever's token that is", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const login = (token: string) => (token === "a" ? "alice" : token === "b" ? "bob" : null)
        const alice = yield* editorOf(service, {}, { login })
        expect(alice.info.authMethods).toMatchObject([{ id: "token" }])
        const open = () => alice.agent.request("session/new", { cwd: workspace, mcpServers: [] })
        expect(codeOf(yield* failing(open))).toBe(-32000)
        const enter = (editor: typeof alice, token: string) =>
          promise(() => editor.agent.request("authenticate", { methodId: "token", _meta: { token } }))
        expect(codeOf(yield* Effect.flip(enter(alice, "wrong")))).toBe(-32000)
        yield* enter(alice, "a")
        const { sessionId } = yield* promise(open)
        const bob = yield* editorOf(service, {}, { login })
        yield* enter(bob, "b")
        expect((yield* promise(() => bob.agent.request("session/list", {}))).sessions).toEqual([])
        const load = () => bob.agent.request("session/load", { sessionId, cwd: workspace, mcpServers: [] })
        expect(codeOf(yield* failing(load))).toBe(-32002)
        yield* promise(() => alice.agent.request("logout", {}))
        expect(codeOf(yield* failing(open))).toBe(-32000)
        expect(alice.faults).toEqual([])
      }),
    ))
})
