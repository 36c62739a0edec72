/**
 * Anthropic: `claude-*` and `anthropic/*`, with the key in `ANTHROPIC_API_KEY`; the Messages API.
 */
import type { LanguageModelV3Message, SharedV3ProviderOptions } from "@ai-sdk/provider"
import { modelFacts } from "../catalog.ts"
import { claudeThinking } from "../effort.ts"
import type { ModelProvider } from "../model.ts"
import type { Prompt } from "../sdk/prompt.ts"
import { aiSdkProvider } from "../sdk/provider.ts"
import { type Env, envValue, type ModelSettings } from "../settings.ts"

const defaultModels = ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-4-5", "claude-haiku-4-5"]

const breakpoint: SharedV3ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } }

const marked = (message: LanguageModelV3Message): LanguageModelV3Message => ({
  ...message,
  providerOptions: { ...message.providerOptions, ...breakpoint },
})

/**
 * Places the four cache breakpoints that a request may have: behind the tools, behind the system prompt, where the request before
 * this one ended, and at the end.
 */
const withCacheBreakpoints = (prompt: Prompt): Prompt => {
  const { messages, tools } = prompt
  const last = messages.length - 1
  const answer = messages.findLastIndex(({ role }) => role === "assistant")
  const at = new Set([last, answer - 1])
  return {
    messages: messages.map((message, i) => (message.role === "system" || at.has(i) ? marked(message) : message)),
    tools: tools.map((tool, i) => (i === tools.length - 1 ? { ...tool, providerOptions: breakpoint } : tool)),
  }
}

/**
 * Whether the last answer called tools without thinking first (another model's, or one without thinking). Thinking with a budget
 * cannot start in the middle of such a turn.
 */
const midTurnWithoutThinking = (prompt: Prompt): boolean => {
  const answer = prompt.messages.findLast(({ role }) => role === "assistant")
  if (answer?.role !== "assistant" || prompt.messages.at(-1)?.role !== "tool") return false
  return answer.content[0]?.type !== "reasoning"
}

/** The base of the Messages API: the version is part of it. */
const versioned = (url: string) => (/\/v\d+\/?$/.test(url) ? url : `${url.replace(/\/+$/, "")}/v1`)

export const anthropicProvider = (env: Env, settings: ModelSettings): ModelProvider => {
  const baseURL = versioned(
    envValue(env, "SUPER_PI_ANTHROPIC_BASE_URL") ?? settings.anthropicBaseUrl ?? "https://api.anthropic.com",
  )
  const headers = settings.anthropicVersion === undefined ? {} : { "anthropic-version": settings.anthropicVersion }
  return aiSdkProvider({
    id: "anthropic",
    variables: ["ANTHROPIC_API_KEY"],
    apiKey: envValue(env, "ANTHROPIC_API_KEY"),
    models: settings.anthropicModels ?? defaultModels,
    names: (name) => name.startsWith("claude-"),
    idleMs: settings.streamIdleTimeoutMs,
    info: (name) => modelFacts("anthropic", name, settings),
    traits: () => ({ imagesInResults: true, errorFlag: true, callIdLength: 64 }),
    create: async (setup, name) =>
      (await import("@ai-sdk/anthropic")).createAnthropic({ ...setup, baseURL, headers }).languageModel(name),
    call: ({ name, effort = settings.effort, maxOutputTokens }, prompt) => {
      const answerTokens =
        maxOutputTokens ??
        settings.overrides?.[`anthropic/${name}`]?.maxOutputTokens ??
        settings.anthropicMaxTokens ??
        8_192
      const thinking = claudeThinking(name, effort, answerTokens)
      const anthropic =
        thinking === undefined || (thinking.type === "budget" && midTurnWithoutThinking(prompt))
          ? undefined
          : thinking.type === "adaptive"
            ? { thinking: { type: "adaptive", display: "summarized" }, effort: thinking.effort }
            : thinking.type === "budget"
              ? { thinking: { type: "enabled", budgetTokens: thinking.budgetTokens } }
              : { thinking: { type: "disabled" } }
      return {
        // The SDK adds a budget by itself; what an adaptive model thinks is ours to add.
        maxOutputTokens: answerTokens + (thinking?.type === "adaptive" ? thinking.room : 0),
        prompt: withCacheBreakpoints,
        ...(anthropic === undefined ? {} : { providerOptions: { anthropic } }),
      }
    },
  })
}
