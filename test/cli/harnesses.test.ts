/**
 * What the command line says of harnesses and of decisions about calls.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { Invocation } from "../../src/cli/arguments.ts"
import { parse } from "../../src/cli/arguments.ts"
import { superPi } from "../../src/cli/commands.ts"
import { harnessOf } from "../../src/cli/harness-choice.ts"
import { harnessLines } from "../../src/cli/harnesses.ts"
import { whyLines } from "../../src/cli/why.ts"
import { ConversationId, EntryId, TaskId } from "../../src/domain/ids.ts"
import { callEcho, plugin, run } from "../harness/pipeline-support.ts"

const invocation = (...words: ReadonlyArray<string>): Invocation => {
  const parsed = parse(superPi, ["run", ...words, "hi"])
  if (parsed.kind !== "invocation") throw new Error(JSON.stringify(parsed))
  return parsed.invocation
}

describe("the command line", () => {
  it("takes --harness, and the words that --agent used to take", () => {
    expect(harnessOf(invocation())).toBeUndefined()
    expect(harnessOf(invocation("--harness", "planner"))).toBe("planner")
    expect(harnessOf(invocation("--agent", "self"))).toBe("super-pi-code")
    expect(harnessOf(invocation("--agent", "research"))).toBe("super-pi-planner")
    expect(() => harnessOf(invocation("--agent", "self", "--harness", "code"))).toThrow("mean the same")
  })

  it("lists harnesses as a table, with the default marked", () => {
    const one = { plugins: [], tools: [], workspace: "local", modes: ["plan"] } as const
    const harnesses = [
      { ...one, id: "a", name: "First", description: "Does this" },
      { ...one, id: "longer", name: "Second", description: "Does that" },
    ]
    expect(harnessLines({ harnesses, default: "a" })).toEqual([
      "HARNESS ID  NAME    DESCRIPTION",
      "a *         First   Does this",
      "longer      Second  Does that",
    ])
  })

  it("says why a call was blocked, in one line for each decision and without obeying it", () => {
    const lines = whyLines({
      conversation_id: ConversationId.make(7),
      call_id: "c1",
      tool: "bash",
      task_id: null,
      arguments: { command: "rm -rf /" },
      outcome: "blocked",
      entry_id: EntryId.make(3),
      reason: "never\u001b[31m that",
      trail: [{ plugin: "guard", hook: "beforeTool", decision: "block", rule: "no rm", reason: "never", at: 0, ms: 2 }],
    })
    expect(lines[0]).toBe("call c1 of bash in conversation 7: blocked")
    expect(lines.at(-1)).toBe("  00:00:00.000  guard  beforeTool  block  rule no rm: never  (2 ms)")
    expect(lines.join("")).not.toContain("\u001b")
  })
})

describe("why", () => {
  it("finds a call by the number of its task as well as by its id, and no call of another conversation", () =>
    run(
      {
        rules: callEcho("x"),
        plugins: [plugin("yes", { beforeTool: () => Effect.succeed({ type: "allow", rule: "any" }) })],
      },
      (superPi, sessions) =>
        Effect.gen(function* () {
          const [one, other] = [yield* superPi.open(), yield* superPi.open()]
          yield* one.ask("go")
          const result = (yield* one.transcript).find((entry) => entry.kind === "pi.tool-result")
          const task = TaskId.make(result?.task ?? 0)
          const found = yield* sessions.why({ conversationId: one.id, call: String(task) })
          expect(found).toMatchObject({ task_id: task, outcome: "completed", arguments: { value: "x" } })
          expect(found.trail.map(({ decision, rule }) => [decision, rule])).toEqual([["allow", "any"]])
          const missing = yield* Effect.flip(sessions.why({ conversationId: other.id, call: String(task) }))
          expect(missing._tag).toBe("NotFound")
        }),
    ))
})
