/**
 * The service that says which tools a node has.
 */
import { Context, Effect, Layer } from "effect"
import type { Tool } from "./tool.ts"

/** What {@link Tools} serves: tools whose services are provided, in the order in which they are offered. */
export interface ToolsService {
  readonly list: ReadonlyArray<Tool>
  /** The tool of that name, or undefined. */
  readonly get: (name: string) => Tool | undefined
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
