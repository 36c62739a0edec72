/**
 * Budgets: what is counted, what a limit does to a conversation and to its subagents, and the pure rules behind it.
 */
import { Deferred, Effect, Fiber, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { SessionsService } from "../../src/actors/sessions.ts"
import { type Budget, costOf, doubled, exhausted, spendOf } from "../../src/domain/budget.ts"
import type { AgentDocument } from "../../src/domain/document.ts"
import { type Entry, EntryKind } from "../../src/domain/entry.ts"
import { textOf } from "../../src/domain/message.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { delegateTool } from "../../src/harness/plugins/subagent.ts"
import { echo, prompt, scriptModel, withNode } from "../conversation/harness.ts"

const used = (input: number, output: number) => ({ ...noUsage, input, output })

describe("what was spent", () => {
  it("counts the conversation, its ended subagents and those that run", () => {
    const spend = spendOf(
      [
        { models: { "p/a": used(10, 1) }, turns: 1, subagents: { models: { "p/b": used(20, 2) }, turns: 2 } },
        { models: { "p/a": used(5, 5) }, turns: 1 },
      ],
      { "p/a": { input: 1_000_000, output: 2_000_000 } },
    )
    expect(spend).toEqual({ tokens: 43, turns: 4, cost: 10 + 2 + 5 + 10, unpriced: ["p/b"] })
  })

  it("prices cached tokens by themselves, or as input where they have no price", () => {
    const usage = { input: 100, output: 10, cacheRead: 60, cacheWrite: 20, reasoning: 0 }
    expect(costOf(usage, { input: 1_000_000, output: 0 })).toBe(100)
    expect(costOf(usage, { input: 1_000_000, output: 0, cacheRead: 0, cacheWrite: 2_000_000 })).toBe(20 + 40)
  })
})

describe("a limit", () => {
  const spend = { tokens: 100, turns: 3, cost: 0.5, unpriced: [] }
  it.each([
    [{}, null],
    [{ maxTokens: 101 }, null],
    [{ maxTokens: 100 }, "maxTokens"],
    [{ maxTurns: 3 }, "maxTurns"],
    [{ maxTurns: 4, maxCost: 0.5 }, "maxCost"],
    [{ maxCost: 0.51 }, null],
  ] as ReadonlyArray<[Budget, string | null]>)("%j is reached: %s", (budget, limit) => {
    expect(exhausted(budget, spend, { m: { input: 1, output: 1 } }, "m")?.limit ?? null).toBe(limit)
  })

  it("on cost needs the price of every model, and says of which it has none", () => {
    expect(exhausted({ maxCost: 1 }, { ...spend, unpriced: ["p/x"] }, {}, "")).toMatchObject({
      extensible: false,
      detail: "models.prices: expected a price of p/x, got none",
    })
    expect(exhausted({ maxCost: 1 }, spend, {}, "p/y")?.detail).toContain("p/y")
  })

  it("that is reached stays reached however much more is spent, and doubling it until it is not ends", () => {
    const amount = fc.integer({ min: 1, max: 10_000 })
    fc.assert(
      fc.property(amount, amount, amount, fc.nat(10_000), (limit, tokens, turns, more) => {
        const budget: Budget = { maxTokens: limit, maxTurns: limit }
        const now = { tokens, turns, cost: 0, unpriced: [] }
        const reached = exhausted(budget, now, {}, "")
        if (reached !== null) expect(exhausted(budget, { ...now, tokens: tokens + more }, {}, "")).not.toBeNull()
        let wider = budget
        for (let again = reached, left = 64; again !== null; again = exhausted(wider, now, {}, "")) {
          expect(left--).toBeGreaterThan(0)
          wider = doubled(wider, again)
        }
      }),
    )
  })
})

const rules = [
  {
    match: "^echo",
    steps: [
      { text: "e", tools: [{ name: "echo", args: { value: "x" } }], usage: [60, 10] },
      { text: "echoed", usage: [60, 10] },
    ],
  },
  { match: "hello$", steps: [{ text: "hi", usage: [60, 10] }] },
  {
    match: "^go$",
    steps: [
      {
        text: "d",
        usage: [60, 10],
        tools: [
          {
            name: "delegate_subagent",
            args: {
              tasks: [
                { role: "scout", task: "echo a" },
                { role: "scout", task: "echo b" },
              ],
            },
          },
        ],
      },
    ],
  },
  { match: "^Subagent ", steps: [{ text: "done", usage: [60, 10] }] },
]
const tools = [echo, delegateTool({ maxDepth: 1, timeoutMs: 60_000 })]

const opened = (sessions: SessionsService, budget: Budget | undefined) => {
  const agent: AgentDocument = budget === undefined ? {} : { budget }
  return Effect.map(
    sessions.open({ conversationId: null, agent, title: null, requestId: null }),
    (state) => state.conversation_id,
  )
}

const run = <A, E>(use: (sessions: SessionsService) => Effect.Effect<A, E>) =>
  Effect.runPromise(withNode({ rules, tools }, use))

const summaries = (entries: ReadonlyArray<Entry>) =>
  entries
    .filter(({ kind }) => kind === EntryKind.subagent)
    .flatMap(({ model }) => model.map((m) => (m.role === "user" ? textOf(m.content) : "")))

describe("a conversation with a budget", () => {
  it("works within it, and ends with an error of its own at the first request beyond it", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const id = yield* opened(sessions, { maxTurns: 3 })
        expect(yield* prompt(sessions, id, "echo")).toMatchObject({ status: "done", text: "echoed" })
        expect(yield* prompt(sessions, id, "hello")).toMatchObject({ status: "done", text: "hi" })
        expect(yield* prompt(sessions, id, "hello")).toMatchObject({
          status: "unanswered",
          detail: "The budget is used up: 3 of 3 turns are used, with all subagents",
        })
        // A wider budget lets it go on.
        yield* sessions.configure({ conversationId: id, agent: { budget: { maxTurns: 4 } } })
        expect(yield* prompt(sessions, id, "hello")).toMatchObject({ status: "done" })
      }),
    ))

  it("stops in the middle of a run, between two requests", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const id = yield* opened(sessions, { maxTokens: 70 })
        expect(yield* prompt(sessions, id, "echo")).toMatchObject({ status: "unanswered", reason: "model_error" })
        const entries = yield* sessions.transcript({ conversationId: id })
        expect(entries.map(({ kind }) => kind)).toContain(EntryKind.toolResult)
      }),
    ))

  it("counts what its subagents take: their branches end, and say so", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const id = yield* opened(sessions, { maxTurns: 2 })
        const settled = yield* prompt(sessions, id, "go")
        expect(settled).toMatchObject({ status: "unanswered" })
        expect(settled.detail).toContain("The budget is used up")
        const told = summaries(yield* sessions.transcript({ conversationId: id }))
        expect(told).toHaveLength(2)
        expect(told.filter((line) => line.includes("failed: The budget is used up")).length).toBeGreaterThanOrEqual(1)
      }),
    ))

  it("is left with what its subagents took once they have ended", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const id = yield* opened(sessions, { maxTurns: 6 })
        // One turn delegates, two times two turns below, one turn ends it: six.
        expect(yield* prompt(sessions, id, "go")).toMatchObject({ status: "done", text: "done" })
        expect((yield* prompt(sessions, id, "hello")).detail).toContain("6 of 6 turns are used")
      }),
    ))

  it("asks for a price where it has a limit on cost and the model has none", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const id = yield* opened(sessions, { maxCost: 1 })
        expect((yield* prompt(sessions, id, "hello")).detail).toContain(
          `models.prices: expected a price of ${scriptModel}, got none`,
        )
      }),
    ))
})

describe("where a person can be asked", () => {
  const answering = (choice: "double" | "stop") =>
    run((sessions) =>
      Effect.gen(function* () {
        const conversationId = yield* opened(sessions, { maxTurns: 1 })
        yield* prompt(sessions, conversationId, "hello")
        const joined = yield* Deferred.make<void>()
        const watching = sessions.watch({ conversationId, after: null, interactive: true }).pipe(
          Stream.runForEach((event) => {
            if (event.type === "snapshot") return Deferred.succeed(joined, undefined)
            if (event.type !== "ui_request") return Effect.void
            const answer = { budget: { selected: [choice], text: null } }
            return sessions.answer({ questionId: event.question_id, answer, requestId: null, client: null })
          }),
        )
        const client = yield* Effect.fork(watching)
        yield* Deferred.await(joined)
        return yield* Effect.ensuring(prompt(sessions, conversationId, "hello"), Fiber.interrupt(client))
      }),
    )

  it("the run pauses, and goes on with twice the limit", async () => {
    expect(await answering("double")).toMatchObject({ status: "done", text: "hi" })
  })

  it("or ends, where the person says so", async () => {
    expect((await answering("stop")).detail).toContain("The budget is used up")
  })
})
