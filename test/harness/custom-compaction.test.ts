/**
 * Plugin CustomCompaction: who writes the summary, and what it is asked to keep.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CompactionMethod } from "../../src/domain/compaction-settings.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { type Message, text } from "../../src/domain/message.ts"
import { candidates, summaryInstructions } from "../../src/harness/plugins/custom-compaction/tiers.ts"
import { customCompaction } from "../../src/harness/plugins/custom-compaction.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { projectWith } from "./plugin-support.ts"

const said = (words: string): Message => ({ role: "user", content: [text(words)] })

const edited: Message = {
  role: "assistant",
  model: "script/own",
  stopReason: "tool_calls",
  content: [
    { type: "toolCall", id: "1", name: "edit", arguments: { path: "src/a.ts" } },
    { type: "toolCall", id: "2", name: "read", arguments: { path: "src/b.ts" } },
    { type: "toolCall", id: "3", name: "write", arguments: { path: "src/c.ts" } },
  ],
}

const compacted = (given: {
  readonly options?: JsonObject
  readonly env?: Readonly<Record<string, string>>
  readonly model?: string
  readonly messages?: ReadonlyArray<Message>
  readonly instructions?: string
  readonly method?: CompactionMethod
  readonly writer?: string
}) =>
  Effect.gen(function* () {
    const project = yield* projectWith()
    const hook = customCompaction.hooks.beforeCompact
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const { instructions = null, messages = [said("hello")], method = "summary", model = "script/own" } = given
    const { writer = null } = given
    const context = project.context(customCompaction, { options: given.options ?? {}, agent: { model } })
    const decision = yield* hook({ reason: "manual", instructions, method, writer, messages }, context).pipe(
      Effect.provideService(Models, makeModels({ env: given.env ?? {}, script: { rules: [] } as never })), // never asked
    )
    return { decision, notices: project.notices }
  })

const modelOf = ({ decision }: { readonly decision: unknown }) =>
  (decision as { readonly model?: string } | undefined)?.model

describe("the model of a summary", () => {
  it("is that of the smallest tier with room, then the named one, else a fast one of the same service", () => {
    const tiers = [{ model: "large" }, { upToTokens: 100, model: "small" }, { upToTokens: 1_000, model: "middle" }]
    expect(candidates(50, "x/own", { tiers, model: "named" })).toEqual(["small", "middle", "large", "named"])
    expect(candidates(500, "x/own", { tiers })).toEqual(["middle", "large"])
    expect(candidates(5_000, "x/own", { tiers: tiers.slice(1) })).toEqual([])
    expect(candidates(1, "anthropic/claude-sonnet-4-5", { tiers: [] })).toEqual(["anthropic/claude-haiku-4-5"])
    expect(candidates(1, "anthropic/claude-haiku-4-5", { tiers: [] })).toEqual([])
    expect(candidates(1, "script/own", { tiers: [] })).toEqual([])
  })

  it.scoped("is asked where it is served", () =>
    Effect.gen(function* () {
      const decision = yield* compacted({ options: { model: "script/fast" } })
      expect(decision).toMatchObject({ decision: { type: "summarise", model: "script/fast" }, notices: [] })
      const service = yield* compacted({ model: "claude-sonnet-4-5", env: { ANTHROPIC_API_KEY: "k" } })
      expect(modelOf(service)).toBe("anthropic/claude-haiku-4-5")
    }),
  )

  it.scoped("falls back where it has no key: to the next, and then to the ordinary way; a named one is told", () =>
    Effect.gen(function* () {
      const tiers = [{ upToTokens: 1_000_000, model: "claude-haiku-4-5" }]
      const next = yield* compacted({ options: { tiers, model: "script/fast" } })
      expect(modelOf(next)).toBe("script/fast")
      expect(next.notices[0]?.message).toContain("ANTHROPIC_API_KEY")
      const none = yield* compacted({ options: { model: "no-such-model" } })
      expect(none.decision).toBeUndefined()
      expect(none.notices).toHaveLength(1)
      expect(yield* compacted({ model: "script/own" })).toEqual({ decision: undefined, notices: [] })
    }),
  )

  it.scoped("is that of the settings where they name one and the options do not, and none where none is wanted", () =>
    Effect.gen(function* () {
      const keyed = { model: "claude-sonnet-4-5", env: { ANTHROPIC_API_KEY: "k" } }
      expect((yield* compacted({ ...keyed, writer: "anthropic/claude-opus-4-5" })).decision).toBeUndefined()
      const named = { ...keyed, options: { model: "script/fast" } }
      expect(modelOf(yield* compacted({ ...named, writer: "anthropic/claude-opus-4-5" }))).toBe("script/fast")
      expect((yield* compacted({ ...named, method: "truncate" })).decision).toBeUndefined()
      expect((yield* compacted({ ...named, method: "tool_results" })).decision).toBeUndefined()
    }),
  )

  it.scoped("is not one whose window the conversation would not fit", () =>
    Effect.gen(function* () {
      const messages = Array.from({ length: 90 }, () => said("x".repeat(8_000)))
      const options = { tiers: [{ model: "claude-haiku-4-5" }, { model: "gemini-3-flash-preview" }] }
      const decision = yield* compacted({ options, messages, env: { ANTHROPIC_API_KEY: "k", GEMINI_API_KEY: "k" } })
      expect(modelOf(decision)).toBe("google/gemini-3-flash-preview")
    }),
  )
})

describe("what a summary is asked to keep", () => {
  it.scoped("decisions, calls, changed files, the options' wishes and those of whoever asked", () =>
    Effect.gen(function* () {
      const { decision } = yield* compacted({
        options: { model: "script/fast", instructions: "Keep the licence." },
        messages: [said("a"), edited, edited],
        instructions: "the API above all",
      })
      const instructions = decision?.type === "summarise" ? (decision.instructions ?? "") : ""
      expect(instructions).toContain("decision")
      expect(instructions).toContain("Files changed so far: src/a.ts, src/c.ts\n")
      expect(instructions.endsWith("Keep the licence.\nthe API above all")).toBe(true)
      expect(summaryInstructions([said("a")], null, undefined, " ")).not.toContain("Files changed")
    }),
  )
})
