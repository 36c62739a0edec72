/**
 * The MCP servers of a node as the rest of it sees them: which there are, the tools that they bring, and the servers that conversations
 * bring along. The implementation is in `src/supervisors/mcp.ts`.
 */
import type { Effect } from "effect"
import type { NotFound } from "../../domain/failure.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { McpServerView } from "../../domain/mcp.ts"
import type { ToolSource } from "../../tools/tools.ts"

export interface McpServersService {
  /** Those of a conversation in memory, or (null) of the node, in the order in which they are configured. */
  readonly list: (conversation: ConversationId | null) => Effect.Effect<ReadonlyArray<McpServerView>>
  /** Connects anew and waits until that went well or not. */
  readonly restart: (conversation: ConversationId | null, name: string) => Effect.Effect<McpServerView, NotFound>
  /**
   * Their tools, for conversations. `enter` says what servers a conversation has: new ones are started, changed ones started anew, others
   * stopped; it waits for none of them.
   */
  readonly tools: ToolSource
}
