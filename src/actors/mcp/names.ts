/**
 * Names of MCP tools as models see them: `mcp__<server>__<tool>`, 1 to 64 of the characters that every model service takes
 * (`a-z A-Z 0-9 _ -`). Pure.
 *
 * A name says which server and which tool it is, whatever else there is: where a part has other characters, is too long, or would make the
 * two parts ambiguous, a hash of both originals ends it. So a tool keeps its name when servers come and go.
 */
import { createHash } from "node:crypto"

const prefix = "mcp__"
const maxName = 64
const hashDigits = 8

/** Whether the server's part ends where the reader thinks that it does. */
const isPlainServer = (server: string): boolean => /^[A-Za-z0-9_-]+$/.test(server) && !/__|_$/.test(server)

const isPlainTool = (tool: string): boolean => /^[A-Za-z0-9-][A-Za-z0-9_-]*$/.test(tool)

const sanitized = (text: string): string => text.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "")

/** The name of a tool of a server. */
export const toolName = (server: string, tool: string): string => {
  const plain = `${prefix}${server}__${tool}`
  if (isPlainServer(server) && isPlainTool(tool) && plain.length <= maxName) return plain
  const hash = createHash("sha256")
    .update(JSON.stringify([server, tool]))
    .digest("hex")
    .slice(0, hashDigits)
  const end = `_${hash}`
  const from = sanitized(server).replace(/_+/g, "_").slice(0, 20).replace(/_+$/, "") || "server"
  const rest = maxName - prefix.length - from.length - 2 - end.length
  return `${prefix}${from}__${sanitized(tool).slice(0, rest) || "tool"}${end}`
}
