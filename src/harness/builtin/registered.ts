/**
 * A built-in harness lists its plugins in their order; one that this build does not have is left out.
 */
import type { PluginSpec } from "../plugin.ts"
import { builtinPlugins } from "../plugins/index.ts"

export const registered = (names: ReadonlyArray<string>): ReadonlyArray<PluginSpec> =>
  names.filter((name) => builtinPlugins.some((plugin) => plugin.name === name))
