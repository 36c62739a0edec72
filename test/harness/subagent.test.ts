/**
 * Plugin Subagent: its options, its hooks, what its tool asks for, and a delegation through the whole pipeline of a harness.
 */
import { Effect, Logger, LogLevel, Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { Entry } from "../../src/domain/entry.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { textOf } from "../../src/domain/message.ts"
import { childAgent, summaryBytes, summaryOf } from "../../src/domain/subagent.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { delegateTool, delegateToolName, SubagentOptions, subagent } from "../../src/harness/plugins/subagent.ts"
import { SuperPi, type SuperPiService } from "../../src/super-pi.ts"
import { contextOf } from "../tools/support.ts"
import { projectWith } from "./plugin-support.ts"

const defaults = Schema.decodeUnknownSync(SubagentOptions)({})
const input = {
  role: "scout" as const,
  task: "look",
  callId: "c1",
  conversation: 7 as ConversationId,
  submission: 1 as never,
  timeoutMs: 1_000,
}
const end = { status: "completed" as const, text: "found it", models: {}, turns: 1 }

describe("options", () => {
  it("are one level of subagents and two minutes each, where nothing is said", () => {
    expect(defaults).toEqual({ maxDepth: 1, timeoutMs: 120_000 })
  })

  it.each([{ maxDepth: -1 }, { maxDepth: 1.5 }, { timeoutMs: 0 }, { timeoutMs: "soon" }])("cannot be %j", (options) => {
    expect(() => Schema.decodeUnknownSync(SubagentOptions)(options)).toThrow(/Expected/)
  })
})

describe("the tool", () => {
  const tool = delegateTool(defaults)

  it("asks the conversation to await its children, and does nothing itself", async () => {
    const args = {
      tasks: [
        { role: "scout", task: "look" },
        { role: "worker", task: "build", context: "in c" },
      ],
      wait_policy: "fail_fast",
    }
    const result = await Effect.runPromise(tool.execute(args, contextOf({ root: "/", confined: true })))
    expect(result).toEqual({
      output: [],
      control: {
        await: {
          orders: [
            { role: "scout", task: "look", context: null },
            { role: "worker", task: "build", context: "in c" },
          ],
          policy: "fail_fast",
          timeoutMs: 120_000,
          maxDepth: 1,
        },
      },
    })
  })

  it("reads where every role only reads, and changes things where one is a worker", () => {
    const of = (...roles: ReadonlyArray<string>) =>
      tool.effectsOf?.({ tasks: roles.map((role) => ({ role, task: "x" })) })
    expect(of("scout", "planner", "reviewer", "researcher")).toEqual(["read"])
    expect(of("scout", "worker")).toEqual(["read", "state_write"])
  })
})

describe("hooks", () => {
  const request = { messages: [], sections: {}, tools: ["read", delegateToolName], model: "m", turn: 1 }
  const call = { id: "c", name: delegateToolName, args: {}, effects: [] }
  const at = (depth: number, maxDepth = 1) =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const project = yield* projectWith()
          const context = project.context(subagent, { options: { maxDepth }, depth })
          return {
            request: yield* subagent.hooks.beforeRequest?.(request, context) ?? Effect.void,
            tool: yield* subagent.hooks.beforeTool?.(call, context) ?? Effect.void,
          }
        }),
      ),
    )

  it("leave a person's conversation alone", async () => {
    expect(await at(0)).toEqual({ request: undefined, tool: undefined })
  })

  it("take the tool from a subagent, and block it if it is called", async () => {
    expect(await at(1)).toMatchObject({ request: { tools: ["read"] }, tool: { type: "block", rule: "maxDepth" } })
  })

  it("let a subagent delegate where two levels are allowed", async () => {
    expect(await at(1, 2)).toEqual({ request: undefined, tool: undefined })
    expect((await at(2, 2)).tool).toMatchObject({ type: "block" })
  })
})

describe("a summary", () => {
  it("says who it is, how it ended and what it said", () => {
    expect(summaryOf(input, end)).toBe("Subagent scout (conversation 7) finished: found it")
    expect(summaryOf(input, { ...end, status: "failed", text: "no" })).toBe(
      "Subagent scout (conversation 7) failed: no",
    )
    expect(summaryOf(input, { ...end, text: " " })).toBe("Subagent scout (conversation 7) finished: (no text)")
  })

  it.each(["a", "ä", "漢", "😀"])("keeps 8,000 bytes of a long text of %s, and cuts no character", (character) => {
    const text = character.repeat(9_000)
    const summary = summaryOf(input, { ...end, text })
    const kept = /finished: (.*)\n\[cut; conversation 7 has the rest\]$/s.exec(summary)?.[1] ?? ""
    const size = new TextEncoder().encode(kept).length
    expect(size).toBeLessThanOrEqual(summaryBytes)
    expect(size).toBeGreaterThan(summaryBytes - 4)
    expect(text.startsWith(kept)).toBe(true)
  })
})

