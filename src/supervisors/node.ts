/**
 * The supervision tree of one node, and the sessions that it serves:
 *
 *   /user/workers (dynamic)        file locks, sandbox slots (workers.ts)
 *   /user/node (one_for_one)
 *     mcp (dynamic)                one link per MCP server (mcp.ts)
 *     conversations (dynamic)      one keeper per conversation, its machine, its jobs
 *     tasks                        the ledger of the application's tasks, one actor per task that runs
 *     queues                       one actor per queue, its jobs (queues.ts)
 *
 * At the start every conversation with open work is started: it recovers by itself; in a cluster those of the shards that the node takes. At the end the tree stops in reverse order; machines
 * release their tasks, so that a clean stop counts as no crash.
 */
import { Context, Deferred, Effect, Layer, Option } from "effect"
import type { ConversationNeeds } from "../actors/conversation/index.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import { ConversationSettings } from "../actors/conversation/settings.ts"
import { type ActorRef, ActorSystem, ask, spawn, stop } from "../actors/kernel/index.ts"
import { defaultMcpSettings, McpConfig } from "../actors/mcp/settings.ts"
import { Queues } from "../actors/queue/queues.ts"
import { Sessions } from "../actors/sessions.ts"
import { Tasks } from "../actors/task/service.ts"
import { type Failure, ServiceFailure } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { Task } from "../domain/task.ts"
import { isWorkflow } from "../domain/task-rules.ts"
import { Harnesses, type HarnessesService } from "../harness/registry.ts"
import { Models } from "../models/model.ts"
import { Documents, makeDocuments } from "../storage/documents/documents.ts"
import { Store, type StoreService } from "../storage/store.ts"
import { Tools } from "../tools/tools.ts"
import { child } from "./child.ts"
import { Clustering } from "./cluster/clustering.ts"
import { type Conversations, makeConversations } from "./conversations.ts"
import { dynamicSupervisor } from "./dynamic-supervisor.ts"
import { makeMcpServers, mcpName, mcpSupervisor } from "./mcp.ts"
import { queueParts } from "./queue-parts.ts"
import { makeSessions } from "./sessions.ts"
import { childrenPort } from "./subagents.ts"
import { supervisor } from "./supervisor.ts"
import { followTaskPlaces } from "./task-sharing.ts"
import { makeTasks, taskParts, tasksChild } from "./tasks.ts"
import { routedTasks } from "./tasks-routed.ts"

/** Registry name of the keepers' supervisor. */
const conversationsName = "conversations"

/**
 * The sessions, tasks and queues of a node that owns its database. Scoped: releasing it stops every conversation, task and job cleanly.
 */
export const nodeLayer: Layer.Layer<Sessions | Tasks | Queues, Failure, ActorSystem | ConversationNeeds> =
  Layer.scopedContext(
    Effect.gen(function* () {
      const system = yield* ActorSystem
      const models = yield* Models
      const settings = yield* ConversationSettings
      const tools = yield* Tools
      const { node } = settings
      const ready = yield* Deferred.make<Conversations>()
      const parts = yield* taskParts({ store: yield* Store, node, cancelConversation: cancelIn(Deferred.await(ready)) })
      const { store } = parts
      const open = [...parts.feed.rows.values()]
      const queueing = yield* queueParts({ store, system, node })
      const root = supervisor({
        name: "node",
        strategy: "one_for_one",
        children: [
          // First, and so stopped last: calls of conversations use them.
          child("mcp", mcpSupervisor, { register: mcpName }),
          child(
            "conversations",
            dynamicSupervisor({ name: "conversations", restart: "temporary", shutdownMs: 10_000 }),
            {
              register: conversationsName,
            },
          ),
          tasksChild(parts),
          queueing.child,
        ],
      })
      yield* Effect.acquireRelease(spawn(root, { name: "node" }).pipe(Effect.mapError(notStarted)), (ref) => stop(ref))
      const found = yield* system.registry.whereis<never>(conversationsName)
      const parent = yield* found
      const mcp = yield* mcpServers(yield* yield* system.registry.whereis<never>(mcpName), settings.defaultCwd)
      const clustering = Option.getOrNull(yield* Effect.serviceOption(Clustering))
      const plain = yield* makeConversations(parent).pipe(
        Effect.provideService(Tools, mcp === null ? tools : { ...tools, source: mcp.tools }),
        Effect.provideService(Store, queueing.store),
        Effect.provideService(ConversationSettings, {
          ...settings,
          onSettled: queueing.settled.note,
          compactionSlots: settings.compactionSlots ?? queueing.compaction.slots,
          children: settings.children ?? childrenPort({ store, conversations: whenReady(Deferred.await(ready)) }),
        }),
      )
      const conversations = clustering === null ? plain : clustering.gate(plain)
      yield* Deferred.succeed(ready, conversations)
      if (clustering === null) yield* recoverAll(conversations, open)
      yield* queueing.begin(conversations)
      yield* followTaskPlaces(parts, system)
      const tasks = makeTasks(parts, system)
      const harnesses = Option.getOrNull(yield* Effect.serviceOption(Harnesses))
      const here = makeSessions({
        ...(clustering === null ? {} : { stateOf: clustering.stateOf }),
        store,
        models,
        system,
        conversations,
        queues: queueing.queues,
        tasks,
        harnesses,
        mcp,
      })
      const sessions = clustering === null ? here : yield* clustering.join(here)
      const services = Context.make(Sessions, sessions).pipe(
        Context.add(Tasks, clustering === null ? tasks : routedTasks(tasks, sessions.changeTask)),
        Context.add(Queues, queueing.queues),
      )
      if (harnesses !== null) yield* servePlugins(harnesses, services, store)
      return services
    }).pipe(Effect.catchTag("NoSuchElementException", () => Effect.fail(notStarted(new Error("no supervisor"))))),
  )

