/**
 * Checks of settings and providers. Says which variables are set, never what they hold.
 */
import { accessSync, constants, existsSync, statSync } from "node:fs"
import { Effect } from "effect"
import { makeModels } from "../models/service.ts"
import { type Env, envValue } from "../models/settings.ts"
import { type Check, fail, ok, warn } from "./check.ts"
import { type LoadedSettings, modelSettings, type Settings } from "./settings.ts"

export const checkSettings = (file: string, { warnings }: LoadedSettings): ReadonlyArray<Check> => {
  if (warnings.length > 0) return warnings.map((warning) => warn("settings", warning, "repair the file"))
  return [ok("settings", existsSync(file) ? file : `${file} (none, all defaults)`)]
}

const service = (env: Env, settings: Settings) => makeModels({ env, settings: modelSettings(settings) })

export const checkKeys = (env: Env, settings: Settings): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.gen(function* () {
    const providers = service(env, settings).providers.filter((provider) => provider.onlyByName !== true)
    const rows = yield* Effect.forEach(providers, (provider) =>
      Effect.map(provider.configured, (configured) => {
        const set = provider.variables.filter((name) => envValue(env, name) !== undefined)
        return { provider, configured, set }
      }),
    )
    const any = rows.some((row) => row.configured)
    return rows.map(({ provider, configured, set }) => {
      const name = `key ${provider.id}`
      const detail = `${set.length === 0 ? "not set" : `${set.join(", ")} set`}`
      if (configured || any) return ok(name, detail)
      return warn(name, detail, `to use it, set ${provider.variables.join(" or ")}`)
    })
  })

export const checkDefaultModel = (env: Env, settings: Settings): Effect.Effect<ReadonlyArray<Check>> => {
  const models = service(env, settings)
  return models.defaultModel.pipe(
    Effect.flatMap(models.resolve),
    Effect.map((info) => [ok("model", `${info.id} by default`)]),
    Effect.catchTags({
      ModelNotFound: (error) =>
        Effect.succeed([fail("model", error.message, "set SUPER_PI_DEFAULT_MODEL to one of them")]),
      ProviderNotConfigured: (error) => Effect.succeed([warn("model", error.message, "run and chat need a model")]),
    }),
  )
}

export const checkAuthCommand = (env: Env): ReadonlyArray<Check> => {
  const command = envValue(env, "SUPER_PI_OPENAI_AUTH_COMMAND")
  if (command === undefined) return []
  const name = "auth command"
  if (!existsSync(command)) return [fail(name, `${command} does not exist`, "correct SUPER_PI_OPENAI_AUTH_COMMAND")]
  if (!statSync(command).isFile())
    return [fail(name, `${command} is not a file`, "correct SUPER_PI_OPENAI_AUTH_COMMAND")]
  try {
    accessSync(command, constants.X_OK)
  } catch {
    return [fail(name, `${command} is not executable`, `chmod u+x ${command}`)]
  }
  if (envValue(env, "OPENAI_API_KEY") !== undefined) {
    return [warn(name, `${command} is not used`, "OPENAI_API_KEY comes first; unset it to use the command")]
  }
  return [ok(name, command)]
}
