/**
 * `super-pi models`: what the configured providers serve.
 */
import { Effect } from "effect"
import type { ModelInfo } from "../models/model.ts"
import { makeModels } from "../models/service.ts"
import { count } from "../protocols/terminal/format.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { loadSettings, modelSettings } from "./settings.ts"

/** One line per model. Pure. */
export const modelLines = (models: ReadonlyArray<ModelInfo>): Array<string> => {
  const width = Math.max(0, ...models.map((model) => model.id.length))
  return models.map((model) => {
    const facts = [
      model.contextWindow === null ? "" : `${count(model.contextWindow)} tokens`,
      model.thinking ? "thinking" : "",
      model.images ? "images" : "",
      model.isDefault ? "default" : "",
    ].filter((fact) => fact !== "")
    return `${model.isDefault ? "*" : " "} ${model.id.padEnd(width)}  ${facts.join(", ")}`.trimEnd()
  })
}

export const main = async (invocation: Invocation): Promise<number> => {
  const { settings, warnings } = loadSettings(pathsOf(invocation).settingsFile)
  for (const warning of warnings) process.stderr.write(`super-pi: warning: ${warning}\n`)
  return runCommand(() =>
    Effect.gen(function* () {
      const service = makeModels({ env: process.env, settings: modelSettings(settings) })
      const models = yield* service.list
      if (invocation.get(option.json) === true) process.stdout.write(`${JSON.stringify(models)}\n`)
      else for (const line of modelLines(models)) process.stdout.write(`${line}\n`)
      if (models.length === 0) {
        const variables = service.providers.filter((one) => one.onlyByName !== true).flatMap((one) => one.variables)
        process.stderr.write(`super-pi: no provider is configured; set one of ${[...new Set(variables)].join(", ")}\n`)
      }
      return ExitCode.ok
    }),
  )
}
