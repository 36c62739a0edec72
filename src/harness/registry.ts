/**
 * The harnesses and plugins of a node: the built-in ones and those of an application, found by id, older id or short name, and put together
 * into the pipelines of conversations. A conversation that names what there is not gets an error, never a harness that it did not ask for.
 */
import { Context, Deferred, Effect, Either, FiberId, Layer } from "effect"
import type { AgentDocument } from "../domain/document.ts"
import { InvalidRequest } from "../domain/failure.ts"
import { nearest } from "../domain/nearest.ts"
import { makeTools, Tools, type ToolsService } from "../tools/tools.ts"
import { builtinHarnesses, harnessAliases } from "./builtin/index.ts"
import { harnessFaults } from "./declare.ts"
import { type AnyPlugin, type DeclarationFault, InvalidDeclaration, quoted } from "./define.ts"
import type { Harness, HarnessCapabilities } from "./harness.ts"
import { type ActivePlugin, activate, nameOf, pluginNamed } from "./options.ts"
import { type HookName, hookNames, type PluginPlaces } from "./plugin.ts"
import { pluginTools } from "./plugin-tools.ts"
import { builtinPlugins } from "./plugins/index.ts"
import { withOutputSchema } from "./plugins/structured-output/conversation.ts"
import { bringsOptions, capabilitiesOf } from "./resolve.ts"

/** The plugins of one conversation in their order, with what they add. */
export interface Pipeline {
  readonly harness: Harness | null
  readonly plugins: ReadonlyArray<ActivePlugin>
  /** The hooks that some plugin has: a turn does nothing for the others. */
  readonly hooks: ReadonlySet<HookName>
  /** The tools of the node and of the plugins. */
  readonly tools: ToolsService
}

export interface HarnessesService {
  /** In the order of listings. */
  readonly list: ReadonlyArray<Harness>
  readonly capabilities: ReadonlyArray<HarnessCapabilities>
  /** The harness that a new conversation gets where its caller names none; null: none. */
  readonly fallback: string | null
  readonly places: PluginPlaces
  /** By id, older id or short name. */
  readonly find: (name: string) => Either.Either<Harness, InvalidRequest>
  /** The pipeline that `pi.agent` asks for; null for a bare conversation. Plugins' tools are made anew by every call. */
  readonly pipeline: (agent: AgentDocument) => Either.Either<Pipeline | null, InvalidRequest>
  /** The services that plugins may ask for; there once the node stands. */
  readonly services: Deferred.Deferred<Context.Context<unknown>>
}

export class Harnesses extends Context.Tag("super-pi/Harnesses")<Harnesses, HarnessesService>() {
  /** Over the tools of the node; see {@link makeHarnesses}. */
  static readonly layer = (
    options: Omit<HarnessesOptions, "tools">,
  ): Layer.Layer<Harnesses, InvalidDeclaration, Tools> =>
    Layer.effect(
      Harnesses,
      Effect.flatMap(Tools, (tools) =>
        Effect.try({
          try: () => makeHarnesses({ ...options, tools }),
          catch: (error) => {
            if (error instanceof InvalidDeclaration) return error
            throw error
          },
        }),
      ),
    )
}

export interface HarnessesOptions {
  readonly extraHarnesses?: ReadonlyArray<Harness>
  readonly extraPlugins?: ReadonlyArray<AnyPlugin>
  /** Default null. */
  readonly fallback?: string | null
  readonly places: PluginPlaces
  /** The tools of the node. */
  readonly tools: ToolsService
}

const clash = (what: "plugin" | "harness", id: string, faults: ReadonlyArray<DeclarationFault>): InvalidDeclaration =>
  new InvalidDeclaration({ what, id, faults })

/** The plugins of a node: of two with one name or alias there is no telling which was meant. */
const allPlugins = (extra: ReadonlyArray<AnyPlugin>): ReadonlyArray<AnyPlugin> => {
  const known = new Map<string, string>()
  for (const { aliases, name } of [...builtinPlugins, ...extra]) {
    for (const one of [name, ...aliases]) {
      const taken = known.get(one)
      if (taken !== undefined) {
        const expected = `a name that no other plugin has ("${taken}" has it)`
        throw clash("plugin", name, [{ path: one === name ? "name" : "aliases", expected, actual: quoted(one) }])
      }
      known.set(one, name)
    }
  }
  return [...builtinPlugins, ...extra]
}

