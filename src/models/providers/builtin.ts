/**
 * The built-in providers in their order of precedence: the first that handles a name serves it, the first that has a key gives the
 * default model.
 */
import { directProvider } from "../direct/provider.ts"
import type { ModelProvider } from "../model.ts"
import { type Env, envValue, type ModelSettings } from "../settings.ts"
import { anthropicProvider } from "./anthropic.ts"
import { geminiProvider } from "./gemini.ts"
import { mockProvider } from "./mock.ts"
import { openaiProvider } from "./openai.ts"
import { scriptProvider } from "./script.ts"
import type { Script } from "./script-file.ts"

export const builtinProviders = (
  env: Env,
  settings: ModelSettings,
  script: Script | undefined,
): ReadonlyArray<ModelProvider> => [
  mockProvider,
  directProvider,
  scriptProvider(script ?? envValue(env, "SUPER_PI_SCRIPT") ?? null),
  geminiProvider(env, settings),
  anthropicProvider(env, settings),
  openaiProvider(env, settings),
]
