/**
 * `mcp_config.json`: the MCP servers of a person. What is wrong in it is a line that names the file, the key, and what was expected; the
 * other servers count. Pure.
 */
import { isRecord } from "../../domain/json.ts"
import { jsonFaultAt, lineAndColumn } from "../../domain/json-fault.ts"
import type { McpOAuthClient, McpServer } from "../../domain/mcp.ts"
import { httpUrl } from "../../domain/mcp-check.ts"
import { nearest } from "../../domain/nearest.ts"
import { shown } from "../../domain/shown.ts"

export interface ConfiguredServer {
  readonly server: McpServer
  readonly disabled: boolean
}

export interface McpConfig {
  /** In the order of the file. */
  readonly servers: ReadonlyArray<ConfiguredServer>
  /** One line each. */
  readonly faults: ReadonlyArray<string>
}

const entryKeys = ["command", "args", "env", "cwd", "url", "serverUrl", "headers", "oauth", "type", "disabled"]

const oauthKeys = ["clientId", "clientSecret", "callbackPort"]

/** Names of servers: they are parts of tool names, paths and command lines. */
const serverName = /^[^\s/]{1,100}$/

type Report = (path: string, expected: string, actual: unknown) => null

const textsOf = (path: string, value: unknown, report: Report): Readonly<Record<string, string>> | null => {
  if (!isRecord(value)) return report(path, "an object of texts", value)
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") return report(`${path}.${key}`, "a string", text)
  }
  return value as Readonly<Record<string, string>> // each was looked at
}

const oauthOf = (path: string, value: unknown, report: Report): McpOAuthClient | null => {
  if (!isRecord(value)) return report(path, "an object", value)
  const { callbackPort, clientId, clientSecret } = value
  if (typeof clientId !== "string" || clientId === "") return report(`${path}.clientId`, "a client id", clientId)
  if (clientSecret !== undefined && (typeof clientSecret !== "string" || clientSecret === "")) {
    return report(`${path}.clientSecret`, "a secret", clientSecret)
  }
  const port = callbackPort === undefined ? 1 : callbackPort
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535) {
    return report(`${path}.callbackPort`, "a port from 1 to 65535", callbackPort)
  }
  return {
    clientId,
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(callbackPort === undefined ? {} : { callbackPort: port }),
  }
}

const entryOf = (name: string, value: unknown, report: Report): ConfiguredServer | null => {
  const path = `mcpServers.${name}`
  if (!serverName.test(name)) return report(path, "a name of 1 to 100 characters without blanks and slashes", name)
  if (!isRecord(value)) return report(path, "an object", value)
  const { args = [], command, cwd, disabled = false, env, headers, oauth, type, url = value.serverUrl } = value
  if (typeof disabled !== "boolean") return report(`${path}.disabled`, "true or false", disabled)
  if (command !== undefined) {
    if (typeof command !== "string" || command.trim() === "") return report(`${path}.command`, "a command", command)
    if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string")) {
      return report(`${path}.args`, "an array of strings", args)
    }
    if (cwd !== undefined && typeof cwd !== "string") return report(`${path}.cwd`, "a directory", cwd)
    const texts = env === undefined ? {} : textsOf(`${path}.env`, env, report)
    if (texts === null) return null
    const server: McpServer = {
      name,
      transport: "stdio",
      command,
      args: args.map(String),
      env: texts,
      ...(cwd === undefined ? {} : { cwd }),
    }
    return { server, disabled }
  }
  if (url === undefined) return report(path, 'a "command" or a "url"', Object.keys(value).join(", ") || "neither")
  if (typeof url !== "string" || httpUrl(url) === null) {
    return report(`${path}.url`, "an absolute http or https URL", url)
  }
  const texts = headers === undefined ? {} : textsOf(`${path}.headers`, headers, report)
  if (texts === null) return null
  const client = oauth === undefined ? undefined : oauthOf(`${path}.oauth`, oauth, report)
  if (client === null) return null
  const transport = type === "sse" ? "sse" : "http"
  return {
    server: { name, transport, url, headers: texts, ...(client === undefined ? {} : { oauth: client }) },
    disabled,
  }
}

/** What the text of a configuration file means. */
export const readMcpConfig = (text: string, file: string): McpConfig => {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text
  if (source.trim() === "") return { servers: [], faults: [] }
  const fault = jsonFaultAt(source)
  if (fault !== null) {
    const { column, line } = lineAndColumn(source, fault)
    return { servers: [], faults: [`${file}:${line}:${column}: expected JSON; no server of the file is started`] }
  }
  const faults: Array<string> = []
  const report: Report = (path, expected, actual) => {
    faults.push(`${file}: ${path}: expected ${expected}, got ${shown(actual, "…")}; the server is not started`)
    return null
  }
  const unknown = (path: string, key: string, known: ReadonlyArray<string>) =>
    faults.push(`${file}: unknown key "${path}${key}"; did you mean "${path}${nearest(key, known) ?? ""}"?`)
  const value: unknown = JSON.parse(source)
  const list = isRecord(value) ? (value.mcpServers ?? {}) : value
  if (!isRecord(value) || !isRecord(list)) {
    const path = isRecord(value) ? "mcpServers: " : ""
    faults.push(`${file}: ${path}expected a JSON object, got ${shown(list, "…")}; no server of the file is started`)
    return { servers: [], faults }
  }
  for (const key of Object.keys(value)) if (key !== "mcpServers") unknown("", key, ["mcpServers"])
  const servers = Object.entries(list).flatMap(([name, entry]) => {
    if (isRecord(entry)) {
      for (const key of Object.keys(entry)) if (!entryKeys.includes(key)) unknown(`mcpServers.${name}.`, key, entryKeys)
      for (const key of Object.keys(isRecord(entry.oauth) ? entry.oauth : {})) {
        if (!oauthKeys.includes(key)) unknown(`mcpServers.${name}.oauth.`, key, oauthKeys)
      }
    }
    return entryOf(name, entry, report) ?? []
  })
  return { servers, faults }
}
