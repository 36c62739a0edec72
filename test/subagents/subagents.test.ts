/**
 * Delegation on a real node with a scripted model: children run at the same time, their summaries arrive as messages, the parent answers
 * meanwhile, and what is cancelled, refused or late ends as it should.
 */
import { Deferred, Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { SessionsService } from "../../src/actors/sessions.ts"
import { type Entry, EntryKind } from "../../src/domain/entry.ts"
import type { Event } from "../../src/domain/event.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { handoffTool } from "../../src/harness/plugins/handoff.ts"
import { delegateTool } from "../../src/harness/plugins/subagent.ts"
import { makeSqliteReader } from "../../src/storage/sqlite/store.ts"
import { defineTool } from "../../src/tools/define.ts"
import { collect, echo, type NodeOptions, prompt, withNode } from "../conversation/harness.ts"

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

  it("does not stand still where more children than the queue has places have children of their own", () =>
    node(
      {
        tools: [echo, delegateTool({ maxDepth: 2, timeoutMs: 20_000 })],
        rules: [
          parent({ tasks: Array.from({ length: 7 }, () => order("worker", "deeper")) }),
          { match: "^Subagent scout", steps: [{ text: "the scout is back" }] },
          summaries(),
          {
            match: "^deeper$",
            steps: [{ text: "d", tools: [call({ tasks: [order("scout", "x")] })] }],
          },
          { match: "^x$", steps: [{ text: "x is there" }] },
        ],
      },
      (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          expect(yield* prompt(sessions, id, "go")).toMatchObject({ status: "done", text: "all done" })
          const told = textsOf(yield* transcript(sessions, id), EntryKind.subagent)
          expect(told).toHaveLength(7)
          expect(told.every((line) => line.endsWith("finished: the scout is back"))).toBe(true)
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

/** Waits in the call until the test lets it go. */
const gate = (opened: Deferred.Deferred<void>, entered: Deferred.Deferred<void>) =>
  defineTool({
    name: "gate",
    description: "Waits.",
    parameters: Schema.Struct({}),
    effects: ["read"],
    replay: "safe",
    execute: () =>
      Deferred.succeed(entered, undefined).pipe(
        Effect.zipRight(Deferred.await(opened)),
        Effect.as({ output: [text("open")] }),
      ),
  })

/** A node whose subagents wait in the tool `gate` when they are told to `wait`. */
const gated = <A, E>(
  rules: ReadonlyArray<unknown>,
  use: (
    sessions: SessionsService,
    doors: { readonly opened: Deferred.Deferred<void>; readonly entered: Deferred.Deferred<void> },
    path: string,
  ) => Effect.Effect<A, E>,
) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const doors = { opened: yield* Deferred.make<void>(), entered: yield* Deferred.make<void>() }
      const options = {
        policy: { awaitPollMs: 50 },
        tools: [...tools, gate(doors.opened, doors.entered)],
        rules: [
          { match: "^wait$", steps: [{ text: "w", tools: [{ name: "gate", args: {} }] }, { text: "waited" }] },
          ...rules,
        ],
      }
      return yield* withNode(options, (sessions, path) => use(sessions, doors, path))
    }),
  )

describe("a parent whose subagents work", () => {
  it("answers everything meanwhile: its state names them, a steer waits, a second prompt follows, a compaction is made", () =>
    gated(
      [parent({ tasks: [order("scout", "wait")] }), summaries(), { match: "", steps: [{ text: "as you say" }] }],
      (sessions, { entered, opened }) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          const conversationId = id
          const submitted = yield* sessions.submit({ conversationId, content: [text("go")], requestId: null })
          yield* Deferred.await(entered)
          const state = yield* sessions.state({ conversationId })
          expect(state).toMatchObject({
            state: "awaiting_children",
            subagents: [{ role: "scout", running: true }],
          })
          const steer = yield* sessions.submit({
            conversationId,
            content: [text("by the way")],
            whenBusy: "steer",
            requestId: null,
          })
          expect(steer.status).toBe("queued")
          yield* sessions.configure({ conversationId, agent: { effort: "low" } })
          const compacted = yield* sessions.compact({ conversationId, instructions: null })
          expect(["completed", "nothing"]).toContain(compacted.status)
          expect((yield* sessions.state({ conversationId })).state).toBe("awaiting_children")
          yield* Deferred.succeed(opened, undefined)
          const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: submitted.submission_id })
          expect(settled.status).toBe("done")
          expect(yield* sessions.awaitSubmission({ conversationId, submissionId: steer.submission_id })).toMatchObject({
            status: "done",
          })
        }),
    ))

  it("is cancelled with all of them, and their conversations come to rest", () =>
    gated([parent({ tasks: [order("scout", "wait"), order("worker", "wait")] })], (sessions, { entered }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const submitted = yield* sessions.submit({ conversationId, content: [text("go")], requestId: null })
        yield* Deferred.await(entered)
        expect(yield* sessions.cancel({ conversationId })).toEqual({ cancelled: true })
        const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: submitted.submission_id })
        expect(settled).toMatchObject({ status: "unanswered", reason: "aborted" })
        const entries = yield* transcript(sessions, conversationId)
        expect(textsOf(entries, EntryKind.subagent)).toEqual([])
        const children = childrenOf(entries)
        expect(children).toHaveLength(2)
        for (const { conversation } of children) {
          expect((yield* sessions.state({ conversationId: conversation })).state).toBe("idle")
          expect(yield* sessions.submissions({ conversationId: conversation })).toEqual([])
        }
        expect(yield* sessions.cancel({ conversationId })).toEqual({ cancelled: false })
      }),
    ))

  it("does nothing for a job that finds its task aborted while it was queued", () =>
    gated(
      [parent({ tasks: Array.from({ length: 7 }, () => order("scout", "wait")) })],
      (sessions, { entered, opened }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* sessions.submit({ conversationId, content: [text("go")], requestId: null })
          yield* Deferred.await(entered)
          yield* sessions.cancel({ conversationId })
          yield* Deferred.succeed(opened, undefined)
          const children = childrenOf(yield* transcript(sessions, conversationId))
          expect(children).toHaveLength(7)
          const asked = yield* Effect.forEach(children, ({ conversation }) =>
            Effect.map(transcript(sessions, conversation), (entries) => textsOf(entries, EntryKind.assistant).length),
          )
          // The queue lets five run at once: the last two never asked a model.
          expect(asked.filter((count) => count === 0).length).toBeGreaterThanOrEqual(2)
          expect((yield* sessions.queues).find(({ queue }) => queue === "subagents")?.counts).not.toHaveProperty(
            "discarded",
          )
        }),
    ))

  it("stops the others at the first failure with fail_fast", () =>
    gated(
      [
        parent({ tasks: [order("scout", "break"), order("scout", "wait")], wait_policy: "fail_fast" }),
        summaries("one broke"),
        { match: "^break$", steps: [{ status: 400, message: "no such thing" }] },
      ],
      (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          expect(yield* prompt(sessions, id, "go")).toMatchObject({ status: "done", text: "one broke" })
          const told = textsOf(yield* transcript(sessions, id), EntryKind.subagent)
          expect(told).toHaveLength(2)
          expect(told[0]).toContain("failed: ")
          expect(told[1]).toContain("was stopped: ")
        }),
    ))

  it("gives up a child that takes longer than its timeout, and stops it", () =>
    gated([parent({ tasks: [order("scout", "wait")], timeout_ms: 50 }), summaries("too slow")], (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        expect(yield* prompt(sessions, id, "go")).toMatchObject({ status: "done", text: "too slow" })
        const entries = yield* transcript(sessions, id)
        expect(textsOf(entries, EntryKind.subagent)).toEqual([
          expect.stringContaining("ran out of time: it took longer than 50 ms"),
        ])
        const [child] = childrenOf(entries)
        expect((yield* sessions.state({ conversationId: child?.conversation ?? id })).state).toBe("idle")
      }),
    ))

  it("finds a child whose job was cancelled by hand, and stops that child", () =>
    gated([parent({ tasks: [order("scout", "wait")] }), summaries("lost it")], (sessions, { entered }, path) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const submitted = yield* sessions.submit({ conversationId, content: [text("go")], requestId: null })
        yield* Deferred.await(entered)
        const reader = yield* makeSqliteReader({ path })
        const [job] = yield* reader.jobs({ queue: "subagents", state: "executing", limit: 10 })
        if (job === undefined) return yield* Effect.dieMessage("no job runs")
        yield* sessions.changeQueue({ change: { type: "cancel", job: job.id, reason: null } })
        const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: submitted.submission_id })
        expect(settled).toMatchObject({ status: "done", text: "lost it" })
        const told = textsOf(yield* transcript(sessions, conversationId), EntryKind.subagent)
        expect(told).toEqual([expect.stringContaining("failed: its job was cancelled or lost")])
      }).pipe(Effect.scoped),
    ))
})