/** The MCP servers of the node as it is configured; null: it is to start none. */
const mcpServers = (parent: ActorRef<never>, root: string) =>
  Effect.flatMap(Effect.serviceOption(McpConfig), (config) => {
    const nothing = { ...defaultMcpSettings, servers: () => [], env: {}, root, tokens: null, version: "0" }
    const settings = Option.getOrElse(config, () => nothing)
    return settings === null ? Effect.succeed(null) : makeMcpServers({ parent, settings })
  })

/** Plugins may ask for every service that the node was built with, for those of the node itself, and for documents. */
const servePlugins = (
  { services }: HarnessesService,
  own: Context.Context<Sessions | Tasks | Queues>,
  store: StoreService,
): Effect.Effect<void> =>
  Effect.flatMap(Effect.context<never>(), (around) =>
    Deferred.succeed(
      services,
      // A plugin's type says which of them it needs.
      Context.add(Context.merge(around, own), Documents, makeDocuments(store)) as Context.Context<unknown>,
    ),
  )

/** The conversations of the node, for what is built before them. */
const whenReady = (ready: Effect.Effect<Conversations>): Conversations => ({
  get: (id) => Effect.flatMap(ready, ({ get }) => get(id)),
  peek: (id) => Effect.flatMap(ready, ({ peek }) => peek(id)),
})

/** Cancels the work of a conversation, for the task that owns it. */
const cancelIn = (conversations: Effect.Effect<Conversations>) => (id: ConversationId) =>
  Effect.flatMap(conversations, ({ get }) => get(id)).pipe(
    Effect.flatMap((ref) =>
      ask<ConversationMessage, { readonly cancelled: boolean }, Failure>(ref, (reply) => ({ type: "cancel", reply }), {
        timeoutMs: Number.POSITIVE_INFINITY,
      }),
    ),
    Effect.catchAll((error) => Effect.logError(`conversation ${id} was not cancelled: ${error.message}`)),
    Effect.asVoid,
  )

const notStarted = (cause: Error): ServiceFailure =>
  new ServiceFailure({ code: "start", detail: `the node did not start: ${cause.message}`, reference: "start" })

/** Starts every conversation that has open work. One that cannot start is reported and left for later. */
const recoverAll = (conversations: Conversations, open: ReadonlyArray<Pick<Task, "kind" | "conversation">>) =>
  Effect.forEach(
    new Set(open.filter((task) => !isWorkflow(task)).flatMap(({ conversation }) => conversation ?? [])),
    (id) =>
      conversations
        .get(id)
        .pipe(Effect.catchAll((failure) => Effect.logError(`conversation ${id} was not resumed: ${failure.message}`))),
    { concurrency: 8, discard: true },
  )
