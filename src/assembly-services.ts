/**
 * What a node is made of, whatever engine stands behind it: models, tools, harnesses, settings, queues and MCP servers as the options and the
 * settings say, and the tree of actors over them.
 */
import { createHash } from "node:crypto"
import { homedir } from "node:os"
import { Context, Effect, Layer, type Scope } from "effect"
import { ConversationSettings } from "./actors/conversation/settings.ts"
import { ActorSystem } from "./actors/kernel/index.ts"
import { defaultMcpSettings, McpConfig, type McpSettings } from "./actors/mcp/settings.ts"
import { tokenFiles } from "./actors/mcp/tokens.ts"
import { QueueConfig, queueSettings } from "./actors/queue/settings.ts"
import { Sessions, type SessionsService } from "./actors/sessions.ts"
import { defaultHarness } from "./cli/harness-choice.ts"
import { loadMcpConfig, mcpConfigFile } from "./cli/mcp-config.ts"
import { version } from "./cli/package.ts"
import { pluginPlaces, resolvePaths } from "./cli/paths.ts"
import type { NodeOptions } from "./cli/ports.ts"
import { modelSettings } from "./cli/settings.ts"
import { type Failure, InvalidRequest } from "./domain/failure.ts"
import type { InvalidDeclaration } from "./harness/define.ts"
import { Harnesses } from "./harness/registry.ts"
import { Models } from "./models/model.ts"
import { makeModels } from "./models/service.ts"
import { nodeSettings } from "./node-settings.ts"
import { ArtifactStore } from "./storage/artifacts.ts"
import type { OpenError } from "./storage/errors.ts"
import { Store } from "./storage/store.ts"
import { artifactsLayer } from "./supervisors/artifacts.ts"
import { countedStore } from "./supervisors/counted-store.ts"
import { nodeLayer } from "./supervisors/node.ts"
import { workersLayer } from "./supervisors/workers.ts"
import { BuiltinTools } from "./tools/builtin-tools.ts"
import { ClientFiles } from "./tools/client-files.ts"
import type { WorkspaceSettings } from "./tools/workspace-settings.ts"

const isTrue = (value: string | undefined): boolean => /^(1|true|yes)$/i.test(value ?? "")

const surroundings = ({ cwd, env }: NodeOptions) => ({ cwd, env, home: homedir(), platform: process.platform })

/** Only the settings can name a harness that is not there: the others are built in. */
const asFailure = ({ faults }: InvalidDeclaration): Failure => {
  const { actual = "another", expected = "a harness" } = faults[0] ?? {}
  return new InvalidRequest({ path: "settings.json: defaultHarness", expected, actual })
}

