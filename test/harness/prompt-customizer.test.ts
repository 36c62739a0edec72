/**
 * Plugin PromptCustomizer: a rule for each tool that is offered, and for no other.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import type { JsonObject } from "../../src/domain/json.ts"
import { rulesText, toolRules } from "../../src/harness/plugins/prompt-customizer/rules.ts"
import { promptCustomizer, rulesSection } from "../../src/harness/plugins/prompt-customizer.ts"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { projectWith } from "./plugin-support.ts"

const section = (tools: ReadonlyArray<string>, options: JsonObject = {}) =>
  Effect.gen(function* () {
    const project = yield* projectWith()
    const hook = promptCustomizer.hooks.beforeRequest
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const request = { messages: [], sections: {}, tools, model: "script/test", turn: 1 }
    const answer = yield* hook(request, project.context(promptCustomizer, { options }))
    return answer?.sections?.[rulesSection] ?? null
  })

const names = toolRules.flatMap((rule) => rule.all)

describe("the rules of the prompt", () => {
  it.scoped("speak of the tools that are offered and of no others", () =>
    Effect.gen(function* () {
      const read = yield* section(["read"])
      expect(read?.split("\n")).toHaveLength(1)
      expect(read).toContain("read:")
      const both = yield* section(["read", "edit", "write"])
      expect(both).toContain("edit:")
      expect(both).toContain("else edit")
      expect(yield* section(["write"])).not.toContain("edit")
      expect(yield* section(["bash"])).not.toContain("grep")
      expect(yield* section([])).toBeNull()
      expect(yield* section(["unknown_tool"])).toBeNull()
    }),
  )

  it.scoped("are replaced, removed and added to by options", () =>
    Effect.gen(function* () {
      expect(yield* section(["read"], { rules: { read: "read twice" } })).toBe("- read twice")
      expect(yield* section(["read"], { rules: { read: null } })).toBeNull()
      const own = { rules: { mcp_b: "rule b", mcp_a: "rule a\nin two lines", read: null }, add: ["always"] }
      expect(yield* section(["mcp_b", "read", "mcp_a"], own)).toBe("- rule a\n  in two lines\n- rule b\n- always")
      expect(yield* section([], own)).toBe("- always")
    }),
  )

  it("are the same text for the same tools in any order", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(names), fc.shuffledSubarray(names), (some, more) => {
        const offered = [...new Set([...some, ...more])]
        expect(rulesText(offered)).toBe(rulesText([...offered].reverse()))
      }),
    )
  })

  it("are short: all the built-in tools take less than 2,000 characters", () => {
    const text = rulesText(BuiltinTools.list.map((tool) => tool.spec.name)) ?? ""
    expect(text.length).toBeLessThan(2_000)
    expect(new Set(toolRules.map((rule) => rule.id)).size).toBe(toolRules.length)
  })
})
