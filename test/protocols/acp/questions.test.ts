/**
 * Questions that several clients see: forms, choices, and exactly one answer that counts.
 */
import { PassThrough } from "node:stream"
import type { CreateElicitationRequest, PromptRequest, RequestPermissionRequest } from "@agentclientprotocol/sdk"
import { Deferred, Effect, Option, Stream } from "effect"
import { describe, expect, it } from "vitest"
import type { SessionsService } from "../../../src/actors/sessions.ts"
import type { Event } from "../../../src/domain/event.ts"
import type { ConversationId, TaskId } from "../../../src/domain/ids.ts"
import { serveStdio } from "../../../src/protocols/jsonrpc/serve.ts"
import { terminalRenderer as terminal } from "../../../src/protocols/terminal/renderer.ts"
import { lineClient } from "../line-client.ts"
import { editorOf } from "./editor.ts"
import { onNode, promise } from "./node.ts"

const choice = {
  questions: [
    { question: "Which colour?", options: [{ label: "red" }, { label: "blue" }] },
    { question: "Which size?", options: [{ label: "small" }, { label: "large" }] },
  ],
}
const rules = [
  {
    match: "^run",
    steps: [
      { text: "I run it", tools: [{ id: "b1", name: "bash", args: { command: "touch made" } }] },
      { text: "ran" },
    ],
  },
  { match: "^ask", steps: [{ tools: [{ id: "q1", name: "ask_question", args: choice }] }, { text: "thanks" }] },
  {
    match: "^why",
    steps: [
      { tools: [{ id: "q2", name: "ask_question", args: { questions: [{ question: "Why?" }] } }] },
      { text: "thanks" },
    ],
  },
]
const prompt = (sessionId: string, text: string): PromptRequest => ({ sessionId, prompt: [{ type: "text", text }] })

describe("a choice", () => {
  it("is a form where the editor has forms", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const forms: Array<CreateElicitationRequest> = []
        const editor = yield* editorOf(service, {
          capabilities: { elicitation: { form: {} } },
          form: async (request) => {
            forms.push(request)
            const { properties = {} } = (request as { readonly requestedSchema: { readonly properties?: object } })
              .requestedSchema
            const [colour = "", size = ""] = Object.keys(properties).filter((key) => !key.endsWith(":text"))
            const first = (key: string) => {
              const field = (
                properties as Record<string, { readonly oneOf?: ReadonlyArray<{ readonly const: string }> }>
              )[key]
              return field?.oneOf?.[1]?.const ?? ""
            }
            return { action: "accept", content: { [colour]: first(colour), [size]: first(size) } }
          },
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "ask me")))
        expect(ended.stopReason).toBe("end_turn")
        expect(forms).toMatchObject([{ mode: "form", sessionId, toolCallId: "q1" }])
        const result = editor.updates.map(({ update }) => update).findLast((one) => "toolCallId" in one)
        expect(result).toMatchObject({ toolCallId: "q1", status: "completed" })
        expect(JSON.stringify(result)).toContain("blue")
        expect(JSON.stringify(result)).toContain("large")
        expect(editor.faults).toEqual([])
      }),
    ))

  it("is asked option by option where it has none", () =>
    onNode(rules, ({ service, workspace }) =>
      Effect.gen(function* () {
        const asked: Array<RequestPermissionRequest> = []
        const editor = yield* editorOf(service, {
          permission: async (request) => {
            asked.push(request)
            return { outcome: { outcome: "selected", optionId: request.options[0]?.optionId ?? "" } }
          },
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "ask me")))
        expect(asked.map(({ toolCall }) => toolCall.title)).toEqual(["Which colour?", "Which size?"])
        const result = editor.updates.map(({ update }) => update).findLast((one) => "toolCallId" in one)
        expect(JSON.stringify(result)).toContain("red")
        expect(JSON.stringify(result)).toContain("small")
        expect(editor.faults).toEqual([])
      }),
    ))

  it("that wants a text is left to others by an editor without forms, and its end is seen there", () =>
    onNode(rules, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service)
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const ended = editor.agent.request("session/prompt", prompt(sessionId, "why"))
        const { conversation_id: conversationId } = yield* sessions.findNamed({ namespace: "acp", name: sessionId })
        const question = yield* sessions.watch({ conversationId, after: null }).pipe(
          Stream.filterMap((event): Option.Option<{ readonly question_id: TaskId }> => {
            if (event.type === "ui_request") return Option.some(event)
            const [open] = event.type === "snapshot" ? event.session.questions : []
            return Option.fromNullable(open)
          }),
          Stream.runHead,
        )
        const { question_id: questionId, questions = [] } = Option.getOrThrow(question) as {
          readonly question_id: TaskId
          readonly questions?: ReadonlyArray<{ readonly id: string }>
        }
        yield* sessions.answer({
          questionId,
          answer: { [questions[0]?.id ?? ""]: { selected: [], text: "because" } },
          requestId: null,
          client: "terminal",
        })
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "end_turn" })
        expect(JSON.stringify(editor.updates)).toContain("because")
      }),
    ))
})

