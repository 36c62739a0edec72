/**
 * Gemini: `gemini-*` and `google/*`, with the key in `GEMINI_API_KEY`.
 */
import { modelFacts } from "../catalog.ts"
import { geminiThinking } from "../effort.ts"
import type { ModelProvider } from "../model.ts"
import { aiSdkProvider } from "../sdk/provider.ts"
import { type Env, envValue, type ModelSettings } from "../settings.ts"

const defaultModels = [
  "gemini-3-flash-preview",
  "gemini-3.1-pro-preview",
  "gemini-3.1-flash-lite-preview",
  "gemini-2.5-pro",
  "gemini-2.5-flash",
  "gemini-2.5-flash-lite",
]

/** Generations before 3 take no images inside a tool result. */
const imagesInResults = (name: string) => !/^gemini-[12]/.test(name)

export const geminiProvider = (env: Env, settings: ModelSettings): ModelProvider => {
  const baseURL =
    envValue(env, "SUPER_PI_GEMINI_BASE_URL") ??
    settings.geminiBaseUrl ??
    "https://generativelanguage.googleapis.com/v1beta"
  return aiSdkProvider({
    id: "google",
    variables: ["GEMINI_API_KEY"],
    apiKey: envValue(env, "GEMINI_API_KEY"),
    models: settings.geminiModels ?? defaultModels,
    names: (name) => name.startsWith("gemini-"),
    idleMs: settings.streamIdleTimeoutMs,
    info: (name) => modelFacts("google", name, settings),
    traits: (name) => ({ imagesInResults: imagesInResults(name), replays: (part) => part.text !== "" }),
    create: async (setup, name) =>
      (await import("@ai-sdk/google")).createGoogleGenerativeAI({ ...setup, baseURL }).languageModel(name),
    call: ({ name, effort = settings.effort }) => {
      const thinkingConfig = geminiThinking(name, effort)
      const maxOutputTokens = settings.overrides?.[`google/${name}`]?.maxOutputTokens
      return {
        ...(thinkingConfig === undefined ? {} : { providerOptions: { google: { thinkingConfig } } }),
        ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      }
    },
  })
}
