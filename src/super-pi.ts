/**
 * Super-Pi inside an Effect application: `SuperPi.layer` owns a database, recovers what it holds and runs conversations and tasks with the
 * application's own services. The command line is put together from the same pieces (assembly.ts).
 */
import { randomUUID } from "node:crypto"
import { homedir } from "node:os"
import { Context, Effect, Either, Layer } from "effect"
import type { SessionSummary } from "./actors/contract.ts"
import { ConversationSettings } from "./actors/conversation/settings.ts"
import { ActorSystem } from "./actors/kernel/index.ts"
import { Queues } from "./actors/queue/queues.ts"
import { QueueConfig, queueSettings } from "./actors/queue/settings.ts"
import type { QueueWorker } from "./actors/queue/worker.ts"
import { Sessions, type SessionsService } from "./actors/sessions.ts"
import { type TaskDefinition, Tasks } from "./actors/task/index.ts"
import { version } from "./cli/package.ts"
import { pluginPlaces } from "./cli/paths.ts"
import type { AgentDocument } from "./domain/document.ts"
import type { EffectAnswer, EffectView } from "./domain/effect.ts"
import { type Failure, ServiceFailure } from "./domain/failure.ts"
import type { ConversationId, TaskId } from "./domain/ids.ts"
import type { InvalidDeclaration } from "./harness/define.ts"
import { Harnesses } from "./harness/registry.ts"
import { Models } from "./models/model.ts"
import { makeModels } from "./models/service.ts"
import { nodeSettings } from "./node-settings.ts"
import type { Peer } from "./protocols/attach/handshake.ts"
import { ArtifactStore } from "./storage/artifacts.ts"
import { Documents } from "./storage/documents/documents.ts"
import type { OpenError } from "./storage/errors.ts"
import { MemoryStore } from "./storage/memory/store.ts"
import type { DatabaseInUse } from "./storage/postgres/ownership.ts"
import { claim, type Lease, type OwnedElsewhere } from "./storage/sqlite/ownership.ts"
import { SqliteStore } from "./storage/sqlite/store.ts"
import type { Store } from "./storage/store.ts"
import { type ConversationHandle, conversationHandle } from "./super-pi-conversation.ts"
import {
  type AnyOptions,
  builtinsOf,
  checkOptions,
  InvalidOptions,
  type LayerError,
  type ModelsOption,
  type OptionNeeds,
  type StorageOption,
  type SuperPiOptions,
} from "./super-pi-options.ts"
import { serverSettingsOf, serverStore } from "./super-pi-server.ts"
import { artifactsLayer } from "./supervisors/artifacts.ts"
import { nodeLayer } from "./supervisors/node.ts"
import { workersLayer } from "./supervisors/workers.ts"
import type { Tool } from "./tools/tool.ts"
import { toolsLayer } from "./tools/tools.ts"

export interface OpenOptions {
  readonly agent?: AgentDocument
  readonly title?: string
  /** The same id opens the same conversation, also after a restart. Default none. */
  readonly requestId?: string
}

/** Conversations on behalf of one principal. */
export interface SuperPiService {
  /** Creates a conversation. */
  readonly open: (options?: OpenOptions) => Effect.Effect<ConversationHandle, Failure>
  /** A conversation that there is. Its calls fail with `NotFound` where it is not there, or not this principal's. */
  readonly conversation: (id: ConversationId) => ConversationHandle
  /** Newest first; 100 unless `limit` (1 to 1,000) says otherwise. */
  readonly conversations: (options?: {
    readonly limit?: number
  }) => Effect.Effect<ReadonlyArray<SessionSummary>, Failure>
  /** Effects of tools that may or may not have happened; see docs/effects.md. */
  readonly effects: Effect.Effect<ReadonlyArray<EffectView>, Failure>
  readonly settleEffect: (task: TaskId, answer: EffectAnswer) => Effect.Effect<void, Failure>
  /** The same on behalf of somebody else: what one principal has, another one does not find. Default `local`. */
  readonly as: (principal: string) => SuperPiService
}

/** Why the layer was not built; layers among the options add what they fail with. */
export type SuperPiError = InvalidOptions | InvalidDeclaration | OwnedElsewhere | DatabaseInUse | OpenError | Failure

/** What the layer provides. */
export type SuperPiServices =
  | SuperPi
  | Sessions
  | Tasks
  | Queues
  | Documents
  | ArtifactStore
  | ActorSystem
  | Store
  | Models

export class SuperPi extends Context.Tag("super-pi/SuperPi")<SuperPi, SuperPiService>() {
  /**
   * Everything, over one storage. A database is owned while the layer lives: another process, or a second layer, fails with
   * `OwnedElsewhere`, or with `DatabaseInUse` where it is a server's. Open work goes on as soon as it is built. Released, it stops cleanly; what runs goes on at the next start.
   */
  static layer<
    const T extends ReadonlyArray<Tool<unknown>> = readonly [],
    const D extends ReadonlyArray<TaskDefinition<never, unknown, unknown, unknown>> = readonly [],
    const W extends ReadonlyArray<QueueWorker<unknown>> = readonly [],
    S extends StorageOption = StorageOption,
    M extends ModelsOption = Record<never, never>,
  >(
    options: SuperPiOptions<T, D, W, S, M>,
  ): Layer.Layer<SuperPiServices, SuperPiError | LayerError<S> | LayerError<M>, OptionNeeds<T, D, W, S, M>> {
    type Needs = OptionNeeds<T, D, W, S, M>
    type Failed = SuperPiError | LayerError<S> | LayerError<M>
    // The option types say what each layer and tool needs and fails with; their unions are Needs and Failed.
    return superPiLayer(options) as Layer.Layer<SuperPiServices, Failed, Needs>
  }
}

