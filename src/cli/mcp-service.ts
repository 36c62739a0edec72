/**
 * What the MCP server is given by the command line and by an application: the node, its tools, and what the settings say.
 */
import { realpathSync } from "node:fs"
import { homedir } from "node:os"
import { Effect } from "effect"
import type { McpServeSettings } from "../domain/mcp-serve-settings.ts"
import type { PluginPlaces } from "../harness/plugin.ts"
import type { McpService } from "../protocols/mcp/server/connection.ts"
import type { ProtocolService } from "../protocols/service.ts"
import { pluginPlaces } from "./paths.ts"
import type { NodeOptions } from "./ports.ts"

/** The tools that clients may call directly, in the order in which they are listed. */
const direct = ["read", "write", "edit", "bash", "grep", "find", "ls"]

/** What is known of the node beside its sessions. */
export interface McpNode {
  readonly settings: McpServeSettings | undefined
  /** The workspace of what clients start; null: the node's. */
  readonly cwd: string | null
  /** Where rules of the person are; null: that is not known. */
  readonly places: PluginPlaces | null
}

/** The node of a command. */
export const mcpNodeOf = ({ cwd, env, settings }: NodeOptions): McpNode => ({
  settings: settings.mcp,
  cwd,
  places: pluginPlaces({ cwd, env, home: homedir(), platform: process.platform }, {}, settings.discoveryRoots),
})

/** The directory itself, whatever links lead to it. */
const real = (directory: string): string => {
  try {
    return directory === "" ? "" : realpathSync(directory)
  } catch {
    return directory
  }
}

const rulesIn = (places: PluginPlaces) => (root: string) =>
  Effect.flatMap(
    Effect.promise(() => import("../harness/plugins/rules.ts")),
    ({ rulesFor }) => rulesFor(real(root), places),
  )

export const mcpServiceOf = (service: ProtocolService, node: McpNode): Effect.Effect<McpService> =>
  Effect.map(
    Effect.promise(() => Promise.all([import("../tools/builtin-tools.ts"), import("../harness/builtin/index.ts")])),
    ([{ BuiltinTools }, { harnessAliases }]) => ({
      service,
      tools: direct.flatMap((name) => {
        const tool = BuiltinTools.list.find(({ spec }) => spec.name === name)
        return tool === undefined ? [] : [{ spec: tool.spec, effects: tool.effects, replay: tool.replay }]
      }),
      harness: node.settings?.harness ?? null,
      cwd: node.cwd,
      aliases: harnessAliases,
      rules: node.places === null ? null : rulesIn(node.places),
    }),
  )
