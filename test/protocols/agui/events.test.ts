/**
 * Following a conversation: late joiners, stored threads, resumption, owners, and other protocols beside it.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { HttpAgent } from "@ag-ui/client"
import type { RunAgentInput } from "@ag-ui/core"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Event } from "../../../src/domain/event.ts"
import { text } from "../../../src/domain/message.ts"
import type { AguiEvent } from "../../../src/protocols/agui/protocol.ts"
import { serveTcp } from "../../../src/protocols/jsonrpc/serve.ts"
import { connect } from "../line-client.ts"
import { protocolService } from "../service.ts"
import { type AguiNode, agentOf, openStream, post, says, startNode } from "./node.ts"
import { accept } from "./official.ts"

const rules = [
  { match: "^hello", steps: [{ text: "Hello to you.", thinking: "be kind" }] },
  {
    match: "^plan",
    steps: [
      { text: "Planning.", tools: [{ name: "todo", args: { action: "add", items: [{ text: "first" }] } }] },
      { text: "Planned." },
    ],
  },
  { match: "^act", steps: [{ text: "Acting.", tools: [{ name: "act", args: {} }] }, { text: "Done." }] },
  { match: "^wait", steps: [{ text: "Waiting.", tools: [{ name: "wait", args: {} }] }, { text: "Waited." }] },
]

/** The official client on the events of a session, until the conversation rests. */
class Replay extends HttpAgent {
  protected override requestInit(_input: RunAgentInput): RequestInit {
    return { method: "GET", headers: { accept: "text/event-stream" }, signal: this.abortController.signal }
  }
}

const replay = async (url: string, session: string) => {
  const agent = new Replay({ url: `${url}/agui/v1/sessions/${session}/events?follow=false`, threadId: session })
  const seen: Array<AguiEvent> = []
  agent.subscribe({ onEvent: ({ event }) => void seen.push(event as AguiEvent) })
  await agent.runAgent()
  return { agent, seen }
}

const isEnd = (event: AguiEvent): boolean => event.type === "RUN_FINISHED"

let node: AguiNode
beforeAll(async () => {
  node = await startNode({ rules: rules as never })
})
afterAll(() => node.stop())

