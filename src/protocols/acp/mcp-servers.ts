/**
 * MCP servers that an editor hands over, as a conversation takes them. Pure; their own faults are found where they are added.
 */
import type { McpServer as Given } from "@agentclientprotocol/sdk"
import type { McpServer } from "../../domain/mcp.ts"

const texts = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>): Record<string, string> =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))

/** `cwd` is the session's directory: where a server's process runs. */
export const mcpServers = (given: ReadonlyArray<Given>, cwd: string): ReadonlyArray<McpServer> =>
  given.map((server): McpServer => {
    const { name } = server
    if ("type" in server) return { name, transport: server.type, url: server.url, headers: texts(server.headers) }
    return { name, transport: "stdio", command: server.command, args: server.args, env: texts(server.env), cwd }
  })
