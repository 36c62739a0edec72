/**
 * One life of a node whose conversation hands tasks to three subagents, each of which makes one call that must not happen twice. What it asks
 * for carries request ids, so that a later life goes on where this one died.
 */
import { Effect, Layer, Schema } from "effect"
import { defaultPolicy } from "../../src/actors/conversation/machine/data.ts"
import { ConversationSettings } from "../../src/actors/conversation/settings.ts"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import type { Sessions, SessionsService } from "../../src/actors/sessions.ts"
import { type Entry, EntryKind } from "../../src/domain/entry.ts"
import type { Failure } from "../../src/domain/failure.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { delegateTool } from "../../src/harness/plugins/subagent.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import type { Store } from "../../src/storage/store.ts"
import { nodeLayer } from "../../src/supervisors/node.ts"
import { defineTool } from "../../src/tools/define.ts"
import { makeTools, Tools } from "../../src/tools/tools.ts"

const names = ["a", "b", "c"]

const rules = [
  {
    match: "^go$",
    steps: [
      {
        text: "delegating",
        tools: [{ name: "delegate_subagent", args: { tasks: names.map((task) => ({ role: "worker", task })) } }],
      },
    ],
  },
  { match: "^Subagent ", steps: [{ text: "all done" }] },
  ...names.map((name) => ({
    match: `^${name}$`,
    steps: [{ text: "once", tools: [{ name: "once", args: { name } }] }, { text: `${name} is done` }],
  })),
]

/** `happen` is called when the unsafe call of a child takes effect. */
export const nodeOf = (store: Layer.Layer<Store>, happen: (name: string) => void): Layer.Layer<Sessions, Failure> => {
  const once = defineTool({
    name: "once",
    description: "Happens outside.",
    parameters: Schema.Struct({ name: Schema.String }),
    effects: ["exec"],
    execute: ({ name }) => {
      happen(name)
      return Effect.succeed({ output: [text("happened")] })
    },
  })
  const services = Layer.mergeAll(
    ActorSystem.layer(),
    store,
    Layer.sync(Models, () => makeModels({ env: {}, script: { rules } as never })),
    Layer.succeed(Tools, makeTools([delegateTool({ maxDepth: 1, timeoutMs: 60_000 }), once])),
    Layer.succeed(ConversationSettings, {
      node: `life-${process.pid}`,
      policy: { ...defaultPolicy, flushMs: 600_000 },
      defaultMode: "auto",
      defaultEffort: undefined,
      defaultCwd: process.cwd(),
      confined: true,
      platform: process.platform,
      idleMs: 600_000,
    }),
  )
  return Layer.provide(nodeLayer, services)
}

const texts = (entries: ReadonlyArray<Entry>, kind: string): ReadonlyArray<string> =>
  entries
    .filter((entry) => entry.kind === kind)
    .flatMap(({ model }) => model.map((message) => (message.role === "system" ? "" : textOf(message.content))))

/** What all of it looks like when it is over. */
export interface Ended {
  readonly status: string
  readonly text: string | null
  /** Sorted, with `N` for numbers. */
  readonly summaries: ReadonlyArray<string>
  /** Of each child: its user texts, and its final text. */
  readonly children: ReadonlyArray<{ readonly asked: ReadonlyArray<string>; readonly said: string | undefined }>
}

export const expected: Ended = {
  status: "done",
  text: "all done",
  summaries: names.map((name) => `Subagent worker (conversation N) finished: ${name} is done`),
  children: names.map((name) => ({ asked: [name], said: `${name} is done` })),
}

export const life = (sessions: SessionsService): Effect.Effect<Ended, Failure> =>
  Effect.gen(function* () {
    const agent = { model: "script/test" }
    const opened = yield* sessions.open({ conversationId: null, agent, title: null, requestId: "open" })
    const conversationId = opened.conversation_id
    const receipt = yield* sessions.submit({ conversationId, content: [text("go")], requestId: "go" })
    const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
    const entries = yield* sessions.transcript({ conversationId })
    const summaries = texts(entries, EntryKind.subagent)
    const ids = summaries.map((line) => Number(/conversation (\d+)/.exec(line)?.[1]) as ConversationId)
    const children = yield* Effect.forEach(
      [...ids].sort((a, b) => a - b),
      (id) =>
        Effect.map(sessions.transcript({ conversationId: id }), (all) => ({
          asked: texts(all, EntryKind.user),
          said: texts(all, EntryKind.assistant).at(-1),
        })),
    )
    return {
      status: settled.status,
      text: settled.text,
      summaries: summaries.map((line) => line.replace(/\d+/g, "N")).sort(),
      children,
    }
  })
