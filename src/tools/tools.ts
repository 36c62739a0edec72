/**
 * The service that says which tools a node has.
 */
import { Context, Effect, Layer } from "effect"
import type { ConversationId } from "../domain/ids.ts"
import type { McpServer } from "../domain/mcp.ts"
import type { Tool } from "./tool.ts"

/** Tools that come and go while the node runs. */
export interface ToolSource {
  /** Rises with every change of what {@link ToolSource.of} gives: what was made of that is made anew. */
  readonly revision: () => number
  /** What a conversation has beside the tools of the node and of its plugins, in order. `found`: the names that a search added. */
  readonly of: (conversation: ConversationId, found: ReadonlyArray<string>) => ReadonlyArray<Tool>
  /** Waits, within bounds, for tools of the conversation that are only just starting. Null: there are none. */
  readonly ready: (conversation: ConversationId) => Effect.Effect<void> | null
  /** The conversation comes into memory, with servers of its own that work in `root`. */
  readonly enter: (conversation: ConversationId, servers: ReadonlyArray<McpServer>, root: string) => Effect.Effect<void>
  /** The conversation leaves memory. */
  readonly leave: (conversation: ConversationId) => Effect.Effect<void>
}

/** What {@link Tools} serves: tools whose services are provided, in the order in which they are offered. */
export interface ToolsService {
  readonly list: ReadonlyArray<Tool>
  /** The tool of that name, or undefined. */
  readonly get: (name: string) => Tool | undefined
  /** Absent: the tools stay what they are. */
  readonly source?: ToolSource
}

/** The tools of this node. */
export class Tools extends Context.Tag("super-pi/Tools")<Tools, ToolsService>() {}

/** Serves `list`. Of several tools with one name the last wins. */
export const makeTools = (list: ReadonlyArray<Tool>): ToolsService => {
  const byName = new Map(list.map((tool) => [tool.spec.name, tool]))
  return { list: [...byName.values()], get: (name) => byName.get(name) }
}

/** A layer of {@link Tools} from tools that need services `R`. */
export const toolsLayer = <R>(list: ReadonlyArray<Tool<R>>): Layer.Layer<Tools, never, R> =>
  Layer.effect(
    Tools,
    Effect.map(Effect.context<R>(), (services) =>
      makeTools(
        list.map(({ reconcile, ...tool }) => ({
          ...tool,
          execute: (args, context) => Effect.provide(tool.execute(args, context), services),
          ...(reconcile === undefined
            ? {}
            : { reconcile: (args, context) => Effect.provide(reconcile(args, context), services) }),
        })),
      ),
    ),
  )
