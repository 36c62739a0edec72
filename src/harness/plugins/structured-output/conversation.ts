/**
 * The plugins of a conversation whose answers are wanted as values (`pi.agent.outputSchema`): StructuredOutput is among them with that schema,
 * whatever schema its harness gives it, or none.
 */
import { Schema } from "effect"
import type { JsonObject } from "../../../domain/json.ts"
import { anyPlugin } from "../../define.ts"
import type { ActivePlugin } from "../../options.ts"
import { structuredOutput } from "../structured-output.ts"

const plugin = anyPlugin(structuredOutput)

export const withOutputSchema = (
  active: ReadonlyArray<ActivePlugin>,
  schema: JsonObject,
): ReadonlyArray<ActivePlugin> => {
  const at = active.findIndex((one) => one.plugin.name === plugin.name)
  const before = active[at]
  if (before !== undefined) return active.with(at, { ...before, options: { ...before.options, schema } })
  return [...active, { plugin, options: Schema.decodeSync(plugin.options)({ schema }) }]
}
