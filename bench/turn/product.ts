/**
 * Ours: the whole product path in one process. Actors, the conversation machine, permission check, context and its check, a tool call on a
 * sandbox thread, events to a watcher, commits; the model answers at once.
 */
import { tmpdir } from "node:os"
import { Effect, Either, Fiber, Layer, ManagedRuntime, Schema, Stream } from "effect"
import { defaultPolicy } from "../../src/actors/conversation/machine/data.ts"
import { ConversationSettings } from "../../src/actors/conversation/settings.ts"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import { Sessions } from "../../src/actors/sessions.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { type ModelPart, type ModelProvider, ModelRejected, type ModelRequest, Models } from "../../src/models/model.ts"
import { modelsOver } from "../../src/models/service.ts"
import { settingsOfUrl } from "../../src/storage/postgres/settings.ts"
import { SqliteStore } from "../../src/storage/sqlite/store.ts"
import type { Store } from "../../src/storage/store.ts"
import { serverStore } from "../../src/super-pi-server.ts"
import { nodeLayer } from "../../src/supervisors/node.ts"
import { defineTool, toolFailure } from "../../src/tools/define.ts"
import { Sandbox } from "../../src/tools/sandbox.ts"
import { sandboxPool } from "../../src/tools/sandbox-pool.ts"
import { toolsLayer } from "../../src/tools/tools.ts"
import type { OpenEngine, TurnEngine } from "./engine.ts"
import { answerText, promptText, toolArguments, toolOutput } from "./turn.ts"

const info = {
  ...{ id: "instant/model", provider: "instant", name: "model", contextWindow: 1_000_000_000 },
  ...{ images: false, thinking: false, isDefault: true },
}

/** Looks at the last message only, so that it costs the same at every length of a history. */
const instant = (): ModelProvider => {
  let calls = 0
  const answer = Effect.succeed<ReadonlyArray<ModelPart>>([
    { type: "text", delta: answerText },
    { type: "finish", content: [text(answerText)], stopReason: "stop", usage: noUsage },
  ])
  const partsFor = ({ messages }: ModelRequest): Effect.Effect<ReadonlyArray<ModelPart>, ModelRejected> => {
    const last = messages.at(-1)
    if (last?.role === "tool") {
      if (!last.isError) return answer
      // A turn whose tool did not run is not what is measured.
      return new ModelRejected({ model: info.id, status: null, detail: `the tool failed: ${textOf(last.content)}` })
    }
    const call = { type: "toolCall", id: `call_${calls++}`, name: "noop", arguments: toolArguments } as const
    return Effect.succeed([{ type: "finish", content: [call], stopReason: "tool_calls", usage: noUsage }])
  }
  return {
    id: "instant",
    handles: () => true,
    wireName: (model) => model,
    variables: [],
    configured: Effect.succeed(true),
    defaultModel: info.id,
    models: Effect.succeed([info]),
    info: () => info,
    stream: (request) => Stream.unwrap(Effect.map(partsFor(request), Stream.fromIterable)),
    respond: (request, sink) => Effect.flatMap(partsFor(request), sink),
  }
}

/** Does nothing, on a sandbox thread under its limits. */
const noop = defineTool({
  name: "noop",
  description: "Does nothing.",
  parameters: Schema.Struct({ path: Schema.String, note: Schema.String }),
  effects: ["read"],
  replay: "safe",
  execute: () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox
      yield* sandbox.run("diff", { before: "", after: "", diffLines: 1 }, { deadlineMs: 5_000, heapMb: 64 })
      return { output: [text(toolOutput)] }
    }).pipe(Effect.mapError((error) => toolFailure("noop", error.message))),
})

const settings = (idleMs: number) =>
  Layer.succeed(ConversationSettings, {
    node: "bench",
    policy: defaultPolicy,
    defaultMode: "auto",
    defaultEffort: undefined,
    defaultCwd: tmpdir(),
    confined: true,
    platform: process.platform,
    idleMs,
  })

/** The sessions of a node on a store, its model and tool; a conversation leaves memory after `idleMs`. */
const productOver = <E>(store: Layer.Layer<Store, E>, idleMs: number) =>
  Layer.provide(
    nodeLayer,
    Layer.mergeAll(
      ActorSystem.layer(),
      store,
      Layer.succeed(Models, modelsOver([instant()], [])),
      Layer.provide(toolsLayer([noop]), sandboxPool()),
      settings(idleMs),
    ),
  )

/** {@link productOver} the database at `path`. */
export const productLayer = (path: string, idleMs: number) => productOver(SqliteStore.layer({ path }), idleMs)

/** Long enough for no conversation to leave memory meanwhile. */
const idleMs = 60_000

export const openProduct: OpenEngine = (path) => opened(productLayer(path, idleMs))

/** On a database of a PostgreSQL server, without tables yet. */
export const openPostgresProduct: OpenEngine = (url) =>
  opened(productOver(serverStore(Either.getOrThrow(settingsOfUrl(url)), { node: "bench", program: "bench" }), idleMs))

const opened = async <E>(layer: Layer.Layer<Sessions, E>): Promise<TurnEngine> => {
  const runtime = ManagedRuntime.make(layer)
  const sessions = await runtime.runPromise(Sessions)
  const ids = new Map<number, ConversationId>()
  const watchers: Array<Fiber.RuntimeFiber<void, unknown>> = []

  const open = Effect.map(
    sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
    (state) => state.conversation_id,
  )

  const ask = (conversationId: ConversationId, turn: number) =>
    Effect.flatMap(
      sessions.submit({ conversationId, content: [text(promptText(turn))], requestId: `turn-${turn}` }),
      (receipt) => sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id }),
    )

  return {
    begin: async (count) => {
      for (let conversation = 1; conversation <= count; conversation++) {
        const id = await runtime.runPromise(open)
        ids.set(conversation, id)
        watchers.push(runtime.runFork(Stream.runDrain(sessions.watch({ conversationId: id, after: null }))))
      }
    },
    turn: async (conversation, turn) => {
      const id = ids.get(conversation)
      if (id === undefined) throw new RangeError(`conversation ${conversation} was not begun`)
      const { detail, text: answer, status } = await runtime.runPromise(ask(id, turn))
      if (answer !== answerText) throw new Error(`turn ${turn} ended ${status}: ${detail ?? answer}`)
    },
    close: async () => {
      await Effect.runPromise(Fiber.interruptAll(watchers))
      await runtime.dispose()
    },
  }
}
