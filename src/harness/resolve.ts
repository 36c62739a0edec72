/**
 * What a conversation runs with: each choice comes from the caller, else the harness, else the settings, else a fallback; a ceiling of the
 * harness is lifted by none of them. Pure.
 */
import type { AgentDocument, ExecutionMode } from "../domain/document.ts"
import { isJsonObject } from "../domain/json.ts"
import { belowCeiling } from "../domain/subagent.ts"
import type { Harness, HarnessCapabilities, ToolLoadout } from "./harness.ts"
import { capped, modesUpTo } from "./modes.ts"
import { nameOf } from "./options.ts"

/** Whether a loadout offers a tool. */
const offers = (loadout: ToolLoadout | undefined, name: string): boolean => {
  if (loadout === undefined || loadout === "all") return true
  return "only" in loadout ? loadout.only.includes(name) : !loadout.except.includes(name)
}

/**
 * The choices in force. What nobody chose stays absent and follows the node. `mode` is always there. `tools` are names of `available`
 * where the harness or the caller offers less than all.
 */
export const effectiveAgent = (
  agent: AgentDocument,
  harness: Harness | null,
  defaultMode: ExecutionMode,
  available: ReadonlyArray<string>,
): AgentDocument & { readonly mode: ExecutionMode } => {
  const chosen = belowCeiling(agent, agent.mode ?? harness?.mode ?? defaultMode)
  if (harness === null) return { ...agent, mode: chosen }
  const mode = capped(chosen, harness.maxMode)
  const all = harness.tools === undefined || harness.tools === "all"
  const tools =
    all && agent.tools === undefined
      ? undefined
      : available.filter((name) => offers(harness.tools, name) && (agent.tools?.includes(name) ?? true))
  const { effort = harness.effort, model = harness.model, workspace = harness.workspace } = agent
  return Object.assign(
    { ...agent, mode },
    effort === undefined ? null : { effort },
    model === undefined ? null : { model },
    workspace === undefined ? null : { workspace },
    tools === undefined ? null : { tools },
  )
}

/** What a harness can do, for machines. `tools` are the names of all tools that it could offer. */
export const capabilitiesOf = (harness: Harness, tools: ReadonlyArray<string>): HarnessCapabilities => {
  const workspace = harness.workspace ?? { kind: "local" as const }
  return {
    id: harness.id,
    name: harness.name,
    description: harness.description,
    plugins: harness.plugins.map(nameOf),
    tools: tools.filter((name) => offers(harness.tools, name)),
    workspace: workspace.kind,
    modes: modesUpTo(harness.maxMode),
  }
}

/** Whether a value of `pi.agent.plugins` brings options along. */
export const bringsOptions = (spec: unknown): boolean =>
  Array.isArray(spec) && isJsonObject(spec[1]) && Object.keys(spec[1]).length > 0
