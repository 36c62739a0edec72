/**
 * The configuration file of MCP servers, `mcp_config.json` in the settings directory: reading it, and changing one server of it. What else
 * is in the file stays.
 */
import { randomUUID } from "node:crypto"
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type McpConfig, readMcpConfig } from "../actors/mcp/config.ts"
import { errorCode } from "../domain/error-code.ts"
import { isJsonObject, type JsonObject } from "../domain/json.ts"
import { jsonFaultAt, lineAndColumn } from "../domain/json-fault.ts"
import { makeDirectories } from "../storage/directories.ts"
import { CommandFailure, messageOf } from "./exit.ts"

export const mcpConfigFile = (configDir: string): string => join(configDir, "mcp_config.json")

/** The text of the file; a missing one is empty. */
const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return ""
    throw error
  }
}

/** What the file says. One that cannot be read is a fault. */
export const loadMcpConfig = (file: string): McpConfig => {
  try {
    return readMcpConfig(textOf(file), file)
  } catch (error) {
    return { servers: [], faults: [`${file}: cannot be read (${messageOf(error)}); no MCP server is started`] }
  }
}

/** Changes the entries of the file; `change` gives the new ones. Throws a {@link CommandFailure}, and changes nothing, where the file is broken. */
export const changeMcpConfig = (file: string, change: (servers: JsonObject) => JsonObject): void => {
  const text = textOf(file)
  const source = text.trim() === "" ? "{}" : text.replace(/^\uFEFF/, "")
  const fault = jsonFaultAt(source)
  if (fault !== null) {
    const { column, line } = lineAndColumn(source, fault)
    throw new CommandFailure(`${file}:${line}:${column}: expected JSON; repair the file first`)
  }
  const value: unknown = JSON.parse(source)
  const servers = isJsonObject(value) ? (value.mcpServers ?? {}) : null
  if (!isJsonObject(value) || !isJsonObject(servers)) {
    throw new CommandFailure(`${file}: expected an object with an object "mcpServers"; repair the file first`)
  }
  makeDirectories(dirname(file), 0o700)
  // Values may be secrets: a new file is its owner's only.
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o600
  const temporary = join(dirname(file), `.mcp_config-${randomUUID()}.tmp`)
  try {
    const next = { ...value, mcpServers: change(servers) }
    writeFileSync(temporary, `${JSON.stringify(next, null, 2)}\n`, { mode, flush: true })
    renameSync(temporary, file)
  } finally {
    rmSync(temporary, { force: true })
  }
}
