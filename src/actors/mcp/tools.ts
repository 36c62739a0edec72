/**
 * Tools of MCP servers as our tools. Pure, but for the calls that they make.
 *
 * A server's own word decides what a call may touch: `readOnlyHint` is `net_read`, anything else `net_write`; the policy for the network
 * counts for all of them, whatever they run over.
 */
import { Effect } from "effect"
import { isJsonObject, type JsonObject } from "../../domain/json.ts"
import type { Tool } from "../../tools/tool.ts"
import type { ActorRef } from "../kernel/index.ts"
import type { LinkMessage } from "./actor.ts"
import { boundedJson } from "./bounded-json.ts"
import { callTool } from "./call.ts"
import type { ServerTool } from "./connection.ts"
import { toolName } from "./names.ts"

/** Characters of a description, and of a schema, that a model is sent. */
const maxDescription = 8_000
const maxSchema = 64_000

export interface ToolParts {
  readonly server: string
  readonly link: ActorRef<LinkMessage>
  readonly startupMs: number
  readonly callMs: number
}

/** What providers take: a schema of an object with properties. */
const parametersOf = (schema: Readonly<Record<string, unknown>>): JsonObject | null => {
  const json = boundedJson(schema, maxSchema)
  if (json === null) return null
  const { $schema: _, ...rest } = JSON.parse(json) as JsonObject
  return { ...rest, type: "object", properties: isJsonObject(rest.properties) ? rest.properties : {} }
}

/** A tool, or null where a model cannot be told of it. */
const mcpTool = (tool: ServerTool, { callMs, link, server, startupMs }: ToolParts): Tool | null => {
  const parameters = parametersOf(tool.inputSchema)
  if (parameters === null) return null
  const name = toolName(server, tool.name)
  const repeatable = tool.readOnly || tool.idempotent
  const parts = { server, tool: tool.name, name, repeatable, link, startupMs, callMs }
  const description = tool.description.trim() === "" ? `${tool.name} of the MCP server ${server}` : tool.description
  return {
    spec: { name, description: description.slice(0, maxDescription), parameters },
    // The server checks; its words about wrong arguments go to the model.
    decode: (args) => Effect.succeed(args),
    effects: [tool.readOnly ? "net_read" : "net_write"],
    replay: tool.readOnly ? "safe" : "unsafe",
    execution: "parallel",
    whenInterrupted: repeatable ? "settled" : "inDoubt",
    execute: (args, context) => callTool(parts, isJsonObject(args) ? args : {}, context),
  }
}

/** All of a server, in its order. Of two names that are the same the first counts. */
export const mcpTools = (tools: ReadonlyArray<ServerTool>, parts: ToolParts): ReadonlyArray<Tool> => {
  const made = new Map<string, Tool>()
  for (const tool of tools) {
    const one = mcpTool(tool, parts)
    if (one !== null && !made.has(one.spec.name)) made.set(one.spec.name, one)
  }
  return [...made.values()]
}