describe("the events of a conversation", () => {
  it("replay a stored thread through the official client, also in the node's next life", async () => {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-agui-life-")))
    try {
      const first = await startNode({ rules: rules as never, directory })
      const agent = agentOf(first.url, "stored")
      for (const prompt of ["hello", "plan it", "act"]) {
        says(agent, prompt)
        await agent.runAgent()
      }
      const answers = agent.pendingInterrupts.map(({ id }) => ({
        interruptId: id,
        status: "resolved" as const,
        payload: "allow_once",
      }))
      await agent.runAgent({ resume: answers })
      const told = agent.messages
      await first.stop()
      const second = await startNode({ rules: rules as never, directory })
      const { agent: again, seen } = await replay(second.url, "stored")
      await second.stop()
      await accept(seen, { threadId: "stored" })
      expect(seen.map(({ type }) => type)).toEqual([
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "MESSAGES_SNAPSHOT",
        "RUN_FINISHED",
      ])
      expect(again.messages.map(({ content, role }) => [role, content])).toEqual(
        told.map(({ content, role }) => [role, content]),
      )
      expect(again.messages.filter(({ role }) => role !== "user").map(({ id }) => id)).toEqual(
        told.filter(({ role }) => role !== "user").map(({ id }) => id),
      )
      expect(again.state).toMatchObject({ status: "idle", plan: [{ text: "first" }] })
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  it("let one join in the middle of a run, and go on to its end", async () => {
    const agent = agentOf(node.url, "middle")
    says(agent, "wait")
    const running = agent.runAgent()
    await Effect.runPromise(Deferred.await(node.waiting))
    const stream = await openStream(`${node.url}/agui/v1/sessions/middle/events`)
    await stream.first((event) => event.type === "MESSAGES_SNAPSHOT")
    await Effect.runPromise(Deferred.succeed(node.release, undefined))
    await stream.first(isEnd)
    await running
    await accept(stream.events, { threadId: "middle" })
    expect(stream.events.filter(({ type }) => type === "RUN_STARTED")).toHaveLength(1)
    const result = stream.events.find((event) => event.type === "TOOL_CALL_RESULT")
    expect(result).toMatchObject({ content: "waited" })
    // The next run is one of its own in the same stream.
    says(agent, "hello")
    await agent.runAgent()
    await stream.first(isEnd, stream.events.findIndex(isEnd) + 1)
    await accept(stream.events, { threadId: "middle" })
    const users = stream.events.filter((event) => event.type === "TEXT_MESSAGE_START" && event.role === "user")
    expect(users).toHaveLength(1)
    stream.leave()
    await stream.ended
  })

  it("go on behind the last event that a client saw, with everything since", async () => {
    const agent = agentOf(node.url, "resumed")
    says(agent, "hello")
    await agent.runAgent()
    const before = await openStream(`${node.url}/agui/v1/sessions/resumed/events`)
    await before.first(isEnd)
    before.leave()
    await before.ended
    const cursor = before.ids.at(-1)
    expect(cursor).toMatch(/^\d+-\d+$/)
    says(agent, "plan it")
    await agent.runAgent()
    const after = await openStream(`${node.url}/agui/v1/sessions/resumed/events`, {
      headers: { "last-event-id": `${cursor}` },
    })
    // The messages as of then, then the whole run that was missed.
    const rejoined = after.events.findIndex(isEnd)
    await after.first((event) => event.type === "RUN_FINISHED" && event.result !== undefined, rejoined + 1)
    after.leave()
    await after.ended
    await accept(after.events, { threadId: "resumed" })
    const [messages] = after.events.filter((event) => event.type === "MESSAGES_SNAPSHOT")
    expect(messages?.messages.map(({ role }) => role)).toEqual(["user", "reasoning", "assistant"])
    const types = after.events.map(({ type }) => type)
    expect(types.filter((type) => type === "TOOL_CALL_RESULT")).toHaveLength(1)
    const said = after.events.flatMap((event) => (event.type === "TEXT_MESSAGE_CONTENT" ? [event.delta] : []))
    expect(said.join("|")).toBe("plan it|Planning.|Planned.")
  })

  it("change nothing: a follower that leaves cancels nothing", async () => {
    const { conversation_id } = await Effect.runPromise(
      node.sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
    )
    const stream = await openStream(`${node.url}/agui/v1/sessions/${conversation_id}/events`)
    await stream.first(isEnd)
    const { submission_id } = await Effect.runPromise(
      node.sessions.submit({ conversationId: conversation_id, content: [text("hello")], requestId: null }),
    )
    await stream.first((event) => event.type === "TEXT_MESSAGE_START")
    stream.leave()
    const settled = await Effect.runPromise(
      node.sessions.awaitSubmission({ conversationId: conversation_id, submissionId: submission_id }),
    )
    expect(settled).toMatchObject({ status: "done", text: "Hello to you." })
  })

  it.each(["nobody", "999999", "0", "%2e%2e", "x".repeat(300)])(
    "of a session that is not there are not found (%s)",
    async (id) => {
      const { status } = await openStream(`${node.url}/agui/v1/sessions/${id}/events`)
      expect(status).toBe(404)
    },
  )
})

describe("input beside the events", () => {
  it("submits a prompt once, and cancels", async () => {
    const agent = agentOf(node.url, "beside")
    says(agent, "hello")
    await agent.runAgent()
    const url = `${node.url}/agui/v1/sessions/beside/input`
    const first = await (await post(url, { type: "prompt", text: "hello again", id: "p1" })).json()
    const second = await post(url, { type: "prompt", text: "hello again", id: "p1" })
    expect(second.status).toBe(202)
    expect(await second.json()).toMatchObject({ submissionId: (first as { submissionId: number }).submissionId })
    expect(await (await post(url, { type: "cancel" })).json()).toMatchObject({ cancelled: expect.any(Boolean) })
  })

  it.each([
    [{ type: "nothing" }, "type"],
    [{}, "type"],
    [[], "body"],
    [{ type: "prompt", text: " " }, "text"],
    [
      { type: "prompt", content: [{ type: "image", source: { type: "url", value: "http://x" } }] },
      "content.0.source.type",
    ],
    [{ type: "permission", questionId: "x", answer: "allow_once" }, "questionId"],
    [{ type: "permission", questionId: 1, answer: "maybe" }, "answer"],
  ])("says what was expected (%j)", async (body, param) => {
    const agent = agentOf(node.url, "faults")
    says(agent, "hello")
    await agent.runAgent()
    const response = await post(`${node.url}/agui/v1/sessions/faults/input`, body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: "invalid_params", param } })
  })
})

describe("principals", () => {
  it("see their own threads only, and the same not found for those of others", async () => {
    const owned = await startNode({
      rules: rules as never,
      tokens: { alice: "token-of-alice-0001", bob: "token-of-bob-000001" },
    })
    try {
      const alice = { authorization: "Bearer token-of-alice-0001" }
      const bob = { authorization: "Bearer token-of-bob-000001" }
      const agent = agentOf(owned.url, "thread", alice)
      says(agent, "hello")
      await agent.runAgent()
      const events = `${owned.url}/agui/v1/sessions/thread/events?follow=false`
      expect((await openStream(events)).status).toBe(401)
      expect((await openStream(events, { headers: bob })).status).toBe(404)
      expect((await post(`${owned.url}/agui/v1/sessions/1/input`, { type: "cancel" }, bob)).status).toBe(404)
      expect((await post(`${owned.url}/agui/v1/sessions/1/input`, { type: "cancel" }, alice)).status).toBe(200)
      // The same name is another thread.
      const other = agentOf(owned.url, "thread", bob)
      says(other, "hello")
      await other.runAgent()
      expect(other.messages).toHaveLength(3)
    } finally {
      await owned.stop()
    }
  })
})

describe("one conversation over several protocols", () => {
  it("is the same sequence for every watcher, and exactly one answer counts", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { conversation_id: conversationId } = yield* node.sessions.open({
            conversationId: null,
            agent: {},
            title: null,
            requestId: null,
          })
          const port = yield* serveTcp(0, protocolService(node.sessions))
          const rpc = yield* Effect.promise(() => connect(port))
          yield* Effect.addFinalizer(() => Effect.sync(() => rpc.destroy()))
          yield* Effect.promise(() => rpc.request("session.watch", { conversationId, interactive: true }))
          /** What this client is told, to the end of the run. */
          const told = async (): Promise<ReadonlyArray<Event>> => {
            const events: Array<Event> = []
            for (let line = await rpc.next(); line !== null; line = await rpc.next()) {
              if (line.method !== "session.event" || line.params === undefined) continue
              const { delivery, watchId } = line.params
              // What a node sends.
              events.push(...(line.params.events as unknown as ReadonlyArray<Event>))
              await rpc.request("session.ack", { watchId, delivery })
              if (events.some((event) => event.type === "state_changed" && event.to === "idle")) break
            }
            return events
          }
          const overRpcEvents = told()
          const stream = yield* Effect.promise(() =>
            openStream(`${node.url}/agui/v1/sessions/${conversationId}/events`),
          )
          yield* Effect.promise(() => stream.first(isEnd))
          const joined = yield* Deferred.make<void>()
          const own = yield* node.sessions.watch({ conversationId, after: null }).pipe(
            Stream.tap((event) => (event.type === "snapshot" ? Deferred.succeed(joined, undefined) : Effect.void)),
            Stream.takeUntil((event) => event.type === "state_changed" && event.to === "idle"),
            Stream.runCollect,
            Effect.fork,
          )
          yield* Deferred.await(joined)
          yield* node.sessions.submit({ conversationId, content: [text("act")], requestId: null })
          const asked = yield* Effect.promise(() =>
            stream.first((event) => event.type === "CUSTOM" && event.name === "permission_request"),
          )
          const questionId = asked.type === "CUSTOM" ? asked.value.question_id : 0
          const acts = node.acts()
          const [overHttp, overRpc] = yield* Effect.promise(() =>
            Promise.all([
              post(`${node.url}/agui/v1/sessions/${conversationId}/input`, {
                type: "permission",
                questionId,
                answer: "allow_once",
              }),
              rpc
                .request("ui.respond", { questionId, answer: "allow_once" })
                .then(({ error }) => error?.code ?? "counts"),
            ]),
          )
          expect([overHttp.status === 200, overRpc === "counts"].filter(Boolean)).toHaveLength(1)
          expect(overHttp.status === 200 ? overRpc : overHttp.status).toBe(overHttp.status === 200 ? -32003 : 409)
          const mine = [...(yield* Fiber.join(own))]
          yield* Effect.promise(() =>
            stream.first((event) => event.type === "RUN_FINISHED" && event.result !== undefined),
          )
          expect(node.acts()).toBe(acts + 1)
          stream.leave()
          yield* Effect.promise(() => accept(stream.events, { threadId: String(conversationId) }))
          // JSON-RPC has the very events, the front end what is rendered from them.
          const events = yield* Effect.promise(() => overRpcEvents)
          const tail = (all: ReadonlyArray<Event>) => all.filter((event) => event.type !== "snapshot")
          expect(tail(events)).toEqual(tail(mine))
          const said = (all: ReadonlyArray<Event>) =>
            all.flatMap((event) => (event.type === "text_delta" ? [event.text] : [])).join("")
          expect(
            stream.events
              .flatMap((event) =>
                event.type === "TEXT_MESSAGE_CONTENT" && event.messageId.startsWith("turn-") ? [event.delta] : [],
              )
              .join(""),
          ).toBe(said(mine))
        }),
      ),
    ))
})