describe("what a child runs with", () => {
  const parent = 3 as ConversationId

  it("is its parent's, with the mode of its role, and without its parent's budget", () => {
    const agent = { model: "p/m", mode: "auto", cwd: "/w", instructions: "be kind", budget: { maxTurns: 1 } } as const
    const scout = childAgent(agent, "scout", parent)
    expect(scout).toMatchObject({ model: "p/m", cwd: "/w", mode: "plan" })
    expect(scout.subagent).toEqual({ role: "scout", depth: 1, root: parent, maxMode: "plan" })
    expect(scout).not.toHaveProperty("budget")
    expect(scout.instructions).toMatch(/^You are a scout: .*be kind$/s)
    expect(childAgent(agent, "worker", parent)).toMatchObject({ mode: "auto", subagent: { maxMode: "auto" } })
  })

  it("never allows more than its parent's ceiling", () => {
    const below = childAgent({ mode: "accept-edits" }, "worker", parent)
    expect(childAgent({ ...below, mode: "auto" }, "worker", 9 as ConversationId)).toMatchObject({
      mode: "accept-edits",
      subagent: { depth: 2, root: parent, maxMode: "accept-edits" },
    })
  })
})

const run = <A>(
  options: {
    readonly rules: ReadonlyArray<unknown>
    readonly plugins: ReadonlyArray<string | [string, Record<string, number>]>
    readonly harness?: string
  },
  use: (superPi: SuperPiService) => Effect.Effect<A, unknown>,
): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(SuperPi, use).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: "memory",
          models: { env: {}, model: "script/own", script: { rules: options.rules } as never }, // the script's schema checks it
          defaults: { cwd: process.cwd(), mode: "auto" },
          harness: "delegating",
          extraHarnesses: [
            defineHarness({
              id: "delegating",
              name: "D",
              description: "For tests",
              prompt: "You are a test.",
              plugins: options.plugins,
            }),
          ],
        }),
      ),
      Logger.withMinimumLogLevel(LogLevel.None),
    ),
  )

const texts = (entries: ReadonlyArray<Entry>, role: string): ReadonlyArray<string> =>
  entries.flatMap(({ model }) =>
    model.flatMap((one) => (one.role === role && one.role !== "system" ? [textOf(one.content)] : [])),
  )
const toolsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  entries.flatMap(({ model }) =>
    model.flatMap((one) => (one.role === "system" ? one.addTools.map(({ name }) => name) : [])),
  )

describe("in a harness", () => {
  const delegation = (task: string, tasks: ReadonlyArray<unknown>) => ({
    match: `^${task}$`,
    steps: [{ text: "d", tools: [{ name: delegateToolName, args: { tasks } }] }, { text: `${task} is done` }],
  })
  const summaries = { match: "^Subagent ", steps: [{ text: "done" }] }

  it("a subagent works under the same harness, is not offered the tool, and is refused where it calls it", () =>
    run(
      {
        plugins: ["permissions", "subagent"],
        rules: [
          delegation("go", [{ role: "worker", task: "deeper" }]),
          summaries,
          delegation("deeper", [{ role: "scout", task: "x" }]),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          expect((yield* conversation.ask("go")).text).toBe("done")
          const entries = yield* conversation.transcript
          expect(toolsOf(entries)).toContain(delegateToolName)
          const summary = texts(entries, "user").find((line) => line.startsWith("Subagent ")) ?? ""
          expect(summary).toContain("finished: deeper is done")
          const child = superPi.conversation(Number(/conversation (\d+)/.exec(summary)?.[1]) as ConversationId)
          const below = yield* child.transcript
          expect(toolsOf(below)).toContain("read")
          expect(toolsOf(below)).not.toContain(delegateToolName)
          expect(texts(below, "tool")[0]).toMatch(/depth 1/)
        }),
    ))

  it("two levels work where the option allows them, and the summaries go up", () =>
    run(
      {
        plugins: [["subagent", { maxDepth: 2 }]],
        rules: [
          delegation("go", [{ role: "worker", task: "deeper" }]),
          { match: "^Subagent scout", steps: [{ text: "the scout is back" }] },
          summaries,
          delegation("deeper", [{ role: "scout", task: "x" }]),
          { match: "^x$", steps: [{ text: "x is there" }] },
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          expect((yield* conversation.ask("go")).text).toBe("done")
          const told = texts(yield* conversation.transcript, "user")
          expect(told.at(-1)).toContain("finished: the scout is back")
        }),
    ))
})
