/**
 * A node in the test's process: SQLite in a temporary directory (or what `support/engine.ts` was told), scripted models, small tools.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Chunk, Context, Deferred, Effect, Layer, Schema, Stream } from "effect"
import { defaultPolicy, type Policy } from "../../src/actors/conversation/machine/data.ts"
import { ConversationSettings } from "../../src/actors/conversation/settings.ts"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { Event } from "../../src/domain/event.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import type { Observer } from "../../src/observability/observer.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { nodeLayer } from "../../src/supervisors/node.ts"
import { defineTool } from "../../src/tools/define.ts"
import type { Tool } from "../../src/tools/tool.ts"
import { toolsLayer } from "../../src/tools/tools.ts"
import { engineAt } from "../support/engine.ts"

export const scriptModel = "script/test"

/** Echoes its `value`; replay-safe. */
export const echo: Tool = defineTool({
  name: "echo",
  description: "Returns its value.",
  parameters: Schema.Struct({ value: Schema.String }),
  effects: ["read"],
  replay: "safe",
  execute: ({ value }) => Effect.succeed({ output: [text(`echo: ${value}`)] }),
})

export interface NodeOptions {
  readonly rules: ReadonlyArray<unknown>
  readonly tools?: ReadonlyArray<Tool>
  readonly policy?: Partial<Policy>
  readonly idleMs?: number
  readonly observer?: Observer
  /** Stands between the node and its store. */
  readonly wrapStore?: (store: StoreService) => StoreService
}

/** The sessions layer over the database at `path`. */
export const nodeAt = (path: string, options: NodeOptions) => {
  const settings = Layer.succeed(ConversationSettings, {
    node: "test",
    policy: { ...defaultPolicy, backoffBaseMs: 5, ...options.policy },
    defaultMode: "auto",
    defaultEffort: undefined,
    defaultCwd: tmpdir(),
    confined: true,
    platform: "test",
    idleMs: options.idleMs ?? 30_000,
    ...(options.observer === undefined ? {} : { observer: options.observer }),
  })
  const services = Layer.mergeAll(
    Layer.map(engineAt(path), (context) => {
      const store = Context.get(context, Store)
      return Context.make(Store, options.wrapStore?.(store) ?? store)
    }),
    Layer.sync(Models, () => makeModels({ env: {}, model: scriptModel, script: { rules: options.rules } as never })),
    toolsLayer(options.tools ?? [echo]),
    settings,
    ActorSystem.layer(),
  )
  return Layer.provide(nodeLayer, services)
}

/** Runs `use` with a node on a fresh database; the directory is removed afterwards. */
export const withNode = <A, E>(
  options: NodeOptions,
  use: (sessions: SessionsService, path: string) => Effect.Effect<A, E>,
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-conversation-"))),
    (directory) => {
      const path = join(directory, "test.db")
      return Effect.flatMap(Sessions, (sessions) => use(sessions, path)).pipe(Effect.provide(nodeAt(path, options)))
    },
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
  )

/** A new conversation. */
export const open = (sessions: SessionsService): Effect.Effect<ConversationId, unknown> =>
  Effect.map(
    sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
    (state) => state.conversation_id,
  )

/** Submits a prompt and waits for its end. */
export const prompt = (sessions: SessionsService, conversationId: ConversationId, value: string) =>
  Effect.flatMap(sessions.submit({ conversationId, content: [text(value)], requestId: null }), (receipt) =>
    sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id }),
  )

/** The first event that satisfies `match`. */
export const until = (sessions: SessionsService, conversationId: ConversationId, match: (event: Event) => boolean) =>
  sessions.watch({ conversationId, after: null }).pipe(Stream.filter(match), Stream.runHead)

/** Starts collecting events, up to the first that satisfies `last`. Gives the fiber once its snapshot has arrived: nothing later is missed. */
export const collect = (sessions: SessionsService, conversationId: ConversationId, last: (event: Event) => boolean) =>
  Effect.gen(function* () {
    const joined = yield* Deferred.make<void>()
    const fiber = yield* sessions.watch({ conversationId, after: null }).pipe(
      Stream.tap((event) => (event.type === "snapshot" ? Deferred.succeed(joined, undefined) : Effect.void)),
      Stream.takeUntil(last),
      Stream.runCollect,
      Effect.map((chunk): ReadonlyArray<Event> => Chunk.toReadonlyArray(chunk)),
      Effect.fork,
    )
    yield* Deferred.await(joined)
    return fiber
  })

/** The conversation came to rest. */
export const atRest = (event: Event): boolean => event.type === "state_changed" && event.to === "idle"
