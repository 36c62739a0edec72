/**
 * `super-pi mcp login|logout NAME`: a login at an MCP server by OAuth, kept in the data directory.
 */
import { spawn } from "node:child_process"
import { Effect } from "effect"
import { resolveServer } from "../actors/mcp/placeholders.ts"
import { tokenFiles } from "../actors/mcp/tokens.ts"
import type { McpHttpServer } from "../domain/mcp.ts"
import { nearest } from "../domain/nearest.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { tellNode } from "./mcp-change.ts"
import { loadMcpConfig, mcpConfigFile } from "./mcp-config.ts"
import * as option from "./options.ts"
import { version } from "./package.ts"
import { ensureDataDir, type Paths } from "./paths.ts"
import { runCommand } from "./runtime.ts"

/** How long a person may take, in ms. */
const patienceMs = 5 * 60_000

const serverOf = (name: string, paths: Paths): McpHttpServer => {
  const { servers } = loadMcpConfig(mcpConfigFile(paths.configDir))
  const found = servers.find(({ server }) => server.name === name)?.server
  if (found === undefined) {
    const near = nearest(
      name,
      servers.map(({ server }) => server.name),
    )
    throw new CommandFailure(
      `there is no MCP server "${name}"${near === undefined || near === null ? "" : `; did you mean "${near}"?`}`,
    )
  }
  const resolved = resolveServer(found, process.env)
  if ("problem" in resolved) throw new CommandFailure(`MCP server "${name}": ${resolved.problem}`)
  if (resolved.transport === "stdio") {
    throw new CommandFailure(`MCP server "${name}" is a command; only servers behind a URL have a login`)
  }
  return resolved
}

/** Opens the address in the person's browser, as far as there is one. */
const openBrowser = (url: URL): void => {
  const [program, ...args] =
    process.platform === "darwin" ? ["open"] : process.platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"]
  const child = spawn(program ?? "xdg-open", [...args, url.href], { detached: true, stdio: "ignore" })
  child.on("error", () => undefined)
  child.unref()
}

export const main = async (invocation: Invocation): Promise<number> => {
  const [name = ""] = invocation.words
  const paths = pathsOf(invocation)
  ensureDataDir(paths)
  const server = serverOf(name, paths)
  const tokens = tokenFiles(paths.dataDir)
  const browses = process.stdout.isTTY === true && invocation.get(option.noBrowser) !== true
  return runCommand(() =>
    Effect.gen(function* () {
      if (invocation.path.at(-1) === "logout") {
        yield* Effect.promise(() => tokens.write(server.name, server.url, null))
        yield* tellNode(paths, name)
        process.stdout.write(`${name}: the login is forgotten\n`)
        return ExitCode.ok
      }
      const outcome = yield* Effect.tryPromise({
        try: async (signal) => {
          const { login } = await import("../actors/mcp/login.ts")
          return login({
            server,
            tokens,
            version: version(),
            open: (url) => {
              process.stdout.write(`Open this address to log in at ${name}:\n${url.href}\n`)
              if (browses) openBrowser(url)
            },
            signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
          })
        },
        catch: (error) =>
          new CommandFailure(`the login at ${name} failed: ${error instanceof Error ? error.message : error}`),
      })
      if (outcome === "unneeded") {
        process.stdout.write(`${name} wants no login\n`)
        return ExitCode.ok
      }
      const view = yield* tellNode(paths, name)
      process.stdout.write(`${name}: logged in${view === null ? "" : `, ${view.state.replace("_", " ")}`}\n`)
      return ExitCode.ok
    }),
  )
}
