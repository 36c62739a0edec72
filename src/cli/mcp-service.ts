/**
 * What the MCP server is given by the command line: the node, its tools, and what the settings say.
 */
import { Effect } from "effect"
import type { McpService } from "../protocols/mcp/server/connection.ts"
import type { ProtocolService } from "../protocols/service.ts"
import type { NodeOptions } from "./ports.ts"

/** The tools that clients may call directly, in the order in which they are listed. */
const direct = ["read", "write", "edit", "bash", "grep", "find", "ls"]

export const mcpServiceOf = (service: ProtocolService, options: NodeOptions): Effect.Effect<McpService> =>
  Effect.map(
    Effect.promise(() => Promise.all([import("../tools/builtin-tools.ts"), import("../harness/builtin/index.ts")])),
    ([{ BuiltinTools }, { harnessAliases }]) => ({
      service,
      tools: direct.flatMap((name) => {
        const tool = BuiltinTools.list.find(({ spec }) => spec.name === name)
        return tool === undefined ? [] : [{ spec: tool.spec, effects: tool.effects, replay: tool.replay }]
      }),
      harness: options.settings.mcp?.harness ?? null,
      cwd: options.cwd,
      aliases: harnessAliases,
    }),
  )
