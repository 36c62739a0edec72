/**
 * The MCP servers that there are, with the tools that each has brought. It owns no connection: links publish into it, conversations read
 * from it. A server that is away keeps its tools, so that their names and their order stay; a server that is removed takes them along.
 */
import { Deferred, Effect, FiberId } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { McpServer, McpServerView } from "../../domain/mcp.ts"
import { serverTarget } from "../../domain/mcp-check.ts"
import type { Tool } from "../../tools/tool.ts"
import type { ActorRef } from "../kernel/index.ts"
import type { LinkMessage, LinkView } from "./actor.ts"
import { searchTool } from "./search.ts"

const none: ReadonlyArray<Tool> = []

/** One server. */
export class Entry {
  readonly server: McpServer
  readonly conversation: ConversationId | null
  readonly disabled: boolean
  /** Null: it is disabled, or was not started yet. */
  link: ActorRef<LinkMessage> | null = null
  tools: ReadonlyArray<Tool> = none
  view: LinkView = { state: "connecting", detail: null, server: null, protocolVersion: null, restarts: 0 }
  /** The first attempt went well or not. */
  readonly settled = Deferred.unsafeMake<void>(FiberId.none)
  isSettled = false

  constructor(server: McpServer, conversation: ConversationId | null, disabled: boolean) {
    this.server = server
    this.conversation = conversation
    this.disabled = disabled
    if (disabled) this.settle()
  }

  settle(): void {
    if (this.isSettled) return
    this.isSettled = true
    Deferred.unsafeDone(this.settled, Effect.void)
  }
}

export const viewOf = (entry: Entry): McpServerView => {
  const { conversation, disabled, server, tools, view } = entry
  return {
    name: server.name,
    conversation_id: conversation,
    transport: server.transport,
    target: serverTarget(server),
    state: disabled ? "disabled" : view.state,
    detail: view.detail,
    server: view.server,
    protocol_version: view.protocolVersion,
    tools: tools.map(({ spec }) => spec.name),
    restarts: view.restarts,
  }
}

export class Catalog {
  private node: ReadonlyArray<Entry> = []
  private readonly own = new Map<ConversationId, ReadonlyArray<Entry>>()
  private readonly search: Tool | null
  private changes = 0

  /** `deferred`: tools are offered once a search has found them. */
  constructor(deferred: boolean) {
    this.search = deferred ? searchTool((conversation) => this.all(conversation)) : null
  }

  get revision(): number {
    return this.changes
  }

  /** Tools, or which servers a conversation has, are not what they were. */
  changed(): void {
    this.changes++
  }

  /** Those of a conversation, or (null) of the node. */
  entries(conversation: ConversationId | null): ReadonlyArray<Entry> {
    return conversation === null ? this.node : (this.own.get(conversation) ?? [])
  }

  /** Says which there are, of a conversation or (null) of the node. */
  set(conversation: ConversationId | null, entries: ReadonlyArray<Entry>): void {
    if (conversation === null) this.node = entries
    else if (entries.length === 0) this.own.delete(conversation)
    else this.own.set(conversation, entries)
    this.changed()
  }

  find(conversation: ConversationId | null, name: string): Entry | null {
    return this.entries(conversation).find(({ server }) => server.name === name) ?? null
  }

  /** Servers that a conversation sees: a server of its own hides one of the node that has the same name. */
  private seen(conversation: ConversationId): ReadonlyArray<Entry> {
    const own = this.own.get(conversation)
    if (own === undefined) return this.node
    const names = new Set(own.map(({ server }) => server.name))
    return [...this.node.filter(({ server }) => !names.has(server.name)), ...own]
  }

  /** All tools of a conversation's servers, in order, each name once. */
  private all(conversation: ConversationId): ReadonlyArray<Tool> {
    const entries = this.seen(conversation)
    if (entries.length === 0) return none
    const byName = new Map<string, Tool>()
    for (const { tools } of entries) {
      for (const tool of tools) if (!byName.has(tool.spec.name)) byName.set(tool.spec.name, tool)
    }
    return [...byName.values()]
  }

  of(conversation: ConversationId, found: ReadonlyArray<string>): ReadonlyArray<Tool> {
    const tools = this.all(conversation)
    if (this.search === null || tools.length === 0) return tools
    return [this.search, ...tools.filter(({ spec }) => found.includes(spec.name))]
  }

  /** Servers of a conversation whose first attempt is not over. */
  starting(conversation: ConversationId): ReadonlyArray<Entry> {
    if (this.node.length === 0 && this.own.size === 0) return []
    return this.seen(conversation).filter(({ isSettled }) => !isSettled)
  }
}