describe("permission", () => {
  const writes = defineTool({
    name: "scribble",
    description: "Changes something.",
    parameters: Schema.Struct({}),
    effects: ["fs_write"],
    execute: () => Effect.succeed({ output: [text("scribbled")] }),
  })
  const rules = (role: string) => [
    parent({ tasks: [order(role, "scribble")] }),
    summaries(),
    { match: "^scribble$", steps: [{ text: "s", tools: [{ name: "scribble", args: {} }] }, { text: "tried" }] },
  ]

  it.each(["scout", "planner", "reviewer", "researcher"])("a %s reads only, whatever its parent may do", (role) =>
    node({ tools: [...tools, writes], rules: rules(role) }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions, { mode: "auto" })
        yield* prompt(sessions, id, "go")
        const [child] = childrenOf(yield* transcript(sessions, id))
        const conversationId = child?.conversation ?? id
        expect(textsOf(yield* transcript(sessions, conversationId), EntryKind.toolResult)).toEqual([
          expect.stringContaining('the mode "plan" does not allow scribble'),
        ])
        // Its ceiling is not lifted by configuring it.
        expect(yield* sessions.configure({ conversationId, agent: { mode: "auto" } })).toMatchObject({ mode: "plan" })
      }),
    ),
  )

  it.each([
    ["auto", "scribbled"],
    ["accept-edits", "does not allow scribble"],
    ["plan", null],
  ] as const)("a worker has its parent's mode %s", (mode, expected) =>
    node({ tools: [...tools, writes], rules: rules("worker") }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions, { mode })
        yield* prompt(sessions, id, "go")
        const entries = yield* transcript(sessions, id)
        const [child] = childrenOf(entries)
        if (expected === null) {
          // In plan mode there are no workers at all.
          expect(child).toBeUndefined()
          expect(textsOf(entries, EntryKind.toolResult)[0]).toContain(
            'the mode "plan" does not allow delegate_subagent',
          )
          return
        }
        const conversationId = child?.conversation ?? id
        const results = textsOf(yield* transcript(sessions, conversationId), EntryKind.toolResult)
        expect(results).toEqual([expect.stringContaining(expected)])
        yield* sessions.configure({ conversationId, agent: { mode: "auto" } })
        expect(yield* sessions.state({ conversationId })).toMatchObject({ mode })
      }),
    ),
  )

  it("a subagent has none of its own", () =>
    node(
      {
        rules: [
          parent({ tasks: [order("worker", "delegate more")] }),
          summaries(),
          {
            match: "^delegate more$",
            steps: [{ text: "d", tools: [call({ tasks: [order("scout", "x")] })] }, { text: "alone" }],
          },
        ],
      },
      (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          yield* prompt(sessions, id, "go")
          const [child] = childrenOf(yield* transcript(sessions, id))
          const entries = yield* transcript(sessions, child?.conversation ?? id)
          expect(textsOf(entries, EntryKind.toolResult)).toEqual([expect.stringContaining("depth 1 of at most 1")])
        }),
    ))

  it("nobody but the engine says what a subagent is", () =>
    node({ rules: [] }, (sessions) =>
      Effect.gen(function* () {
        const subagent = { role: "worker" as const, depth: 1, root: 1 as ConversationId }
        const failure = yield* Effect.flip(
          sessions.open({ conversationId: null, agent: { subagent }, title: null, requestId: null }),
        )
        expect(failure.message).toContain("agent.subagent: expected nothing: the engine writes it")
      }),
    ))
})