const superPiService = (sessions: SessionsService, principal: string): SuperPiService => ({
  open: ({ agent = {}, requestId = null, title = null } = {}) =>
    Effect.map(sessions.open({ conversationId: null, agent, title, requestId, principal }), (state) =>
      conversationHandle(sessions, state.conversation_id, principal),
    ),
  conversation: (id) => conversationHandle(sessions, id, principal),
  conversations: ({ limit = 100 } = {}) => sessions.list({ limit, principal }),
  effects: sessions.effects({ principal }),
  settleEffect: (taskId, answer) => Effect.asVoid(sessions.settleEffect({ taskId, answer, principal })),
  as: (other) => superPiService(sessions, other),
})

/** Who we are, for whoever finds the database owned. */
const defaultProgram = "super-pi application"

const superPiLayer = (options: AnyOptions): Layer.Layer<SuperPiServices, unknown, unknown> =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      yield* checkOptions(options)
      const { defaults = {}, storage } = options
      const file = typeof storage === "object" && "path" in storage ? storage : null
      const lease = file === null ? null : yield* claim(file.path, { program: options.program ?? defaultProgram })
      const settings = Layer.sync(ConversationSettings, () =>
        nodeSettings({
          ...defaults,
          cwd: defaults.cwd ?? process.cwd(),
          node: options.node,
          observer: options.observer,
        }),
      )
      const base = Layer.mergeAll(
        storeLayer(options, lease),
        modelsLayer(options.models ?? {}, defaults.model),
        settings,
        Layer.sync(QueueConfig, () => queueSettings(options.queues)),
      ).pipe(Layer.provideMerge(ActorSystem.layer()))
      const kept = options.artifacts ?? ArtifactStore.database()
      const tools = Layer.provide(
        toolsLayer([...builtinsOf(options.builtinTools), ...(options.tools ?? [])]),
        Layer.merge(workersLayer, artifactsLayer),
      )
      const { extraHarnesses = [], extraPlugins = [], harness = null, paths = {} } = options
      const around = { env: process.env, platform: process.platform, home: homedir(), cwd: process.cwd() }
      const harnesses = Harnesses.layer({
        extraHarnesses,
        extraPlugins,
        fallback: harness,
        places: pluginPlaces(around, paths),
      })
      const services = harnesses.pipe(Layer.provideMerge(tools), Layer.provideMerge(kept), Layer.provideMerge(base))
      const facade = Layer.effect(
        SuperPi,
        Effect.map(Sessions, (sessions) => superPiService(sessions, "local")),
      )
      const served = lease === null || file?.serve === false ? Layer.empty : serveLayer(lease)
      return Layer.mergeAll(facade, served, registered(options)).pipe(
        Layer.provideMerge(Layer.merge(nodeLayer, Documents.layer)),
        Layer.provideMerge(services),
      )
    }),
  )

const storeLayer = (
  { node, program = defaultProgram, storage }: AnyOptions,
  lease: Lease | null,
): Layer.Layer<Store, unknown, unknown> => {
  if (storage === "memory") return MemoryStore.layer()
  if ("url" in storage || "postgres" in storage) {
    // checked with the options
    return serverStore(Either.getOrThrow(serverSettingsOf(storage)), { node, program })
  }
  if (!("path" in storage)) return storage
  return SqliteStore.layer({ path: lease?.path ?? storage.path, synchronous: storage.synchronous ?? "NORMAL" })
}

/** The models, with the application's default where it names one that some provider serves. */
const modelsLayer = (models: ModelsOption, model: string | undefined): Layer.Layer<Models, unknown, unknown> => {
  const base: Layer.Layer<Models, unknown, unknown> = Layer.isLayer(models)
    ? models
    : Layer.sync(Models, () => makeModels({ env: process.env, ...models }))
  if (model === undefined) return base
  const chosen = Effect.gen(function* () {
    const service = yield* Models
    const info = yield* service.resolve(model).pipe(
      Effect.mapError(
        (error) =>
          new InvalidOptions({
            path: "defaults.model",
            expected: "a model that a configured provider serves",
            actual: `${JSON.stringify(model)} (${error.message})`,
          }),
      ),
    )
    return { ...service, defaultModel: Effect.succeed(info.id) }
  })
  return Layer.provide(Layer.effect(Models, chosen), base)
}

/** Registers the application's kinds of tasks and its workers. */
const registered = ({ tasks = [], workers = [] }: AnyOptions): Layer.Layer<never, Failure, unknown> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const [engine, queues] = [yield* Tasks, yield* Queues]
      for (const definition of tasks) yield* engine.register(definition)
      for (const worker of workers) yield* queues.register(worker)
    }),
  )

/** Answers on the socket beside the database, for processes that attach. */
const serveLayer = (lease: Lease): Layer.Layer<never, Failure, Sessions> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { serveAttach } = yield* Effect.promise(() => import("./protocols/attach/serve.ts"))
      const self: Peer = { program: "super-pi", version: version(), pid: process.pid, instance: randomUUID() }
      yield* serveAttach({ path: lease.socket, sessions, self })
    }).pipe(
      Effect.mapError(
        (error) =>
          new ServiceFailure({
            code: "serve",
            detail: `other processes cannot attach: ${error.message}; storage.serve: false does without`,
            reference: "serve",
          }),
      ),
    ),
  )
