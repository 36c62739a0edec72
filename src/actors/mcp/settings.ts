/**
 * How a node uses MCP servers.
 */
import { Context } from "effect"
import type { ConfiguredServer } from "./config.ts"
import type { TokenStore } from "./tokens.ts"

export interface McpSettings {
  /** The servers of the node, read anew when one of them is restarted. */
  readonly servers: () => ReadonlyArray<ConfiguredServer>
  /** `direct`: all tools are offered; `deferred`: those that `tool_search` has found. */
  readonly exposure: "direct" | "deferred"
  /** How long the start of a server may take, and a call waits for one that is away, in ms. */
  readonly startupMs: number
  /** How long a call may take without a sign of life, in ms. */
  readonly callMs: number
  /** The node's environment: what placeholders stand for. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where the node's servers work. Absolute. */
  readonly root: string
  /** Logins; null: none are kept. */
  readonly tokens: TokenStore | null
  readonly version: string
}

/** Absent: the node has no servers of its own, and conversations may bring some along. Null: no server is ever started. */
export class McpConfig extends Context.Tag("super-pi/McpConfig")<McpConfig, McpSettings | null>() {}

export const defaultMcpSettings = {
  exposure: "direct",
  startupMs: 10_000,
  callMs: 60_000,
} as const
