/**
 * OpenAI: `gpt-*`, `o1*`, `o3*`, `o4*`, `openai/*`, and whatever a compatible server at `SUPER_PI_OPENAI_BASE_URL` serves under the
 * names in `SUPER_PI_OPENAI_MODEL` and the settings. Three dialects:
 *  - Responses, for names in `openaiResponsesModels`;
 *  - Chat Completions as OpenAI speaks it, for OpenAI's own names and where no other server is set;
 *  - Chat Completions as other servers understand it, for any other name at another server.
 */
import type { LanguageModelV3 } from "@ai-sdk/provider"
import type { Effort } from "../../domain/document.ts"
import { validityRules } from "../../domain/validity.ts"
import { AuthCommand } from "../auth-command.ts"
import { isOpenAiName, isOpenAiReasoning, modelFacts } from "../catalog.ts"
import { openAiEffort } from "../effort.ts"
import type { ModelProvider } from "../model.ts"
import { type AiSdkSetup, aiSdkProvider } from "../sdk/provider.ts"
import { type Env, envValue, type ModelSettings } from "../settings.ts"

const defaultModels = ["gpt-6-sol", "gpt-6-astra", "gpt-6-luna", "gpt-5.6-sol", "gpt-5-mini"]
const defaultResponsesModels = ["gpt-6-astra"]
const defaultEffort: Readonly<Record<string, string>> = { "gpt-6-sol": "none" }
const officialUrl = "https://api.openai.com/v1"

type Dialect = "responses" | "openai" | "compatible"

/** OpenAI-wide settings read once. */
interface OpenAi {
  readonly baseURL: string
  readonly dialect: (name: string) => Dialect
  /** The configured `reasoning_effort` of a model, sent as it is. */
  readonly effort: Readonly<Record<string, string>>
}

const readSettings = (env: Env, settings: ModelSettings): OpenAi => {
  const own = envValue(env, "SUPER_PI_OPENAI_BASE_URL") ?? settings.openaiBaseUrl
  const responses = new Set(settings.openaiResponsesModels ?? defaultResponsesModels)
  return {
    baseURL: (own ?? officialUrl).replace(/\/+$/, ""),
    dialect: (name) =>
      responses.has(name) ? "responses" : own === undefined || isOpenAiName(name) ? "openai" : "compatible",
    effort: settings.openaiReasoningEffort ?? defaultEffort,
  }
}

const create =
  ({ baseURL, dialect }: OpenAi) =>
  async (setup: AiSdkSetup, name: string): Promise<LanguageModelV3> => {
    const kind = dialect(name)
    if (kind === "compatible") {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
      return createOpenAICompatible({ ...setup, baseURL, name: "openai", includeUsage: true }).languageModel(name)
    }
    const openai = (await import("@ai-sdk/openai")).createOpenAI({ ...setup, baseURL })
    return kind === "responses" ? openai.responses(name) : openai.chat(name)
  }

/** Options of one request: effort, cache key, and for Responses that the service keeps nothing. */
const requestOptions = (
  { dialect, effort: configured }: OpenAi,
  settings: ModelSettings,
  name: string,
  wanted: Effort | undefined,
  sessionId: string | undefined,
) => {
  const kind = dialect(name)
  const reasoningEffort =
    (wanted === undefined ? undefined : openAiEffort(name, wanted)) ??
    configured[name] ??
    (settings.effort === undefined ? undefined : openAiEffort(name, settings.effort))
  const effort = reasoningEffort === undefined ? {} : { reasoningEffort }
  if (kind === "compatible") return effort
  const cache = sessionId === undefined ? {} : { promptCacheKey: sessionId }
  // An alias of a reasoning model does not look like one.
  const alias = !isOpenAiName(name) && (kind === "responses" || reasoningEffort !== undefined)
  const forced = alias ? { forceReasoning: true } : {}
  if (kind === "openai") return { ...effort, ...cache, ...forced }
  const summary = settings.openaiReasoningSummary ?? "auto"
  const reasons = alias || isOpenAiReasoning(name)
  return {
    ...effort,
    ...cache,
    ...forced,
    store: false,
    ...(reasons && summary !== "none" && reasoningEffort !== "none" ? { reasoningSummary: summary } : {}),
  }
}

/** Whether a reasoning item can be sent back: without its encrypted content the service would have to know it. */
const hasEncryptedContent = (meta: unknown): boolean => {
  const fields = (meta as { openai?: { reasoningEncryptedContent?: unknown } } | undefined)?.openai
  return typeof fields?.reasoningEncryptedContent === "string"
}

export const openaiProvider = (env: Env, settings: ModelSettings): ModelProvider => {
  const openai = readSettings(env, settings)
  const apiKey = envValue(env, "OPENAI_API_KEY")
  const command = envValue(env, "SUPER_PI_OPENAI_AUTH_COMMAND")
  const chosen = envValue(env, "SUPER_PI_OPENAI_MODEL")?.replace(/^openai\//, "")
  const listed = settings.openaiModels ?? defaultModels
  const models = chosen === undefined ? listed : [chosen, ...listed.filter((name) => name !== chosen)]
  const named = new Set([...models, ...(settings.openaiResponsesModels ?? defaultResponsesModels)])
  return aiSdkProvider({
    id: "openai",
    variables: ["OPENAI_API_KEY", "SUPER_PI_OPENAI_AUTH_COMMAND"],
    apiKey,
    tokens:
      apiKey !== undefined || command === undefined
        ? undefined
        : new AuthCommand({
            command,
            env,
            timeoutMs: settings.openaiAuthTimeoutMs ?? 10_000,
            cacheTtlMs: settings.openaiAuthCacheTtlMs ?? 60_000,
            now: Date.now,
          }),
    models,
    names: (name) => /^(gpt-|o[134])/.test(name) || named.has(name),
    idleMs: settings.streamIdleTimeoutMs,
    info: (name) => modelFacts("openai", name, settings),
    rules: (name) => (openai.dialect(name) === "compatible" ? validityRules.strict : validityRules.lenient),
    traits: (name) => {
      const kind = openai.dialect(name)
      return {
        imagesInResults: kind === "responses",
        systemChanges: kind === "compatible" ? "note" : "system",
        lenientTools: kind === "responses",
        callIdLength: kind === "responses" ? 64 : 40,
        // Chat Completions takes no reasoning back.
        replays: (part) => kind === "responses" && hasEncryptedContent(part.meta),
      }
    },
    create: create(openai),
    call: ({ name, effort, sessionId }) => {
      const maxOutputTokens = settings.overrides?.[`openai/${name}`]?.maxOutputTokens ?? settings.openaiMaxTokens
      const options = requestOptions(openai, settings, name, effort, sessionId)
      return {
        ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
        ...(Object.keys(options).length === 0 ? {} : { providerOptions: { openai: options } }),
      }
    },
  })
}
