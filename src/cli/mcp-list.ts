/**
 * `super-pi mcp list`: the MCP servers as the running node has them; without one each is connected to, asked for its tools, and left again.
 */
import { Effect } from "effect"
import type { ConfiguredServer } from "../actors/mcp/config.ts"
import { ConnectError, type Connection } from "../actors/mcp/connection.ts"
import { toolName } from "../actors/mcp/names.ts"
import { resolveServer } from "../actors/mcp/placeholders.ts"
import { tokenFiles } from "../actors/mcp/tokens.ts"
import type { McpServerView, McpState } from "../domain/mcp.ts"
import { serverTarget } from "../domain/mcp-check.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode, messageOf } from "./exit.ts"
import { loadMcpConfig, mcpConfigFile } from "./mcp-config.ts"
import { attachSessions } from "./node.ts"
import * as option from "./options.ts"
import { version } from "./package.ts"
import type { Paths } from "./paths.ts"
import { runCommand } from "./runtime.ts"
import { loadSettings } from "./settings.ts"

const states: Readonly<Record<string, McpState>> = {
  login: "needs_login",
  misconfigured: "failed",
  unreachable: "failed",
}

const probe = async (
  { disabled, server }: ConfiguredServer,
  paths: Paths,
  startupMs: number,
): Promise<McpServerView> => {
  const base = {
    name: server.name,
    conversation_id: null,
    transport: server.transport,
    target: serverTarget(server),
    server: null,
    protocol_version: null,
    tools: [],
    restarts: 0,
  }
  const resolved = resolveServer(server, process.env)
  if (disabled) return { ...base, state: "disabled", detail: null }
  if ("problem" in resolved) return { ...base, state: "failed", detail: resolved.problem }
  let connection: Connection | null = null
  try {
    const { openConnection } = await import("../actors/mcp/open.ts")
    connection = await openConnection({
      server: resolved,
      root: process.cwd(),
      env: process.env,
      startupMs,
      signal: new AbortController().signal,
      tokens: tokenFiles(paths.dataDir),
      version: version(),
      onTools: () => undefined,
      onLost: () => undefined,
      log: () => undefined,
    })
    const { protocolVersion, server: name, tools } = connection
    return {
      ...base,
      state: "ready",
      detail: null,
      server: name,
      protocol_version: protocolVersion,
      tools: tools.map((tool) => toolName(server.name, tool.name)),
    }
  } catch (error) {
    const problem = error instanceof ConnectError ? error.problem : "unreachable"
    return { ...base, state: states[problem] ?? "failed", detail: messageOf(error) }
  } finally {
    await connection?.close()
  }
}

const linesOf = (view: McpServerView): ReadonlyArray<string> => {
  const { detail, name, restarts, server, state, target, tools, transport } = view
  const about = [server, restarts > 0 ? `${restarts} restarts` : null].filter((one) => one !== null).join(", ")
  const hint = state === "needs_login" ? `; log in with: super-pi mcp login ${name}` : ""
  const why = detail === null ? "" : `: ${detail}`
  return [
    oneLine(`${name}  ${state.replace("_", " ")}${why}${hint}`),
    `  ${oneLine(`${transport} ${target}${about === "" ? "" : ` (${about})`}`)}`,
    ...tools.map((tool) => `  ${oneLine(tool)}`),
  ]
}

export const main = async (invocation: Invocation): Promise<number> => {
  const paths = pathsOf(invocation)
  const { faults, servers } = loadMcpConfig(mcpConfigFile(paths.configDir))
  const { settings } = loadSettings(paths.settingsFile)
  for (const fault of faults) process.stderr.write(`super-pi: warning: ${oneLine(fault)}\n`)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* attachSessions(paths, "super-pi mcp list")
      const startupMs = settings.mcpStartupTimeoutMs ?? 10_000
      const views =
        sessions === null
          ? yield* Effect.forEach(servers, (one) => Effect.promise(() => probe(one, paths, startupMs)), {
              concurrency: 4,
            })
          : yield* sessions.mcpServers({ conversationId: null })
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify(views)}\n`)
        return ExitCode.ok
      }
      const none = `no MCP server is configured in ${mcpConfigFile(paths.configDir)}; add one with: super-pi mcp add NAME COMMAND`
      const lines = views.flatMap(linesOf)
      process.stdout.write(`${(lines.length === 0 ? [none] : lines).join("\n")}\n`)
      return ExitCode.ok
    }),
  )
}
