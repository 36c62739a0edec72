/**
 * The MCP servers of a node, below `/user/node/mcp`: one supervised link per server, those of the node for its whole life, those of a
 * conversation while it is in memory. A link that crashes is restarted; what its server's tools were stays until they are listed anew.
 */
import { Deferred, Effect, Runtime } from "effect"
import { type ActorRef, type ActorSystem, ask, spawn, stop } from "../actors/kernel/index.ts"
import { type LinkMessage, mcpLink } from "../actors/mcp/actor.ts"
import { Catalog, Entry, viewOf } from "../actors/mcp/catalog.ts"
import type { ConfiguredServer } from "../actors/mcp/config.ts"
import { resolveServer } from "../actors/mcp/placeholders.ts"
import type { McpServersService } from "../actors/mcp/servers.ts"
import type { McpSettings } from "../actors/mcp/settings.ts"
import { mcpTools } from "../actors/mcp/tools.ts"
import { NotFound } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { McpServer } from "../domain/mcp.ts"
import { dynamicSupervisor } from "./dynamic-supervisor.ts"

/** Registry name of the links' supervisor. */
export const mcpName = "mcp"

/** A link that broke is started again by itself; so many breaks in a minute are a fault of ours. */
export const mcpSupervisor = dynamicSupervisor({
  name: "mcp",
  restart: "permanent",
  maxRestarts: 100,
  withinMs: 60_000,
})

/** Loaded with the first server. */
const load = () => import("../actors/mcp/open.ts").then(({ openConnection }) => openConnection)

/** How long a link may take to end its connection, in ms: longer than the process and the session together. */
const shutdownMs = 6_000

interface McpParts {
  readonly settings: McpSettings
  /** The supervisor of the links. */
  readonly parent: ActorRef<never>
}

const sameServer = (a: McpServer, b: McpServer): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Starts the node's servers, without waiting for them. */
export const makeMcpServers = ({ parent, settings }: McpParts): Effect.Effect<McpServersService, never, ActorSystem> =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<ActorSystem>()
    const catalog = new Catalog(settings.exposure === "deferred")
    /** How often a link of that name was started. */
    const names = new Map<string, number>()

    const start = (entry: Entry, root: string): Effect.Effect<void, never, ActorSystem> => {
      const { conversation, server } = entry
      const labels = { mcp_server: server.name, ...(conversation === null ? {} : { conversation_id: conversation }) }
      const { callMs, env, startupMs, tokens, version } = settings
      const link = mcpLink({
        server,
        resolved: () => (conversation === null ? resolveServer(server, env) : server),
        open: { root, env, startupMs, tokens, version },
        log: (line) => void Runtime.runFork(runtime)(Effect.annotateLogs(Effect.logInfo(line), labels)),
        now: () => Date.now(),
        random: Math.random,
        load,
        publish: (view, tools, ref) => {
          entry.view = view
          if (view.state !== "connecting") entry.settle()
          if (tools === null) return
          entry.tools = mcpTools(tools, { server: server.name, link: ref, startupMs, callMs })
          catalog.changed()
        },
      })
      const base = `${conversation === null ? "" : `${conversation}-`}${encodeURIComponent(server.name)}`
      // One that ends has its name until it is gone.
      const used = names.get(base) ?? 0
      names.set(base, used + 1)
      const name = used === 0 ? base : `${base}.${used + 1}`
      return spawn(link, { parent, name, childSpec: { restart: "permanent", shutdownMs } }).pipe(
        Effect.matchEffect({
          onSuccess: (ref) =>
            Effect.sync(() => {
              entry.link = ref
            }),
          onFailure: (error) =>
            Effect.sync(() => {
              entry.view = { ...entry.view, state: "failed", detail: error.message }
              entry.settle()
            }),
        }),
      )
    }

    const end = (entry: Entry): Effect.Effect<void> => {
      entry.settle()
      const { link } = entry
      entry.link = null
      return link === null ? Effect.void : Effect.asVoid(Effect.forkDaemon(stop(link)))
    }

    /** Makes the servers of a conversation, or of the node, what they are to be. */
    const sync = (
      conversation: ConversationId | null,
      wanted: ReadonlyArray<ConfiguredServer>,
      root: string,
    ): Effect.Effect<void, never, ActorSystem> =>
      Effect.gen(function* () {
        const before = catalog.entries(conversation)
        const fresh: Array<Entry> = []
        const after = wanted.map(({ disabled, server }) => {
          const known = before.find((one) => one.disabled === disabled && sameServer(one.server, server))
          if (known !== undefined) return known
          const entry = new Entry(server, conversation, disabled)
          fresh.push(entry)
          return entry
        })
        if (fresh.length === 0 && after.length === before.length) return
        catalog.set(conversation, after)
        yield* Effect.forEach(
          before.filter((one) => !after.includes(one)),
          end,
          { discard: true },
        )
        yield* Effect.forEach(
          fresh.filter(({ disabled }) => !disabled),
          (entry) => start(entry, root),
          { discard: true },
        )
      })
    yield* sync(null, settings.servers(), settings.root)

    const provided = <A, E>(effect: Effect.Effect<A, E, ActorSystem>): Effect.Effect<A, E> =>
      Effect.provide(effect, runtime.context)

    return {
      list: (conversation) => Effect.sync(() => catalog.entries(conversation).map(viewOf)),
      restart: (conversation, name) =>
        Effect.gen(function* () {
          if (conversation === null) yield* provided(sync(null, settings.servers(), settings.root))
          const entry = catalog.find(conversation, name)
          if (entry === null) return yield* new NotFound({ what: `MCP server ${name}` })
          const { link } = entry
          if (link !== null) {
            const timeoutMs = settings.startupMs + 1_000
            yield* Effect.exit(ask<LinkMessage, void>(link, (reply) => ({ type: "restart", reply }), { timeoutMs }))
          }
          return viewOf(entry)
        }),
      tools: {
        revision: () => catalog.revision,
        of: (conversation, found) => catalog.of(conversation, found),
        ready: (conversation) => {
          const starting = catalog.starting(conversation)
          if (starting.length === 0) return null
          return Effect.forEach(starting, ({ settled }) => Deferred.await(settled), {
            concurrency: "unbounded",
            discard: true,
          }).pipe(Effect.timeoutOption(settings.startupMs + 1_000), Effect.asVoid)
        },
        enter: (conversation, servers, root) =>
          provided(
            sync(
              conversation,
              servers.map((server) => ({ server, disabled: false })),
              root,
            ),
          ),
        leave: (conversation) =>
          Effect.suspend(() => {
            const entries = catalog.entries(conversation)
            if (entries.length === 0) return Effect.void
            catalog.set(conversation, [])
            return Effect.forEach(entries, end, { discard: true })
          }),
      },
    } satisfies McpServersService
  })
