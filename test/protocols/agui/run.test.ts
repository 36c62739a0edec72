/**
 * Runs of a front end: the official client against a real node.
 */
import { buildResumeArray } from "@ag-ui/client"
import { Deferred, Effect, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { text } from "../../../src/domain/message.ts"
import type { AguiEvent } from "../../../src/protocols/agui/protocol.ts"
import { type AguiNode, agentOf, openStream, post, says, startNode } from "./node.ts"
import { accept } from "./official.ts"

const rules = [
  { match: "^hello", steps: [{ text: "Hello to you.", thinking: "be kind" }] },
  { match: "again", steps: [{ text: "Once more." }] },
  {
    match: "^plan",
    steps: [
      { text: "Planning.", tools: [{ name: "todo", args: { action: "add", items: [{ text: "first" }] } }] },
      { text: "Planned." },
    ],
  },
  { match: "^unknown tool", steps: [{ text: "I try.", tools: [{ name: "nothing", args: {} }] }, { text: "No luck." }] },
  { match: "^act", steps: [{ text: "Acting.", tools: [{ name: "act", args: {} }] }, { text: "Done." }] },
  { match: "^wait", steps: [{ text: "Waiting.", tools: [{ name: "wait", args: {} }] }, { text: "Waited." }] },
  { match: "^fail", steps: [{ status: 400, message: "no such thing" }] },
  { match: "^retry", steps: [{ text: "half an ans", cut: true, times: 1 }, { text: "A whole answer." }] },
  { match: "colour", steps: [{ text: "I see a colour." }] },
]

let node: AguiNode
beforeAll(async () => {
  node = await startNode({ rules: rules as never })
})
afterAll(() => node.stop())

const of = <T extends AguiEvent["type"]>(events: ReadonlyArray<AguiEvent>, type: T) =>
  events.filter((event): event is Extract<AguiEvent, { type: T }> => event.type === type)

const typesOf = (events: ReadonlyArray<AguiEvent>): ReadonlyArray<string> => events.map((event) => event.type)

describe("a run of the official client", () => {
  it("streams thinking and text, and ends in success with the tokens", async () => {
    const agent = agentOf(node.url, "greeting")
    says(agent, "hello")
    const { newMessages, result } = await agent.runAgent({ runId: "r1" })
    expect(newMessages.map(({ content, role }) => [role, content])).toEqual([
      ["reasoning", "be kind"],
      ["assistant", "Hello to you."],
    ])
    expect(result).toMatchObject({ stopReason: "stop" })
    await accept(agent.seen, { threadId: "greeting", runId: "r1" })
    const [end] = of(agent.seen, "RUN_FINISHED")
    expect(end).toMatchObject({ outcome: { type: "success" }, usage: [{ provider: "script", model: "test" }] })
    expect(agent.state).toMatchObject({ status: "idle", mode: "auto", harness: "test", questions: [], title: "hello" })
  })

  it("goes on with the conversation of its thread", async () => {
    const agent = agentOf(node.url, "greeting")
    says(agent, "and again")
    await agent.runAgent({ runId: "r2" })
    // A client that has nothing of the thread gets it all.
    expect(agent.messages.map(({ content }) => content)).toEqual(
      ["be kind", "hello", "Hello to you.", "and again", "Once more."].sort(
        (a, b) => agent.messages.findIndex((m) => m.content === a) - agent.messages.findIndex((m) => m.content === b),
      ),
    )
    expect(new Set(agent.messages.map(({ id }) => id)).size).toBe(5)
  })

  it("submits a message once, however often it is sent", async () => {
    const agent = agentOf(node.url, "once")
    const id = says(agent, "hello")
    await agent.runAgent({ runId: "r1" })
    const second = agentOf(node.url, "once")
    says(second, "hello", id)
    await second.runAgent({ runId: "r1" })
    await accept(second.seen, { threadId: "once", runId: "r1" })
    // The answer that it missed comes as messages.
    expect(second.messages.filter(({ role }) => role === "user")).toHaveLength(1)
    expect(second.messages.some(({ content }) => content === "Hello to you.")).toBe(true)
    const { conversation_id } = await Effect.runPromise(node.sessions.findNamed({ namespace: "agui", name: "once" }))
    const transcript = await Effect.runPromise(node.sessions.transcript({ conversationId: conversation_id }))
    expect(transcript.filter(({ kind }) => kind === "pi.user")).toHaveLength(1)
  })

  it("sends the history back with every run, and nothing of it is submitted again", async () => {
    const agent = agentOf(node.url, "history")
    says(agent, "hello")
    await agent.runAgent()
    says(agent, "and again")
    await agent.runAgent()
    says(agent, "hello once more")
    await agent.runAgent()
    expect(agent.messages.filter(({ role }) => role === "user")).toHaveLength(3)
    expect(agent.messages.filter(({ role }) => role === "assistant")).toHaveLength(3)
    const { conversation_id } = await Effect.runPromise(node.sessions.findNamed({ namespace: "agui", name: "history" }))
    const transcript = await Effect.runPromise(node.sessions.transcript({ conversationId: conversation_id }))
    expect(transcript.filter(({ kind }) => kind === "pi.user")).toHaveLength(3)
  })

  it("shows a call with its arguments, its result, and the plan as a change of the state", async () => {
    const agent = agentOf(node.url, "planning")
    says(agent, "plan it")
    await agent.runAgent()
    const [start] = of(agent.seen, "TOOL_CALL_START")
    const id = start?.toolCallId
    const call = agent.seen.filter((event) => "toolCallId" in event && event.toolCallId === id)
    expect(typesOf(call)).toEqual(["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"])
    expect(of(agent.seen, "TOOL_CALL_ARGS").map((one) => JSON.parse(one.delta))).toEqual([
      { action: "add", items: [{ text: "first" }] },
    ])
    expect(agent.state).toMatchObject({ plan: [{ text: "first", status: "pending" }] })
    await accept(agent.seen, { threadId: "planning" })
    // The client did not take it for a tool of its own.
    expect(of(agent.seen, "RUN_FINISHED")[0]?.outcome).toEqual({ type: "success" })
  })

  it("tells of a call that was refused before it began", async () => {
    const agent = agentOf(node.url, "refused")
    says(agent, "unknown tool")
    await agent.runAgent()
    await accept(agent.seen, { threadId: "refused" })
    const tool = agent.messages.find(({ role }) => role === "tool")
    expect(String(tool?.content)).toContain('There is no tool "nothing"')
  })

  it("ends with the error of a run that failed, and a run of another id tries the message again", async () => {
    const agent = agentOf(node.url, "failing")
    const id = says(agent, "fail")
    await agent.runAgent({ runId: "r1" })
    await accept(agent.seen, { threadId: "failing", runId: "r1" })
    expect(agent.seen.at(-1)).toMatchObject({ type: "RUN_ERROR" })
    const again = agentOf(node.url, "failing")
    says(again, "fail", id)
    await again.runAgent({ runId: "r2" })
    await accept(again.seen, { threadId: "failing", runId: "r2" })
    expect(again.seen.at(-1)).toMatchObject({ type: "RUN_ERROR" })
    const { conversation_id } = await Effect.runPromise(node.sessions.findNamed({ namespace: "agui", name: "failing" }))
    const transcript = await Effect.runPromise(node.sessions.transcript({ conversationId: conversation_id }))
    expect(transcript.filter(({ kind }) => kind === "pi.user")).toHaveLength(2)
  })

  it("takes an answer back that starts over", async () => {
    const agent = agentOf(node.url, "cut")
    says(agent, "retry")
    await agent.runAgent()
    await accept(agent.seen, { threadId: "cut" })
    expect(agent.messages.map(({ content, role }) => [role, content])).toEqual([
      ["user", "retry"],
      ["assistant", "A whole answer."],
    ])
    expect(typesOf(agent.seen)).toContain("MESSAGES_SNAPSHOT")
  })

  it("tells the context of the front end with the message, and shows the message without it", async () => {
    const agent = agentOf(node.url, "context")
    says(agent, "which one?")
    await agent.runAgent({ context: [{ description: "favourite colour", value: "red" }] })
    expect(agent.messages.at(-1)?.content).toBe("I see a colour.")
    const stream = await openStream(`${node.url}/agui/v1/sessions/context/events?follow=false`)
    await stream.ended
    const [messages] = of(stream.events, "MESSAGES_SNAPSHOT")
    expect(messages?.messages[0]).toMatchObject({ role: "user", content: "which one?" })
  })
})

describe("a question", () => {
  it("ends a run with an interrupt, and the next one answers it", async () => {
    const agent = agentOf(node.url, "ask-interrupt")
    says(agent, "act")
    await agent.runAgent({ runId: "r1" })
    await accept(agent.seen, { threadId: "ask-interrupt", runId: "r1" })
    const interrupts = agent.pendingInterrupts
    expect(interrupts).toMatchObject([{ reason: "tool_call", message: "Act?\nIt has effects." }])
    const acted = node.acts()
    const answers = Object.fromEntries(
      interrupts.map(({ id }) => [id, { status: "resolved" as const, payload: { answer: "allow_once" } }]),
    )
    agent.seen.length = 0
    await agent.runAgent({ runId: "r2", resume: buildResumeArray(interrupts, answers) })
    await accept(agent.seen, { threadId: "ask-interrupt", runId: "r2" })
    expect(node.acts()).toBe(acted + 1)
    expect(agent.messages.map(({ content, role }) => [role, content ?? ""])).toEqual([
      ["user", "act"],
      ["assistant", "Acting."],
      ["tool", `acted ${acted + 1}`],
      ["assistant", "Done."],
    ])
    expect(agent.pendingInterrupts).toEqual([])
  })

  it("that is cancelled is a rejection", async () => {
    const agent = agentOf(node.url, "ask-cancelled")
    says(agent, "act")
    await agent.runAgent()
    const acted = node.acts()
    const answers = Object.fromEntries(agent.pendingInterrupts.map(({ id }) => [id, { status: "cancelled" as const }]))
    await agent.runAgent({ resume: buildResumeArray(agent.pendingInterrupts, answers) })
    expect(node.acts()).toBe(acted)
    expect(String(agent.messages.find(({ role }) => role === "tool")?.content)).toContain("rejected this call")
  })

  it("is a custom event of a run that stays, for a client without interrupts, which answers beside it", async () => {
    const agent = agentOf(node.url, "ask-beside")
    says(agent, "act")
    const acted = node.acts()
    const answered: Array<number> = []
    agent.subscribe({
      onCustomEvent: ({ event }) => {
        if (event.name !== "permission_request") return
        const body = { type: "permission", questionId: event.value.question_id, answer: "allow_once" }
        void post(`${node.url}/agui/v1/sessions/ask-beside/input`, body).then(({ status }) => answered.push(status))
      },
    })
    await agent.runAgent({ forwardedProps: { interrupts: false } })
    await accept(agent.seen, { threadId: "ask-beside" })
    expect(answered).toEqual([200])
    expect(node.acts()).toBe(acted + 1)
    expect(of(agent.seen, "CUSTOM").map(({ name }) => name)).toEqual(["permission_request", "question_settled"])
  })
})

describe("a client that leaves", () => {
  it("cancels the turn that it submitted, and leaves what others queued", async () => {
    const body = {
      threadId: "leaving",
      runId: "r1",
      messages: [{ id: "w1", role: "user", content: "wait" }],
      tools: [],
      context: [],
    }
    const stream = await openStream(`${node.url}/agui/v1/run`, { method: "POST", body: JSON.stringify(body) })
    await Effect.runPromise(Deferred.await(node.waiting))
    const { conversation_id } = await Effect.runPromise(node.sessions.findNamed({ namespace: "agui", name: "leaving" }))
    const cancelled = Effect.runPromise(
      node.sessions.watch({ conversationId: conversation_id, after: null }).pipe(
        Stream.filter((event) => event.type === "turn_cancelled"),
        Stream.runHead,
      ),
    )
    const others = await Effect.runPromise(
      node.sessions.submit({ conversationId: conversation_id, content: [text("hello")], requestId: null }),
    )
    stream.leave()
    await cancelled
    const { submission_id } = await Effect.runPromise(
      node.sessions.submission({ conversationId: conversation_id, submissionId: null, requestId: "agui:w1" }),
    )
    const settled = await Effect.runPromise(
      node.sessions.awaitSubmission({ conversationId: conversation_id, submissionId: submission_id }),
    )
    expect(settled).toMatchObject({ status: "unanswered", reason: "aborted" })
    const kept = await Effect.runPromise(
      node.sessions.awaitSubmission({ conversationId: conversation_id, submissionId: others.submission_id }),
    )
    expect(kept).toMatchObject({ status: "done" })
  })
})
