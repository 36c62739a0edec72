/**
 * The check of MCP servers that somebody hands over. Pure.
 */
import { InvalidRequest } from "./failure.ts"
import type { McpServer } from "./mcp.ts"

/** Servers that one conversation may have. */
export const maxConversationServers = 32

const invalid = (path: string, expected: string, actual: string) => new InvalidRequest({ path, expected, actual })

/** The absolute http or https URL in a text, or null. */
export const httpUrl = (text: string): URL | null => {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") ? url : null
}

/** The first fault of a list of servers, or null. */
export const serversFault = (servers: ReadonlyArray<McpServer>): InvalidRequest | null => {
  if (servers.length > maxConversationServers) {
    return invalid("servers", `at most ${maxConversationServers}`, String(servers.length))
  }
  const names = new Set<string>()
  for (const [index, server] of servers.entries()) {
    const path = `servers[${index}]`
    if (names.has(server.name)) return invalid(`${path}.name`, "a name of its own", JSON.stringify(server.name))
    names.add(server.name)
    if (server.transport === "stdio") {
      const { cwd } = server
      if (cwd !== undefined && !cwd.startsWith("/") && !/^[A-Za-z]:[\\/]/.test(cwd)) {
        return invalid(`${path}.cwd`, "an absolute path", JSON.stringify(cwd))
      }
    } else if (httpUrl(server.url) === null) {
      return invalid(`${path}.url`, "an absolute http or https URL", JSON.stringify(server.url))
    }
  }
  return null
}

/** Where a server is, without what may be a secret: its command line, or its address without a query. */
export const serverTarget = (server: McpServer): string => {
  if (server.transport === "stdio") return [server.command, ...(server.args ?? [])].join(" ")
  if (!URL.canParse(server.url)) return "an address that cannot be read"
  const { host, pathname, protocol } = new URL(server.url)
  return `${protocol}//${host}${pathname}`
}
