/**
 * One life of a node that writes, forks, resets and hands off, and kills itself around one of its commits. What it asks for carries request
 * ids, so that a later life goes on where this one died. `SUPER_PI_FORKS_CASE` is the case as JSON; the last line printed is the shape of
 * all conversations.
 */
import { writeSync } from "node:fs"
import { Effect, Layer, Logger, Schema } from "effect"
import { defaultPolicy } from "../../src/actors/conversation/machine/data.ts"
import { ConversationSettings } from "../../src/actors/conversation/settings.ts"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import { Sessions } from "../../src/actors/sessions.ts"
import { deriveContext } from "../../src/domain/context.ts"
import type { Entry } from "../../src/domain/entry.ts"
import type { Failure } from "../../src/domain/failure.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { Models } from "../../src/models/model.ts"
import type { Script } from "../../src/models/providers/script-file.ts"
import { makeModels } from "../../src/models/service.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { nodeLayer } from "../../src/supervisors/node.ts"
import { defineTool } from "../../src/tools/define.ts"
import { makeTools, Tools } from "../../src/tools/tools.ts"

export interface ForksCase {
  readonly db: string
  /** The commit around which it dies, counted from 1 in this life; null lives to the end. */
  readonly crash: { readonly n: number; readonly when: "before" | "after" } | null
}

const given: ForksCase = JSON.parse(process.env.SUPER_PI_FORKS_CASE ?? "null")

let commits = 0

const maybeDie = (n: number, when: "before" | "after"): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (given.crash?.n !== n || given.crash.when !== when) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })

const dyingStore = (store: StoreService): StoreService => ({
  ...store,
  commit: (commit) =>
    Effect.suspend(() => {
      const n = ++commits
      return Effect.zipRight(maybeDie(n, "before"), Effect.zipLeft(store.commit(commit), maybeDie(n, "after")))
    }),
})

const handoff = defineTool({
  name: "handoff",
  description: "Hands off",
  parameters: Schema.Struct({ note: Schema.String }),
  effects: ["read"],
  replay: "safe",
  execute: ({ note }) => Effect.succeed({ output: [text("handed off")], control: { handoff: note } }),
})

const rules: Script["rules"] = [
  { match: "^hand off$", steps: [{ text: "so be it", tools: [{ name: "handoff", args: { note: "the note" } }] }] },
  { match: "", steps: [{ text: "said" }] },
]

const services = Layer.mergeAll(
  ActorSystem.layer(),
  Layer.scoped(Store, Effect.map(makeSqliteStore({ path: given.db }), dyingStore)),
  Layer.succeed(Models, makeModels({ env: {}, script: { rules } })),
  Layer.succeed(Tools, makeTools([handoff])),
  Layer.succeed(ConversationSettings, {
    node: `child-${process.pid}`,
    policy: defaultPolicy,
    defaultMode: "auto",
    defaultEffort: undefined,
    defaultCwd: process.cwd(),
    confined: true,
    platform: process.platform,
    idleMs: 30_000,
  }),
)

/** Entries by their place, so that two lives can be compared. */
const shapeOf = (entries: ReadonlyArray<Entry>) => {
  const place = new Map(entries.map((entry, at) => [entry.id, at]))
  return {
    entries: entries.map(({ data, edits, head, kind, model }) => ({
      kind,
      data,
      text: model.map((message) => (message.role === "system" ? "" : textOf(message.content))),
      head: head === null ? null : place.get(head),
      edits: edits.map((edit) => ({ ...edit, entry: place.get(edit.entry) })),
    })),
    context: deriveContext(entries).map((message) => message.role),
  }
}

const life: Effect.Effect<object, Failure, Sessions> = Effect.gen(function* () {
  const sessions = yield* Sessions
  const agent = { model: "script/forks", instructions: "early" }
  const root = (yield* sessions.open({ conversationId: null, agent, title: null, requestId: "open" })).conversation_id
  const ask = (conversationId: ConversationId, value: string) =>
    Effect.gen(function* () {
      const receipt = yield* sessions.submit({ conversationId, content: [text(value)], requestId: value })
      return yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
    })
  yield* ask(root, "one")
  yield* sessions.write({ conversationId: root, kind: "app.note", data: { n: 1 }, requestId: "note" })
  const first = (yield* sessions.transcript({ conversationId: root })).find((entry) => entry.kind === "pi.user")
  if (first === undefined) return yield* Effect.dieMessage("the first input is gone")
  const edits = [{ type: "omit" as const, entry: first.id }]
  yield* sessions.write({ conversationId: root, edits, requestId: "edit" })
  const branch = { conversationId: root, entryId: first.id, agent: { effort: "low" as const }, title: "branch" }
  const fork = (yield* sessions.fork({ ...branch, requestId: "fork" })).conversation_id
  yield* ask(fork, "two")
  yield* sessions.reset({ conversationId: fork, handoff: "from here", requestId: "reset" })
  yield* ask(fork, "three")
  const handed = yield* ask(root, "hand off")
  const of = (conversationId: ConversationId) => Effect.map(sessions.transcript({ conversationId }), shapeOf)
  const listed = (yield* sessions.list({})).map((row) => [row.title, row.forked_from === null, row.entries, row.busy])
  return { root: yield* of(root), fork: yield* of(fork), handed: handed.status, listed: listed.sort() }
})

const program = Effect.map(Effect.provide(life, Layer.provide(nodeLayer, services)), (shape) =>
  writeSync(1, `${JSON.stringify({ commits, shape })}\n`),
)

await Effect.runPromise(Effect.provide(program, Logger.remove(Logger.defaultLogger)))
