/**
 * What is known of models by name: windows, images, thinking. Later settings (`overrides`) win. An unknown name is assumed to read
 * text only and its window is unknown; then a service's overflow error decides. Pure.
 */
import type { ModelInfo } from "./model.ts"
import type { ModelSettings } from "./settings.ts"

/** Facts about one model. `contextWindow` counts input tokens. */
export type ModelFacts = Pick<ModelInfo, "contextWindow" | "images" | "thinking">

/** Version of a `gpt-X.Y-variant` name. */
export interface GptVersion {
  readonly major: number
  readonly minor: number
  readonly variant: string
}

/** Reads `gpt-5.2-codex` as 5, 2, `codex`; null for other names. */
export const gptVersion = (name: string): GptVersion | null => {
  const match = /^gpt-(\d+)(?:\.(\d+))?(?:-(.+))?$/.exec(name)
  if (match === null) return null
  return { major: Number(match[1]), minor: Number(match[2] ?? 0), variant: match[3] ?? "" }
}

/** Whether an OpenAI name is a reasoning model: o-series, GPT-5 and later without the chat variants. */
export const isOpenAiReasoning = (name: string): boolean => {
  if (/^o\d/.test(name)) return true
  const version = gptVersion(name)
  return version !== null && version.major >= 5 && !version.variant.startsWith("chat")
}

/** Whether a name belongs to OpenAI's own families, wherever it is served. */
export const isOpenAiName = (name: string): boolean => /^(gpt-\d|chatgpt-|o\d)/.test(name)

const openAi = (name: string): ModelFacts => {
  const version = gptVersion(name)
  const thinking = isOpenAiReasoning(name)
  if (version !== null && version.major >= 5) return { contextWindow: 272_000, images: true, thinking }
  if (/^gpt-4\.1/.test(name)) return { contextWindow: 1_000_000, images: true, thinking }
  if (/^(gpt-4o|gpt-4-turbo|chatgpt-)/.test(name)) return { contextWindow: 128_000, images: true, thinking }
  if (/^gpt-4/.test(name)) return { contextWindow: 8_192, images: false, thinking }
  if (/^gpt-3\.5/.test(name)) return { contextWindow: 16_385, images: false, thinking }
  if (/^o\d/.test(name)) return { contextWindow: 200_000, images: !/^o(1|3)-mini/.test(name), thinking }
  return { contextWindow: null, images: false, thinking }
}

/** Facts by provider id and wire name. */
export const modelFacts = (provider: string, name: string, settings: ModelSettings): ModelFacts => {
  const known: ModelFacts =
    provider === "google"
      ? {
          contextWindow: name.startsWith("gemini-") ? 1_048_576 : null,
          images: name.startsWith("gemini-"),
          thinking: /^gemini-(2\.5|[3-9]|flash|pro)/.test(name),
        }
      : provider === "anthropic"
        ? { contextWindow: 200_000, images: true, thinking: !/claude-(2|instant|3-(haiku|opus|sonnet|5))/.test(name) }
        : openAi(name)
  const { contextWindow, images, thinking } = settings.overrides?.[`${provider}/${name}`] ?? {}
  return {
    contextWindow: contextWindow ?? known.contextWindow,
    images: images ?? known.images,
    thinking: thinking ?? known.thinking,
  }
}
