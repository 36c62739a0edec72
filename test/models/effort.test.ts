/**
 * The effort table of `docs/models.md`, row by row.
 */
import { describe, expect, it } from "vitest"
import type { Effort } from "../../src/domain/document.ts"
import { claudeThinking, geminiThinking, openAiEffort } from "../../src/models/effort.ts"

const levels: ReadonlyArray<Effort> = ["none", "minimal", "low", "medium", "high", "max"]

describe("OpenAI's effort", () => {
  const rows: Readonly<Record<string, ReadonlyArray<string | undefined>>> = {
    "o4-mini": ["low", "low", "low", "medium", "high", "high"],
    "gpt-5-mini": ["minimal", "minimal", "low", "medium", "high", "high"],
    "gpt-5.1": ["none", "low", "low", "medium", "high", "high"],
    "gpt-5.6-sol": ["none", "low", "low", "medium", "high", "xhigh"],
    "gpt-6-sol": ["none", "low", "low", "medium", "high", "max"],
    "gpt-6-astra": ["low", "low", "low", "medium", "high", "max"],
    "gpt-4o": [undefined, undefined, undefined, undefined, undefined, undefined],
    "gpt-5-chat-latest": [undefined, undefined, undefined, undefined, undefined, undefined],
    "some-other-model": ["none", "minimal", "low", "medium", "high", "high"],
  }
  for (const [name, row] of Object.entries(rows)) {
    it(`of ${name} is ${row.join(", ")}`, () => {
      expect(levels.map((level) => openAiEffort(name, level))).toEqual(row)
    })
  }
})

describe("Gemini's thinking", () => {
  const rows: Readonly<Record<string, ReadonlyArray<string | number | undefined>>> = {
    "gemini-2.0-flash": [undefined, undefined, undefined, undefined, undefined, undefined],
    "gemini-2.5-flash": [0, 512, 2_048, 8_192, 16_384, 24_576],
    "gemini-2.5-pro": [128, 512, 2_048, 8_192, 16_384, 24_576],
    "gemini-3-flash-preview": ["minimal", "minimal", "low", "medium", "high", "high"],
    "gemini-3-pro-preview": ["low", "low", "low", "high", "high", "high"],
    "gemini-3.1-pro-preview": ["low", "low", "low", "medium", "high", "high"],
    "gemma-3-27b-it": [undefined, undefined, undefined, undefined, undefined, undefined],
  }
  for (const [name, row] of Object.entries(rows)) {
    it(`of ${name} is ${row.join(", ")}`, () => {
      const thinking = levels.map((level) => geminiThinking(name, level))
      expect(
        thinking.map((one) =>
          one === undefined
            ? undefined
            : "thinkingLevel" in one
              ? one.thinkingLevel
              : "thinkingBudget" in one
                ? one.thinkingBudget
                : null,
        ),
      ).toEqual(row)
    })
  }

  it("is shown, and left to the model, without an effort", () => {
    expect(geminiThinking("gemini-3-flash-preview", undefined)).toEqual({ includeThoughts: true })
  })
})

describe("Claude's thinking", () => {
  const budgets = (name: string, answer = 8_192) =>
    levels.map((level) => {
      const thinking = claudeThinking(name, level, answer)
      return thinking?.type === "budget" ? thinking.budgetTokens : thinking
    })

  it("is a budget up to 4.5 that fits beside the answer", () => {
    expect(budgets("claude-sonnet-4-5")).toEqual([undefined, 1_024, 4_096, 8_192, 16_384, 32_000])
    expect(budgets("claude-opus-4-1")).toEqual([undefined, 1_024, 4_096, 8_192, 16_384, 32_000 - 8_192])
    expect(budgets("claude-3-7-sonnet-latest").at(2)).toBe(4_096)
    expect(budgets("claude-3-haiku-20240307")).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })

  it("is adaptive with an effort from 4.6 on", () => {
    const room = { minimal: 1_024, low: 4_096, medium: 8_192, high: 16_384, max: 32_000 }
    const adaptive = (effort: string, asked: keyof typeof room) => ({ type: "adaptive", effort, room: room[asked] })
    const row = [
      adaptive("low", "minimal"),
      adaptive("low", "low"),
      adaptive("medium", "medium"),
      adaptive("high", "high"),
      adaptive("max", "max"),
    ]
    expect(budgets("claude-opus-4-6")).toEqual([{ type: "disabled" }, ...row])
    expect(budgets("claude-opus-5-5")).toEqual([{ type: "disabled" }, ...row])
    expect(budgets("claude-sonnet-4-6").at(-1)).toEqual(adaptive("high", "max"))
  })

  it("is left to the service without an effort", () => {
    expect(claudeThinking("claude-sonnet-4-5", undefined, 8_192)).toBeUndefined()
  })
})