describe("one conversation on three protocols", () => {
  const watching = (sessions: SessionsService, conversationId: ConversationId) =>
    Effect.gen(function* () {
      const events: Array<Event> = []
      const joined = yield* Deferred.make<void>()
      yield* sessions.watch({ conversationId, after: null, interactive: true }).pipe(
        Stream.runForEach((event) => {
          events.push(event)
          return Deferred.succeed(joined, undefined)
        }),
        Effect.forkScoped,
      )
      yield* Deferred.await(joined)
      return events
    })

  it("shows the same sequence to each, and exactly one answer counts, whoever gives it", () =>
    onNode(rules, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const asked = yield* Deferred.make<RequestPermissionRequest>()
        const withdrawn = yield* Deferred.make<void>()
        const editor = yield* editorOf(service, {
          permission: (request, signal) =>
            new Promise((done) => {
              signal.addEventListener("abort", () => {
                Effect.runSync(Deferred.succeed(withdrawn, undefined))
                // An editor that answers too late: it is told nothing and nothing changes.
                done({ outcome: { outcome: "selected", optionId: "reject_once" } })
              })
              Effect.runSync(Deferred.succeed(asked, request))
            }),
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const { conversation_id: conversationId } = yield* sessions.findNamed({ namespace: "acp", name: sessionId })

        // A JSON-RPC client.
        const [input, output] = [new PassThrough(), new PassThrough()]
        yield* Effect.forkScoped(serveStdio(service, { input, output }))
        const rpc = lineClient(output, input)
        const { result } = yield* promise(() => rpc.request("session.watch", { conversationId, interactive: true }))
        const seen: Array<{ readonly type: string; readonly seq_no: number; readonly text?: string }> = []
        const follow = async (): Promise<void> => {
          for (let line = await rpc.next(); line !== null; line = await rpc.next()) {
            if (line.method !== "session.event" || line.params === undefined) continue
            seen.push(...line.params.events)
            const { delivery } = line.params
            await rpc.request("session.ack", { watchId: result?.watchId, delivery })
            if (line.params.events.some(({ type }) => type === "turn_completed")) return
          }
        }
        const followed = follow()
        // A terminal, by its renderer.
        const events = yield* watching(sessions, conversationId)

        const ended = editor.agent.request("session/prompt", prompt(sessionId, "run it"))
        yield* Deferred.await(asked)
        const [open] = yield* sessions.questions({ conversationId })
        const answer = (by: string, one: "allow_once" | "reject_once") =>
          promise(() => rpc.request("ui.respond", { questionId: open?.question.question_id, answer: one, client: by }))
        const first = yield* answer("rpc", "allow_once")
        expect(first.error).toBeUndefined()
        yield* Deferred.await(withdrawn)
        const second = yield* answer("somebody else", "reject_once")
        expect(second.error).toMatchObject({ data: { rule: "question_settled" } })
        expect(yield* promise(() => ended)).toMatchObject({ stopReason: "end_turn" })
        yield* promise(() => followed)

        const done = editor.updates.map(({ update }) => update).findLast((one) => "toolCallId" in one)
        expect(done).toMatchObject({ toolCallId: "b1", status: "completed" })
        const upTo = events.slice(0, events.findIndex(({ type }) => type === "turn_completed") + 1)
        const numbers = upTo.filter(({ type }) => type !== "snapshot").map(({ seq_no }) => seq_no)
        const theirs = seen.filter(({ type }) => type !== "snapshot").map(({ seq_no }) => seq_no)
        expect(theirs.slice(0, numbers.length)).toEqual(numbers)
        const text = (all: ReadonlyArray<{ readonly type: string; readonly text?: string }>) =>
          all.map((one) => (one.type === "text_delta" ? (one.text ?? "") : "")).join("")
        expect(editor.said("agent_message_chunk")).toBe(text(seen))
        let view = terminal.init({})
        let written = ""
        for (const event of upTo) {
          const [next, blocks] = terminal.render(view, event)
          view = next
          for (const block of blocks) if (block.kind === "text") written += block.text
        }
        expect(written.trim()).toBe(text(seen))
        expect(editor.faults).toEqual([])
      }),
    ))

  it("takes the editor's answer when that is first", () =>
    onNode(rules, ({ service, sessions, workspace }) =>
      Effect.gen(function* () {
        const editor = yield* editorOf(service, {
          permission: async () => ({ outcome: { outcome: "selected", optionId: "allow_once" } }),
        })
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        const { conversation_id: conversationId } = yield* sessions.findNamed({ namespace: "acp", name: sessionId })
        const events = yield* watching(sessions, conversationId)
        yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, "run it")))
        expect(events.find(({ type }) => type === "question_settled")).toMatchObject({
          result: "allowed",
          by: expect.stringContaining("test-editor"),
        })
      }),
    ))
})