/** What walled-in commands do not see: settings and data, the database and what lies beside it. */
const workspaceSettings = (path: string, options: NodeOptions): Partial<WorkspaceSettings> => {
  const { knowledgePaths, sandbox, sandboxWritable, scratchDir, scratchTtlHours } = options.settings
  const { configDir, dataDir } = resolvePaths(surroundings(options), { db: path })
  const beside = ["", "-wal", "-shm"].map((end) => `${path}${end}`)
  return {
    hidden: [configDir, dataDir, ...beside],
    scratchName: createHash("sha256").update(path).digest("hex").slice(0, 8),
    ...(knowledgePaths === undefined ? {} : { knowledgePaths }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(sandboxWritable === undefined ? {} : { sandboxWritable }),
    ...(scratchDir === undefined ? {} : { scratchDir }),
    ...(scratchTtlHours === undefined ? {} : { scratchTtlHours }),
  }
}

/** The MCP servers of the configuration file, read when the node starts and when one of them is restarted. Each fault is said once. */
const mcpSettings = (path: string, options: NodeOptions): McpSettings | null => {
  const { mcpCallTimeoutMs, mcpClients = true, mcpStartupTimeoutMs, mcpToolExposure } = options.settings
  if (!mcpClients) return null
  const { configDir, dataDir } = resolvePaths(surroundings(options), { db: path })
  const told = new Set<string>()
  return {
    servers: () => {
      const { faults, servers } = loadMcpConfig(mcpConfigFile(configDir))
      for (const fault of faults) {
        if (!told.has(fault)) process.stderr.write(`super-pi: warning: ${fault}\n`)
        told.add(fault)
      }
      return servers
    },
    exposure: mcpToolExposure ?? defaultMcpSettings.exposure,
    startupMs: mcpStartupTimeoutMs ?? defaultMcpSettings.startupMs,
    callMs: mcpCallTimeoutMs ?? defaultMcpSettings.callMs,
    env: options.env,
    root: options.cwd,
    tokens: tokenFiles(dataDir),
    version: version(),
  }
}

/** An engine whose commits are counted where somebody counts. */
const counted = <S, E, R>(
  store: Layer.Layer<S | Store, E, R>,
  { observer }: NodeOptions,
): Layer.Layer<S | Store, E, R> => {
  if (observer === undefined) return store
  const counting = Layer.effect(
    Store,
    Effect.zipWith(Store, Effect.clock, (opened, clock) => countedStore(opened, observer, clock)),
  )
  return Layer.provideMerge(counting, store)
}

/** Everything that one node is made of, over the engine `store`. `path` is where its database is, or would be. */
const servicesOf = <S, E>(path: string, options: NodeOptions, store: Layer.Layer<S | Store, E>) => {
  const chosen = modelSettings(options.settings)
  const settings = Layer.sync(ConversationSettings, () =>
    nodeSettings({
      cwd: options.cwd,
      mode: options.mode,
      confined: options.settings.permissions?.allowNonWorkspaceAccess !== true,
      effort: chosen.effort,
      prices: chosen.prices,
      workspaces: workspaceSettings(path, options),
      policy: { compaction: options.settings.compaction ?? {} },
      observer: options.observer,
      traceModels: isTrue(options.env.SUPER_PI_TRACE_MODELS),
    }),
  )
  const artifacts = Layer.provide(artifactsLayer, ArtifactStore.database())
  const client = options.clientFiles === undefined ? Layer.empty : Layer.succeed(ClientFiles, options.clientFiles)
  const tools = Layer.provide(BuiltinTools.layer, Layer.mergeAll(Layer.orDie(workersLayer), artifacts, client))
  const models = Layer.sync(Models, () => makeModels({ env: options.env, settings: chosen }))
  const { queues = {}, verifyAfterSeconds } = options.settings
  const times = verifyAfterSeconds === undefined ? {} : { verifyAfterMs: verifyAfterSeconds * 1000 }
  const queueing = Layer.sync(QueueConfig, () => queueSettings(queues, times))
  const harnesses = Harnesses.layer({
    fallback: options.settings.defaultHarness ?? defaultHarness,
    places: pluginPlaces(surroundings(options), {}, options.settings.discoveryRoots),
  }).pipe(Layer.mapError(asFailure), Layer.provideMerge(tools))
  const mcp = Layer.sync(McpConfig, () => mcpSettings(path, options))
  return Layer.mergeAll(models, harnesses, settings, queueing, mcp).pipe(
    Layer.provideMerge(counted(store, options)),
    Layer.provideMerge(ActorSystem.layer()),
  )
}

/**
 * Builds the node in the current scope: it recovers what the database holds, and stops cleanly with the scope. `node` is named in the rows
 * that it works at; default: host and process id.
 */
export const buildNode = <S, E = OpenError>(
  path: string,
  options: NodeOptions,
  store: Layer.Layer<S | Store, E>,
): Effect.Effect<SessionsService, Failure | E, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const services = servicesOf(path, options, store)
    const context = yield* Layer.buildWithScope(Layer.provideMerge(nodeLayer, services), scope)
    const system = Context.get(context, ActorSystem)
    options.observer?.node({ deadLetters: () => system.deadLetters })
    return yield* Effect.provide(Sessions, context)
  })