describe("the tool", () => {
  it.each([
    [{ tasks: [] }, "tasks"],
    [{ tasks: [order("boss", "x")] }, "tasks[0].role"],
    [{ tasks: [order("scout", "")] }, "tasks[0].task"],
    [{ tasks: [order("scout", "x")], wait_policy: "some" }, "wait_policy"],
    [{ tasks: [order("scout", "x")], timeout_ms: 0 }, "timeout_ms"],
  ])("names what is wrong with %j", (args, path) =>
    node({ rules: [parent(args)] }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* open(sessions)
        yield* prompt(sessions, id, "go")
        const entries = yield* transcript(sessions, id)
        expect(childrenOf(entries)).toEqual([])
        expect(textsOf(entries, EntryKind.toolResult)[0]).toContain(`${path}: expected`)
      }),
    ),
  )
})

describe("a handoff", () => {
  it("is a conversation that is listed, begins with summary and goal, has not run, and goes on where somebody asks it", () =>
    node(
      {
        rules: [
          {
            match: "^hand over$",
            steps: [
              { text: "h", tools: [call({ summary: "a is done", goal: "do b" }, "handoff")] },
              { text: "handed" },
            ],
          },
          { match: "go on$", steps: [{ text: "b is done" }] },
        ],
      },
      (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions, { effort: "low" })
          yield* prompt(sessions, id, "hand over")
          const [result] = textsOf(yield* transcript(sessions, id), EntryKind.toolResult)
          const stored = Number(/^Stored as conversation (\d+);/.exec(result ?? "")?.[1]) as ConversationId
          expect((yield* sessions.list({})).map((row) => row.conversation_id).sort()).toEqual([id, stored].sort())
          const before = yield* transcript(sessions, stored)
          expect(before.map(({ kind }) => kind)).toEqual([EntryKind.handoff])
          expect(textsOf(before, EntryKind.handoff)[0]).toBe(
            `This conversation goes on from conversation ${id}.\n\nSummary:\na is done\n\nGoal:\ndo b`,
          )
          expect(yield* prompt(sessions, stored, "go on")).toMatchObject({ status: "done", text: "b is done" })
        }),
    ))
})
