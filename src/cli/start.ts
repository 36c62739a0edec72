/**
 * What `npm start` opens without arguments: the chat where a model was chosen or a provider configured, in the environment or in the settings
 * file; else the demonstration. A configuration that is not whole opens the chat too, which says what is missing.
 */
import { Effect } from "effect"
import { makeModels } from "../models/service.ts"
import { type Env, envValue } from "../models/settings.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { loadSettings, modelSettings, type Settings } from "./settings.ts"

/** Where another service than the usual one is: who names it means to ask it. */
const baseUrls = ["SUPER_PI_OPENAI_BASE_URL", "SUPER_PI_ANTHROPIC_BASE_URL", "SUPER_PI_GEMINI_BASE_URL"]

/** Asks no service and runs no auth command. */
export const meansToChat = async (env: Env, settings: Settings): Promise<boolean> => {
  const { openaiBaseUrl, anthropicBaseUrl, geminiBaseUrl } = settings.models ?? {}
  if (baseUrls.some((name) => envValue(env, name) !== undefined)) return true
  if ([openaiBaseUrl, anthropicBaseUrl, geminiBaseUrl].some((url) => url !== undefined)) return true
  return Effect.runPromise(Effect.isSuccess(makeModels({ env, settings: modelSettings(settings) }).defaultModel))
}

export const main = async (invocation: Invocation): Promise<number> => {
  const { settings, warnings } = loadSettings(pathsOf(invocation).settingsFile)
  if (await meansToChat(process.env, settings)) {
    const { main: chat } = await import("./chat.ts")
    return chat({ ...invocation, path: ["super-pi", "chat"] })
  }
  // The chat says them itself.
  for (const warning of warnings) process.stderr.write(`super-pi: warning: ${warning}\n`)
  return (await import("./demo.ts")).main()
}
