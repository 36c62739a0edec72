/**
 * The tools that plugins bring, with the services that their code needs.
 */
import { type Context, Deferred, Effect, Either } from "effect"
import { InvalidRequest } from "../domain/failure.ts"
import type { Tool } from "../tools/tool.ts"
import type { ToolsService } from "../tools/tools.ts"
import type { ActivePlugin } from "./options.ts"

type Services = Deferred.Deferred<Context.Context<unknown>>

/** Gives an effect the services of the node, once they are there. */
export const withServices = <A, E>(services: Services, effect: Effect.Effect<A, E, unknown>): Effect.Effect<A, E> =>
  Effect.flatMap(Deferred.await(services), (context) => Effect.provide(effect, context))

const provided = (tool: Tool<unknown>, services: Services): Tool => {
  const { execute, reconcile } = tool
  const bound: Tool = { ...(tool as Tool), execute: (args, context) => withServices(services, execute(args, context)) }
  return reconcile === undefined
    ? bound
    : { ...bound, reconcile: (args, context) => withServices(services, reconcile(args, context)) }
}

/** The tools of the plugins in their order. Two tools of one name are an error: a model could not tell them apart. */
export const pluginTools = (
  active: ReadonlyArray<ActivePlugin>,
  node: ToolsService,
  services: Services,
): Either.Either<ReadonlyArray<Tool>, InvalidRequest> => {
  const owners = new Map<string, string>()
  const tools: Array<Tool> = []
  for (const { options, plugin } of active) {
    for (const tool of plugin.tools(options)) {
      const { name } = tool.spec
      const owner = owners.get(name) ?? (node.get(name) === undefined ? null : "the node")
      if (owner !== null) {
        const expected = `tools with names of their own (${owner} has one of that name)`
        const actual = `the tool "${name}" of the plugin "${plugin.name}"`
        return Either.left(new InvalidRequest({ path: "agent.plugins", expected, actual }))
      }
      owners.set(name, `the plugin "${plugin.name}"`)
      tools.push(provided(tool, services))
    }
  }
  return Either.right(tools)
}
