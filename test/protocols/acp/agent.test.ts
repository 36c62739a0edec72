/**
 * The agent as an editor meets it: the protocol's own client package, a real node, a scripted model.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { PromptRequest, RequestPermissionRequest } from "@agentclientprotocol/sdk"
import { Deferred, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { editorOf } from "./editor.ts"
import { onNode, promise } from "./node.ts"

const prompt = (sessionId: string, text: string): PromptRequest => ({ sessionId, prompt: [{ type: "text", text }] })

const hello = [
  { match: "^hello", steps: [{ thinking: "hm, a greeting", text: "good morning", usage: [100, 20] as const }] },
]

describe("an editor", () => {
  it("learns what the agent can do", () =>
    onNode(hello, ({ service }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        expect(editor.info).toMatchObject({
          protocolVersion: 1,
          agentInfo: { name: "super-pi", version: "1.2.3" },
          agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true } },
          authMethods: [],
        })
        expect(editor.info._meta).toHaveProperty("superPi.defaultHarness", "super-pi-code")
        const planner = { id: "super-pi-planner", modes: ["plan"] }
        expect(editor.info._meta).toHaveProperty(
          "superPi.harnesses",
          expect.arrayContaining([expect.objectContaining(planner)]),
        )
        expect(editor.faults).toEqual([])
      }),
    ))

  it("opens a session, prompts, and gets thought and answer before the end of the turn", () =>
    onNode(hello, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const opened = yield* promise(() => editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }))
        expect(opened.sessionId).toMatch(/^acp_/)
        expect(opened.modes).toMatchObject({ currentModeId: "accept-edits" })
        expect(opened.configOptions?.map(({ id }) => id)).toEqual(["model", "mode", "effort", "harness"])
        const ended = yield* promise(() => editor.agent.request("session/prompt", prompt(opened.sessionId, "hello")))
        expect(ended.stopReason).toBe("end_turn")
        expect(editor.said("agent_thought_chunk")).toBe("hm, a greeting")
        expect(editor.said("agent_message_chunk")).toBe("good morning")
        // Its own prompt is not told to it.
        expect(editor.said("user_message_chunk")).toBe("")
        expect(editor.updates.map(({ update }) => update)).toContainEqual({
          sessionUpdate: "usage_update",
          used: 120,
          size: 10_000,
        })
        expect(editor.updates.map(({ update }) => update)).toContainEqual({
          sessionUpdate: "session_info_update",
          title: "hello",
        })
        expect(editor.faults).toEqual([])
      }),
    ))
})

const edits = [
  {
    match: "^change",
    steps: [
      {
        text: "I read it.",
        tools: [{ id: "r1", name: "read", args: { path: "a.txt" } }],
      },
      {
        tools: [{ id: "e1", name: "edit", args: { path: "a.txt", edits: [{ oldText: "two", newText: "zwei" }] } }],
      },
      { text: "changed" },
    ],
  },
  {
    match: "^run",
    steps: [{ tools: [{ id: "b1", name: "bash", args: { command: "echo hi; touch made" } }] }, { text: "ran" }],
  },
  { match: "^wait", steps: [{ text: "let me think", hang: true }, { text: "never" }] },
  { match: "^long", steps: [{ text: "cut", stopReason: "length" as const }] },
  { match: "^bad", steps: [{ status: 400, message: "no such thing" }] },
]

describe("tool calls", () => {
  it("show kind, place, change and result", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        writeFileSync(join(workspace, "a.txt"), "one\ntwo\nthree\n")
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "change it")))
        expect(ended.stopReason).toBe("end_turn")
        expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("one\nzwei\nthree\n")
        const updates = editor.updates.map(({ update }) => update)
        const of = (id: string) => updates.filter((one) => "toolCallId" in one && one.toolCallId === id)
        expect(of("r1")[0]).toMatchObject({ sessionUpdate: "tool_call", kind: "read", status: "pending" })
        expect(of("r1")[1]).toMatchObject({
          sessionUpdate: "tool_call_update",
          status: "in_progress",
          title: "Read a.txt",
          locations: [{ path: join(workspace, "a.txt") }],
        })
        expect(of("r1").at(-1)).toMatchObject({ status: "completed", rawOutput: { totalLines: 3 } })
        expect(of("e1").at(-1)).toMatchObject({
          status: "completed",
          locations: [{ path: join(workspace, "a.txt"), line: 2 }],
          content: [{ type: "diff", path: join(workspace, "a.txt"), oldText: "two", newText: "zwei" }, {}],
        })
        expect(editor.faults).toEqual([])
      }),
    ))

  it("that need a permission are asked for with the four options, and run when it is given", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        const asked: Array<RequestPermissionRequest> = []
        const editor = yield* editorOf(service, {
          permission: async (request) => {
            asked.push(request)
            return { outcome: { outcome: "selected", optionId: "allow_once" } }
          },
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "run it")))
        expect(ended.stopReason).toBe("end_turn")
        expect(asked).toHaveLength(1)
        expect(asked[0]).toMatchObject({ sessionId, toolCall: { toolCallId: "b1", kind: "execute" } })
        expect(asked[0]?.options.map(({ kind }) => kind)).toEqual([
          "allow_once",
          "allow_always",
          "reject_once",
          "reject_always",
        ])
        const last = editor.updates.map(({ update }) => update).findLast((one) => "toolCallId" in one)
        expect(last).toMatchObject({ toolCallId: "b1", status: "completed" })
        expect(editor.faults).toEqual([])
      }),
    ))

  it("that are rejected do not run", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service, {
          permission: async () => ({ outcome: { outcome: "selected", optionId: "reject_once" } }),
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "run it")))
        const last = editor.updates.map(({ update }) => update).findLast((one) => "toolCallId" in one)
        expect(last).toMatchObject({ toolCallId: "b1", status: "failed" })
        expect(editor.faults).toEqual([])
      }),
    ))
})

describe("a prompt", () => {
  it("ends as cancelled when the editor cancels it, after what was streamed", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = editor.agent.request("session/prompt", prompt(sessionId, "wait"))
        yield* promise(() => editor.until(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk"))
        yield* promise(() => editor.agent.notify("session/cancel", { sessionId }))
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "cancelled" })
      }),
    ))

  it("ends as cancelled when somebody else cancels the conversation", () =>
    onNode(edits, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = editor.agent.request("session/prompt", prompt(sessionId, "wait"))
        yield* promise(() => editor.until(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk"))
        const { conversation_id: conversationId } = yield* sessions.findNamed({ namespace: "acp", name: sessionId })
        yield* sessions.cancel({ conversationId })
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "cancelled" })
      }),
    ))

  it("ends as cancelled when its request is cancelled", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const controller = new AbortController()
        const ended = editor.agent.request("session/prompt", prompt(sessionId, "wait"), {
          cancellationSignal: controller.signal,
        })
        yield* promise(() => editor.until(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk"))
        controller.abort()
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "cancelled" })
      }),
    ))

  it("withdraws its questions at the editor before its turn is cancelled", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        const asked = yield* Deferred.make<void>()
        const withdrawn = yield* Deferred.make<void>()
        const editor = yield* editorOf(service, {
          permission: (_, signal) =>
            new Promise((done) => {
              Effect.runSync(Deferred.succeed(asked, undefined))
              signal.addEventListener("abort", () => {
                Effect.runSync(Deferred.succeed(withdrawn, undefined))
                done({ outcome: { outcome: "cancelled" } })
              })
            }),
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = editor.agent.request("session/prompt", prompt(sessionId, "run it"))
        yield* Deferred.await(asked)
        yield* promise(() => editor.agent.notify("session/cancel", { sessionId }))
        yield* Deferred.await(withdrawn)
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "cancelled" })
        expect(editor.faults).toEqual([])
      }),
    ))

  it("says when the answer was cut off, and when there is none", () =>
    onNode(edits, ({ service, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const cut = yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "long")))
        expect(cut.stopReason).toBe("max_tokens")
        const bad = yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "bad")))
        expect(bad.stopReason).toBe("refusal")
        expect(editor.said("agent_message_chunk")).toContain("no such thing")
        expect(editor.faults).toEqual([])
      }),
    ))

  it("from anywhere else is shown with its answer", () =>
    onNode(hello, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const { conversation_id: conversationId } = yield* sessions.findNamed({ namespace: "acp", name: sessionId })
        yield* sessions.submit({
          conversationId,
          content: [{ type: "text", text: "hello from a terminal" }],
          requestId: null,
        })
        yield* promise(() => editor.until(({ sessionUpdate }) => sessionUpdate === "usage_update"))
        expect(editor.said("user_message_chunk")).toBe("hello from a terminal")
        expect(editor.said("agent_message_chunk")).toBe("good morning")
      }),
    ))
})
