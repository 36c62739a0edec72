/**
 * `super-pi mcp add|remove|enable|disable|restart`: the file is changed, then a running node is told.
 */
import { Effect } from "effect"
import { isJsonObject, type JsonObject } from "../domain/json.ts"
import type { McpServerView } from "../domain/mcp.ts"
import { httpUrl } from "../domain/mcp-check.ts"
import { nearest } from "../domain/nearest.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode, usageFailure } from "./exit.ts"
import { changeMcpConfig, loadMcpConfig, mcpConfigFile } from "./mcp-config.ts"
import { attachSessions } from "./node.ts"
import * as option from "./options.ts"
import type { Paths } from "./paths.ts"
import { runCommand } from "./runtime.ts"

const unknown = (name: string, servers: JsonObject): CommandFailure => {
  const names = Object.keys(servers)
  if (names.length === 0) return new CommandFailure(`there is no MCP server "${name}"; none is configured`)
  return new CommandFailure(`there is no MCP server "${name}"; did you mean "${nearest(name, names)}"?`)
}

/** The entry of that name with one field set or taken out. */
const withDisabled = (servers: JsonObject, name: string, disabled: boolean): JsonObject => {
  const entry = servers[name]
  if (!isJsonObject(entry)) throw unknown(name, servers)
  const { disabled: _, ...rest } = entry
  return { ...servers, [name]: disabled ? { ...rest, disabled: true } : rest }
}

const changeOf = (command: string | undefined, words: ReadonlyArray<string>) => {
  const [name = "", target = "", ...args] = words
  return (servers: JsonObject): JsonObject => {
    switch (command) {
      case "add": {
        if (Object.hasOwn(servers, name)) {
          throw new CommandFailure(
            `there is an MCP server "${name}" already; remove it first: super-pi mcp remove ${name}`,
          )
        }
        if (!/^[a-z]+:\/\//i.test(target))
          return { ...servers, [name]: { command: target, ...(args.length === 0 ? {} : { args }) } }
        if (httpUrl(target) === null)
          throw usageFailure(`TARGET: expected a command or an http(s) URL, got "${target}"`)
        if (args.length > 0) throw usageFailure(`a server behind a URL takes no arguments, got "${args.join(" ")}"`)
        return { ...servers, [name]: { url: target } }
      }
      case "remove": {
        if (!Object.hasOwn(servers, name)) throw unknown(name, servers)
        const { [name]: _, ...rest } = servers
        return rest
      }
      case "enable":
        return withDisabled(servers, name, false)
      case "disable":
        return withDisabled(servers, name, true)
      default:
        if (!Object.hasOwn(servers, name)) throw unknown(name, servers)
        return servers
    }
  }
}

const saidOf: Readonly<Record<string, string>> = {
  add: "was added",
  remove: "was removed",
  enable: "is enabled",
  disable: "is disabled",
  restart: "was restarted",
}

/** Tells a running node that a server is not what it was; null where none runs, or where the server is gone. */
export const tellNode = (paths: Paths, name: string) =>
  Effect.gen(function* () {
    const sessions = yield* attachSessions(paths, "super-pi mcp")
    if (sessions === null) return null
    return yield* sessions
      .restartMcpServer({ name, conversationId: null })
      .pipe(Effect.catchTag("NotFound", () => Effect.succeed(null)))
  })

export const main = async (invocation: Invocation): Promise<number> => {
  const command = invocation.path.at(-1) ?? ""
  const [name = ""] = invocation.words
  const paths = pathsOf(invocation)
  const file = mcpConfigFile(paths.configDir)
  if (command !== "restart") changeMcpConfig(file, changeOf(command, invocation.words))
  const fault = loadMcpConfig(file).faults.find((line) => line.includes(`mcpServers.${name}`))
  if (fault !== undefined) process.stderr.write(`super-pi: warning: ${fault}\n`)
  return runCommand(() =>
    Effect.gen(function* () {
      const view: McpServerView | null = yield* tellNode(paths, name)
      if (command === "restart" && view === null) {
        return yield* Effect.fail(new CommandFailure(`no running node has an MCP server "${name}"`))
      }
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify({ name, change: command, server: view })}\n`)
        return ExitCode.ok
      }
      const state = view === null ? "" : `: ${view.state}${view.detail === null ? "" : ` (${view.detail})`}`
      process.stdout.write(`${name} ${saidOf[command] ?? command}${state}\n`)
      return ExitCode.ok
    }),
  )
}
