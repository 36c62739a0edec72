/**
 * `tool_search`: finds tools of MCP servers that are not offered by themselves, and offers them. What was found stays offered.
 */
import { Effect, Schema } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import { text } from "../../domain/message.ts"
import { defineTool } from "../../tools/define.ts"
import type { Tool } from "../../tools/tool.ts"

/** Tools that one search offers. */
const defaultLimit = 5
const maxLimit = 20

const words = (query: string): ReadonlyArray<string> => [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]

/** The tools that fit best, best first: each word counts, in a name more than in a description. Pure. */
export const searchTools = (tools: ReadonlyArray<Tool>, query: string, limit: number): ReadonlyArray<Tool> => {
  const wanted = words(query)
  return tools
    .map((tool, index) => {
      const name = tool.spec.name.toLowerCase()
      const about = tool.spec.description.toLowerCase()
      let score = name === query.trim().toLowerCase() ? 100 : 0
      for (const word of wanted) score += (name.includes(word) ? 3 : 0) + (about.includes(word) ? 1 : 0)
      return { tool, score, index }
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, limit)
    .map(({ tool }) => tool)
}

/** `toolsOf` gives all tools of a conversation's servers. */
export const searchTool = (toolsOf: (conversation: ConversationId) => ReadonlyArray<Tool>): Tool =>
  defineTool({
    name: "tool_search",
    description:
      "Finds tools of connected MCP servers by words of what they do, and offers those that it finds from the next step on. Use it when the tools that you have do not do what is needed.",
    parameters: Schema.Struct({
      query: Schema.String.annotations({ description: "What the tool should do, in a few words, or its name" }),
      limit: Schema.optional(
        Schema.Int.pipe(Schema.between(1, maxLimit)).annotations({
          description: `At most this many; default ${defaultLimit}`,
        }),
      ),
    }),
    effects: ["read"],
    replay: "safe",
    execute: ({ limit = defaultLimit, query }, { conversation }) =>
      Effect.sync(() => {
        const all = toolsOf(conversation)
        const found = searchTools(all, query, limit)
        if (found.length === 0) {
          const servers = [...new Set(all.map(({ spec }) => spec.name.split("__")[1] ?? ""))].join(", ")
          const where = servers === "" ? "No MCP server is connected." : `The connected servers are: ${servers}.`
          return { output: [text(`No tool fits "${query}". ${where}`)] }
        }
        const lines = found.map(({ spec }) => `${spec.name}: ${spec.description.split("\n")[0]?.slice(0, 200) ?? ""}`)
        return {
          output: [text(`These tools are offered from now on:\n${lines.join("\n")}`)],
          control: { addTools: found.map(({ spec }) => spec.name) },
        }
      }),
  })
