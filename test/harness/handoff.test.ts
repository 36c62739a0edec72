/**
 * Plugin Handoff: what its tool asks for, and that the stored conversation has the choices of the one before without its place.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { ConversationId } from "../../src/domain/ids.ts"
import { handoffAgent, handoffText } from "../../src/domain/subagent.ts"
import { handoff, handoffTool } from "../../src/harness/plugins/handoff.ts"
import { contextOf } from "../tools/support.ts"

describe("the tool handoff", () => {
  it("asks the conversation to store another one, titled by its goal where it has no title", async () => {
    expect(handoff.tools({})).toEqual([handoffTool])
    const run = (args: Record<string, string>) =>
      Effect.runPromise(handoffTool.execute(args, contextOf({ root: "/", confined: true })))
    expect(await run({ summary: "s", goal: "g" })).toEqual({
      output: [],
      control: { store: { title: "g", summary: "s", goal: "g" } },
    })
    expect((await run({ summary: "s", goal: "g", title: "t" })).control?.store?.title).toBe("t")
  })

  it("changes state: it is not for plan mode", () => {
    expect(handoffTool.effects).toEqual(["read", "state_write"])
  })

  it("refuses what has no summary or no goal", async () => {
    const decoded = handoffTool.decode({ summary: "", goal: "g" })
    expect(await Effect.runPromise(Effect.flip(decoded))).toMatchObject({
      detail: expect.stringMatching(/^summary: expected/),
    })
  })
})

describe("the stored conversation", () => {
  it("begins with where it comes from, the summary and the goal", () => {
    expect(handoffText({ title: "t", summary: " a is done\n", goal: "do b" }, 4 as ConversationId)).toBe(
      "This conversation goes on from conversation 4.\n\nSummary:\na is done\n\nGoal:\ndo b",
    )
  })

  it("keeps the choices, and of a subagent its ceiling, but not its place", () => {
    expect(handoffAgent({ model: "p/m", mode: "auto" })).toEqual({ model: "p/m", mode: "auto" })
    const subagent = { role: "worker", depth: 1, root: 1 as ConversationId, maxMode: "accept-edits" } as const
    expect(handoffAgent({ mode: "auto", subagent })).toEqual({ mode: "accept-edits" })
  })
})
