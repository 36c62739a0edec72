/**
 * Effort levels as each service and model family knows them; the table is in `docs/models.md`. A level that a model does not have
 * becomes the nearest that it has. Pure.
 */
import type { Effort } from "../domain/document.ts"
import { gptVersion, isOpenAiName, isOpenAiReasoning } from "./catalog.ts"

/** OpenAI's words for effort. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max"

/** Models of the GPT-6 generation that can answer without reasoning. */
const withoutReasoning = new Set(["gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"])

/** `reasoning_effort`, or undefined for a model of OpenAI's that does not reason. Other names get the level as it is. */
export const openAiEffort = (name: string, effort: Effort): ReasoningEffort | undefined => {
  const version = gptVersion(name)
  if (!isOpenAiName(name)) return effort === "max" ? "high" : effort
  if (!isOpenAiReasoning(name)) return undefined
  if (version === null) return effort === "none" || effort === "minimal" ? "low" : effort === "max" ? "high" : effort
  if (version.major >= 6) {
    if (effort === "none") return withoutReasoning.has(name) ? "none" : "low"
    return effort === "minimal" ? "low" : effort
  }
  if (version.minor === 0) return effort === "none" ? "minimal" : effort === "max" ? "high" : effort
  if (effort === "minimal") return "low"
  return effort === "max" ? (version.minor >= 2 ? "xhigh" : "high") : effort
}

/** Gemini's thinking: a level from generation 3 on, a budget in tokens for 2.5, nothing before. */
export type GeminiThinking =
  | { readonly thinkingLevel: "minimal" | "low" | "medium" | "high"; readonly includeThoughts: boolean }
  | { readonly thinkingBudget: number; readonly includeThoughts: boolean }
  | { readonly includeThoughts: boolean }

const geminiBudget: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 512,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  max: 24_576,
}

/** Thinking options; undefined for a model that does not think. Without an effort the model decides and its thoughts are shown. */
export const geminiThinking = (name: string, effort: Effort | undefined): GeminiThinking | undefined => {
  if (!name.startsWith("gemini-") || /^gemini-(1|2\.0|2-)/.test(name)) return undefined
  const includeThoughts = effort !== "none"
  if (effort === undefined) return { includeThoughts }
  const pro = /-pro/.test(name)
  if (name.startsWith("gemini-2.5")) {
    // The pro models cannot do without thinking; 128 is their least.
    return { thinkingBudget: pro && effort === "none" ? 128 : geminiBudget[effort], includeThoughts }
  }
  if (effort === "none" || effort === "minimal") return { thinkingLevel: pro ? "low" : "minimal", includeThoughts }
  if (effort === "medium" && name.startsWith("gemini-3-pro")) return { thinkingLevel: "high", includeThoughts }
  return { thinkingLevel: effort === "max" ? "high" : effort, includeThoughts }
}

/** Claude's thinking: adaptive with an effort from 4.6 on, a budget in tokens before, nothing for the oldest. */
export type ClaudeThinking =
  /** `room`: tokens beside the answer's own, since the model's thinking counts as output. */
  | { readonly type: "adaptive"; readonly effort: "low" | "medium" | "high" | "max"; readonly room: number }
  | { readonly type: "budget"; readonly budgetTokens: number }
  | { readonly type: "disabled" }

const claudeBudget: Readonly<Record<Exclude<Effort, "none">, number>> = {
  minimal: 1_024,
  low: 4_096,
  medium: 8_192,
  high: 16_384,
  max: 32_000,
}

/** Whether a Claude model decides itself how much to think (4.6 and later). */
const isAdaptiveClaude = (name: string): boolean =>
  !/claude-(instant|2|3|(opus|sonnet|haiku)-4-(0|1|5|2025))/.test(name)

/** Most tokens of one answer, thinking included. */
const claudeOutput = (name: string) => (/claude-opus-4-(0|1|2025)/.test(name) ? 32_000 : 64_000)

/**
 * Thinking options; undefined leaves the service's default, which is also what a conversation without an effort gets.
 * @param answerTokens Tokens kept for the answer itself; a budget fits beside them.
 */
export const claudeThinking = (
  name: string,
  effort: Effort | undefined,
  answerTokens: number,
): ClaudeThinking | undefined => {
  if (effort === undefined) return undefined
  if (isAdaptiveClaude(name)) {
    if (effort === "none") return { type: "disabled" }
    const level = effort === "minimal" ? "low" : effort
    const room = Math.max(0, Math.min(claudeBudget[effort], claudeOutput(name) - answerTokens))
    return { type: "adaptive", effort: level === "max" && name.includes("sonnet-4-6") ? "high" : level, room }
  }
  if (effort === "none" || /claude-(instant|2|3-(haiku|opus|sonnet|5))/.test(name)) return undefined
  return {
    type: "budget",
    budgetTokens: Math.max(1_024, Math.min(claudeBudget[effort], claudeOutput(name) - answerTokens)),
  }
}
