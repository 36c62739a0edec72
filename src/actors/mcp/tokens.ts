/**
 * Logins at MCP servers: one file per server in the data directory, readable by its owner only. A login belongs to a name and an address
 * together: a server that got another address is another server. What is in a file is the login service's business (oauth.ts).
 */
import { createHash, randomUUID } from "node:crypto"
import { readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { isJsonObject, type JsonObject } from "../../domain/json.ts"
import { makeDirectories } from "../../storage/directories.ts"

/** The login of one server: reads give null where there is none, and where the file is not readable as one. */
export interface TokenStore {
  readonly read: (name: string, url: string) => Promise<JsonObject | null>
  /** Null removes it. */
  readonly write: (name: string, url: string, login: JsonObject | null) => Promise<void>
}

/** In the directory `mcp-logins` of the data directory. */
export const tokenFiles = (dataDir: string): TokenStore => {
  const directory = join(dataDir, "mcp-logins")
  const fileOf = (name: string, url: string): string => {
    const hash = createHash("sha256")
      .update(JSON.stringify([name, url]))
      .digest("hex")
      .slice(0, 16)
    return join(directory, `${name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 40)}-${hash}.json`)
  }
  return {
    read: async (name, url) => {
      try {
        const value: unknown = JSON.parse(await readFile(fileOf(name, url), "utf8"))
        return isJsonObject(value) ? value : null
      } catch {
        return null
      }
    },
    write: async (name, url, login) => {
      const path = fileOf(name, url)
      if (login === null) return rm(path, { force: true })
      makeDirectories(directory, 0o700)
      const temporary = join(directory, `.${randomUUID()}.tmp`)
      try {
        await writeFile(temporary, `${JSON.stringify({ ...login, server: name, url }, null, 2)}\n`, {
          mode: 0o600,
          flush: true,
        })
        await rename(temporary, path)
      } finally {
        await rm(temporary, { force: true })
      }
    },
  }
}
