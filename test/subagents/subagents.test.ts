/**
 * Delegation on a real node with a scripted model: children run at the same time, their summaries arrive as messages, the parent answers
 * meanwhile, and what is cancelled, refused or late ends as it should.
 */
import { Effect, type Fiber } from "effect"
import { describe, expect, it } from "vitest"
import type { SessionsService } from "../../src/actors/sessions.ts"
import { type Entry, EntryKind } from "../../src/domain/entry.ts"
import type { Event } from "../../src/domain/event.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { handoffTool } from "../../src/harness/plugins/handoff.ts"
import { delegateTool } from "../../src/harness/plugins/subagent.ts"
import { collect, echo, type NodeOptions, prompt, until, withNode } from "../conversation/harness.ts"

const tools = [echo, delegateTool({ maxDepth: 1, timeoutMs: 120_000 }), handoffTool]

const order = (role: string, task: string) => ({ role, task })
const call = (args: Record<string, unknown>, name = "delegate_subagent") => ({ name, args })

/** A parent that delegates `args`, then answers; its summaries are user texts that begin with `Subagent`. */
const parent = (args: Record<string, unknown>, answer = "all done") => ({
  match: "^go$",
  steps: [{ text: "delegating", tools: [call(args)] }, { text: answer }],
})
/** Summaries are the last user text of the parent's next request. */
const summaries = (answer = "all done") => ({ match: "^Subagent ", steps: [{ text: answer }] })

const node = <A, E>(options: NodeOptions, use: (sessions: SessionsService, path: string) => Effect.Effect<A, E>) =>
  Effect.runPromise(withNode({ tools, ...options }, use))

const open = (sessions: SessionsService, agent: Record<string, unknown> = {}) =>
  Effect.map(
    sessions.open({ conversationId: null, agent, title: null, requestId: null }),
    (state) => state.conversation_id,
  )

const textsOf = (entries: ReadonlyArray<Entry>, kind: string): ReadonlyArray<string> =>
  entries
    .filter((entry) => entry.kind === kind)
    .flatMap(({ model }) => model.map((message) => (message.role === "system" ? "" : textOf(message.content))))

const transcript = (sessions: SessionsService, conversationId: ConversationId) =>
  sessions.transcript({ conversationId })

/** The children of the delegation in a transcript, from its result. */
const childrenOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<{ readonly conversation: ConversationId }> =>
  entries.flatMap(({ model }) =>
    model.flatMap((message) => {
      if (message.role !== "tool") return []
      const details = message.details as
        | { readonly subagents?: ReadonlyArray<{ readonly conversation: number }> }
        | undefined
      return (details?.subagents ?? []) as ReadonlyArray<{ readonly conversation: ConversationId }>
    }),
  )

const types = (events: ReadonlyArray<Event>, ...wanted: ReadonlyArray<Event["type"]>) =>
  events.filter((event) => wanted.includes(event.type))

const joined = (fiber: Fiber.Fiber<ReadonlyArray<Event>, unknown>) => Effect.map(fiber.await, (exit) => exit)

describe("delegating", () => {
  it("runs each task in a conversation of its own and gives each summary as one message", () =>
    node(
      {
        rules: [
          parent({ tasks: [order("scout", "look at a"), order("reviewer", "judge b"), order("worker", "build c")] }),
          summaries(),
          { match: "^look at a$", steps: [{ text: "a is fine" }] },
          {
            match: "^judge b$",
            steps: [{ text: "b", tools: [{ name: "echo", args: { value: "x" } }] }, { text: "b is poor" }],
          },
          { match: "^build c$", steps: [{ text: "c is built" }] },
        ],
      },
      (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          const settled = yield* prompt(sessions, id, "go")
          expect(settled).toMatchObject({ status: "done", text: "all done" })
          const entries = yield* transcript(sessions, id)
          const children = childrenOf(entries)
          expect(children).toHaveLength(3)
          const [a, b, c] = children.map(({ conversation }) => conversation)
          expect([...textsOf(entries, EntryKind.subagent)].sort()).toEqual([
            `Subagent reviewer (conversation ${b}) finished: b is poor`,
            `Subagent scout (conversation ${a}) finished: a is fine`,
            `Subagent worker (conversation ${c}) finished: c is built`,
          ])
          expect(textsOf(entries, EntryKind.toolResult)).toEqual([
            `Started scout (conversation ${a}), reviewer (conversation ${b}), worker (conversation ${c}). Their summaries arrive as messages when they have ended.`,
          ])
          for (const child of children) {
            expect((yield* transcript(sessions, child.conversation)).map(({ kind }) => kind).slice(0, 1)).toEqual([
              EntryKind.user,
            ])
          }
          expect((yield* sessions.list({})).map((row) => row.conversation_id)).toEqual([id])
          expect(yield* sessions.state({ conversationId: id })).not.toHaveProperty("subagents")
        }),
    ))

  it("says when each begins and how it ended", () =>
    node(
      {
        rules: [
          parent({ tasks: [order("scout", "look at a"), order("scout", "break")] }),
          summaries(),
          { match: "^look at a$", steps: [{ text: "a is fine" }] },
          { match: "^break$", steps: [{ status: 400, message: "no such thing" }] },
        ],
      },
      (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          const events = yield* collect(sessions, id, (event) => event.type === "turn_completed")
          yield* prompt(sessions, id, "go")
          const seen = yield* events
          expect(types(seen, "subagent_started")).toHaveLength(2)
          expect(types(seen, "subagent_finished").map((event) => ("status" in event ? event.status : ""))).toEqual(
            expect.arrayContaining(["completed", "failed"]),
          )
          const told = textsOf(yield* transcript(sessions, id), EntryKind.subagent)
          expect(told.find((line) => line.includes("failed: "))).toContain("no such thing")
          const states = seen.flatMap((event) => (event.type === "state_changed" ? [event.to] : []))
          expect(states).toContain("awaiting_children")
        }),
    ))
})
void joined
void until
void text
