/**
 * The renderer without a socket: what it says of any stream of events fits the protocol, and nothing is said twice.
 */
import { Arbitrary, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import type { Entry } from "../../../src/domain/entry.ts"
import { Event, type SessionState } from "../../../src/domain/event.ts"
import { ConversationId, EntryId, Seq, TaskId } from "../../../src/domain/ids.ts"
import { noUsage } from "../../../src/domain/usage.ts"
import { history } from "../../../src/protocols/acp/history.ts"
import { renderer } from "../../../src/protocols/acp/renderer.ts"
import type { Item, Options, View } from "../../../src/protocols/acp/view.ts"
import { echoModel } from "../service.ts"
import { paramsFault, updateFault } from "./schema.ts"

const options: Options = {
  catalog: {
    models: [{ ...echoModel, contextWindow: 1_000 }],
    harnesses: { harnesses: [], default: null },
    rules: { ownMode: "auto" },
  },
  directory: { given: "/given", canonical: "/real" },
  extras: { notices: true, compaction: true, forms: true },
}

const session: SessionState = {
  conversation_id: ConversationId.make(1),
  state: "idle",
  model: "mock/echo",
  mode: "auto",
  harness: null,
  cwd: "/real",
  title: null,
  turn_id: null,
  partial: null,
  tools: [],
  queued: [],
  retry: null,
  parked: null,
  compactions: [],
  compaction_failure: null,
  questions: [],
  usage: noUsage,
  entries: 0,
  seq_no: 0,
}

const head = {
  v: 1 as const,
  conversation_id: ConversationId.make(1),
  turn_id: TaskId.make(7),
  timestamp_ms: 0,
  seq_no: 1,
}
const snapshot = (over: Partial<SessionState> = {}): Event => ({
  ...head,
  type: "snapshot",
  session: { ...session, ...over },
})

const play = (events: ReadonlyArray<Event>, over: Partial<Options> = {}): readonly [View, ReadonlyArray<Item>] => {
  let view = renderer.init({ ...options, ...over })
  const items: Array<Item> = []
  for (const event of events) {
    const [next, said] = renderer.render(view, event)
    view = next
    items.push(...said)
  }
  return [view, items]
}
const updates = (items: ReadonlyArray<Item>) => items.flatMap((item) => (item.type === "update" ? [item.update] : []))
const said = (items: ReadonlyArray<Item>) =>
  updates(items)
    .map((one) => (one.sessionUpdate === "agent_message_chunk" && one.content.type === "text" ? one.content.text : ""))
    .join("")

describe("any stream of events", () => {
  it("becomes messages that fit the protocol; calls are announced once, questions asked once", () => {
    const streams = fc.array(Arbitrary.make(Event), { maxLength: 30 })
    fc.assert(
      fc.property(streams, fc.boolean(), fc.boolean(), (events, notices, forms) => {
        const [view, items] = play([snapshot(), ...events], { extras: { notices, compaction: notices, forms } })
        const [, last] = renderer.flush(view)
        const open = new Set<number>()
        const calls = new Set<string>()
        for (const item of [...items, ...last]) {
          if (item.type === "update") {
            expect(updateFault(item.update)).toBeNull()
            if (item.update.sessionUpdate === "tool_call") calls.add(item.update.toolCallId)
            if (item.update.sessionUpdate === "tool_call_update") expect(calls).toContain(item.update.toolCallId)
          } else if (item.type === "ask") {
            expect(open).not.toContain(item.question.question_id)
            open.add(item.question.question_id)
            const { ask } = item
            const sessionId = "acp_1"
            if (ask.by === "permission")
              expect(paramsFault("session/request_permission", { sessionId, ...ask.params })).toBeNull()
            if (ask.by === "form") expect(paramsFault("elicitation/create", { sessionId, ...ask.params })).toBeNull()
            if (ask.by === "choices") {
              for (const params of ask.params)
                expect(paramsFault("session/request_permission", { sessionId, ...params })).toBeNull()
            }
          } else expect(open.delete(item.questionId)).toBe(true)
        }
        expect(open.size).toBe(0)
      }),
      { numRuns: 300 },
    )
  })
})

describe("a later snapshot", () => {
  const delta = (text: string): Event => ({ ...head, type: "text_delta", text })

  it("says the rest of what is being streamed, and nothing of it twice", () => {
    const [, items] = play([snapshot(), delta("good "), snapshot({ partial: { text: "good morning", thinking: "" } })])
    expect(said(items)).toBe("good morning")
  })

  it("says all of another message", () => {
    const [, items] = play([snapshot(), delta("good "), snapshot({ partial: { text: "bye", thinking: "" } })])
    expect(said(items)).toBe("good bye")
  })

  it("asks what is open now, and withdraws what is not", () => {
    const question = {
      kind: "choice" as const,
      question_id: TaskId.make(9),
      call_id: null,
      title: "Which?",
      created_at: 0,
      expires_at: null,
      questions: [],
    }
    const [, items] = play([snapshot({ questions: [question] }), snapshot({ questions: [question] }), snapshot()])
    expect(items.map(({ type }) => type)).toEqual(["ask", "withdraw"])
  })

  it("ends the calls that it does not know any more", () => {
    const started: Event = {
      ...head,
      type: "tool_started",
      task_id: TaskId.make(8),
      call_id: "c1",
      name: "bash",
      arguments: { command: "sleep 1" },
    }
    const [view, items] = play([snapshot(), started, snapshot()])
    expect(updates(items).at(-1)).toMatchObject({ toolCallId: "c1", status: "failed" })
    expect(view.calls.size).toBe(0)
  })
})

describe("what was missed", () => {
  const entry = (id: number, model: Entry["model"]): Entry => ({
    id: EntryId.make(id),
    conversation: ConversationId.make(1),
    kind: "pi.assistant",
    model,
    data: null,
    head: null,
    edits: [],
    task: null,
    createdAt: 0,
    seq: Seq.make(id),
  })

  it("comes from the transcript, without what was streamed of it", () => {
    const [view] = play([snapshot(), { ...head, type: "text_delta", text: "good " }])
    const [next, items] = history(view, [
      entry(1, [
        {
          role: "assistant",
          model: "m",
          stopReason: "tool_calls",
          content: [
            { type: "text", text: "good morning" },
            { type: "toolCall", id: "c1", name: "read", arguments: { path: "/real/a.ts", offset: 3 } },
          ],
        },
      ]),
      entry(2, [
        { role: "tool", callId: "c1", toolName: "read", isError: false, content: [{ type: "text", text: "x" }] },
      ]),
    ])
    expect(said(items)).toBe("morning")
    expect(updates(items).slice(1)).toMatchObject([
      { sessionUpdate: "tool_call", toolCallId: "c1", locations: [{ path: "/given/a.ts", line: 3 }] },
      { sessionUpdate: "tool_call_update", toolCallId: "c1", status: "completed" },
    ])
    expect(next.calls.size).toBe(0)
  })
})

describe("an answer that starts over", () => {
  it("is said to be void where something was said of it", () => {
    const reset: Event = { ...head, type: "stream_reset", reason: "the connection broke" }
    expect(said(play([snapshot(), reset])[1])).toBe("")
    const [, items] = play([
      snapshot(),
      { ...head, type: "text_delta", text: "go" },
      reset,
      { ...head, type: "text_delta", text: "good" },
    ])
    expect(said(items)).toBe("go\n\n[The answer starts over: the connection broke]\n\ngood")
    const ids = updates(items).map((one) => ("messageId" in one ? one.messageId : null))
    expect(ids.at(-1)).not.toBe(ids[0])
  })
})