const allHarnesses = (extra: ReadonlyArray<Harness>, plugins: ReadonlyArray<AnyPlugin>): ReadonlyArray<Harness> => {
  const known = [...builtinHarnesses]
  for (const harness of extra) {
    const faults = harnessFaults(harness, plugins)
    const { id } = harness
    if (known.some((one) => one.id === id) || id in harnessAliases) {
      throw clash("harness", id, [
        ...faults,
        { path: "id", expected: "an id that no other harness has", actual: quoted(id) },
      ])
    }
    if (faults.length > 0) throw clash("harness", id, faults)
    known.push(harness)
  }
  return known
}

/** Throws {@link InvalidDeclaration}. */
export const makeHarnesses = (options: HarnessesOptions): HarnessesService => {
  const { extraHarnesses = [], extraPlugins = [], fallback = null, places, tools } = options
  const plugins = allPlugins(extraPlugins)
  const list = allHarnesses(extraHarnesses, plugins)
  const services = Deferred.unsafeMake<Context.Context<unknown>>(FiberId.none)

  const find: HarnessesService["find"] = (name) => {
    const found = list.find((one) => one.id === name) ?? list.find((one) => one.id === harnessAliases[name])
    if (found !== undefined) return Either.right(found)
    const near = nearest(name, [...list.map((one) => one.id), ...Object.keys(harnessAliases)])
    const expected = `the id of a harness (${list.map((one) => one.id).join(", ")}; the nearest is "${near}")`
    return Either.left(new InvalidRequest({ path: "agent.harness", expected, actual: quoted(name) }))
  }

  /** The plugins that a conversation adds. Those of the harness keep their options, whoever names them again. */
  const added = (
    harness: Harness | null,
    specs: NonNullable<AgentDocument["plugins"]>,
  ): Either.Either<ReadonlyArray<ActivePlugin>, InvalidRequest> => {
    const carried = new Set((harness?.plugins ?? []).map((spec) => pluginNamed(plugins, nameOf(spec))?.name))
    const isCarried = (spec: (typeof specs)[number]) => carried.has(pluginNamed(plugins, nameOf(spec))?.name)
    const at = specs.findIndex(
      (spec) => isCarried(spec) && pluginNamed(plugins, nameOf(spec)) !== undefined && bringsOptions(spec),
    )
    if (at >= 0) {
      const expected = `no options of a plugin that the harness "${harness?.id}" carries`
      return Either.left(new InvalidRequest({ path: `agent.plugins[${at}]`, expected, actual: quoted(specs[at]) }))
    }
    const { active, faults } = activate(plugins, specs, "agent.plugins")
    const [fault] = faults
    if (fault !== undefined) return Either.left(new InvalidRequest(fault))
    return Either.right(active.filter(({ plugin }) => !carried.has(plugin.name)))
  }

  const pipeline: HarnessesService["pipeline"] = (agent) =>
    Either.gen(function* () {
      const harness = agent.harness === undefined ? null : yield* find(agent.harness)
      const own = agent.plugins ?? []
      const schema = agent.outputSchema ?? null
      if (harness === null && own.length === 0 && schema === null) return null
      const carried = harness === null ? [] : activate(plugins, harness.plugins, "plugins").active
      const chosen = [...carried, ...(yield* added(harness, own))]
      const active = schema === null ? chosen : withOutputSchema(chosen, schema)
      const hooks = new Set(hookNames.filter((name) => active.some(({ plugin }) => plugin.hooks[name] !== undefined)))
      const more = yield* pluginTools(active, tools, services)
      return { harness, plugins: active, hooks, tools: more.length === 0 ? tools : makeTools([...tools.list, ...more]) }
    })

  const capabilities = list.map((harness) => {
    const made = pipeline({ harness: harness.id })
    if (Either.isRight(made))
      return capabilitiesOf(
        harness,
        (made.right?.tools ?? tools).list.map((one) => one.spec.name),
      )
    const { actual, expected, path } = made.left
    throw clash("harness", harness.id, [{ path, expected, actual }])
  })
  if (fallback !== null) {
    const found = find(fallback)
    if (Either.isLeft(found)) {
      const { actual, expected } = found.left
      throw clash("harness", fallback, [{ path: "harness", expected, actual }])
    }
  }
  return { list, capabilities, fallback, places, find, pipeline, services }
}
