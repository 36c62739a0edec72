/**
 * The options of commands that serve: the flags are the defaults of conversations that choose nothing themselves.
 */
import type { Invocation } from "./arguments.ts"
import * as option from "./options.ts"
import type { NodeOptions } from "./ports.ts"
import { modelSettings } from "./settings.ts"

export const withDefaults = (options: NodeOptions, invocation: Invocation): NodeOptions => {
  const model = invocation.get(option.model)
  const effort = invocation.get(option.effort)
  const mode = invocation.get(option.mode)
  const { settings } = options
  return {
    ...options,
    ...(mode === undefined ? {} : { mode }),
    env: model === undefined ? options.env : { ...options.env, SUPER_PI_DEFAULT_MODEL: model },
    settings: effort === undefined ? settings : { ...settings, models: { ...modelSettings(settings), effort } },
  }
}
