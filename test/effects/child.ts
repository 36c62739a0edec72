/**
 * One life of a node whose tool pays: the real tree, store and machine around a tool that kills its own process at one point.
 * `SUPER_PI_KILL_CASE` is the case as JSON.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { Effect, Layer, Logger, Schema } from "effect"
import { defaultPolicy } from "../../src/actors/conversation/machine/data.ts"
import { ConversationSettings } from "../../src/actors/conversation/settings.ts"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import { Sessions } from "../../src/actors/sessions.ts"
import { text } from "../../src/domain/message.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { nodeLayer } from "../../src/supervisors/node.ts"
import { defineTool, toolFailure } from "../../src/tools/define.ts"
import type { Reconciliation, ToolContext, ToolFailure } from "../../src/tools/tool.ts"
import { makeTools, Tools } from "../../src/tools/tools.ts"
import { type KillCase, type KillPoint, prompt, script } from "./case.ts"

const given: KillCase = JSON.parse(process.env.SUPER_PI_KILL_CASE ?? "null")

/** Dies here if this is the point; else goes on. */
const maybeDie = (matches: (point: KillPoint) => boolean): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (given.kill === null || !matches(given.kill)) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })

const around = (when: "before" | "during" | "after") =>
  maybeDie((point) => point.at === "effect" && point.when === when)

const paid = (key: string): boolean =>
  existsSync(given.payments) && readFileSync(given.payments, "utf8").split("\n").includes(key)

const reconcile = (_: unknown, { idempotencyKey }: ToolContext): Effect.Effect<Reconciliation, ToolFailure> =>
  Effect.gen(function* () {
    yield* maybeDie((point) => point.at === "reconcile")
    switch (given.finding) {
      case "unknown":
        return { unknown: true, reason: "the bank does not answer." }
      case "fails":
        return yield* Effect.fail(toolFailure("pay", "the bank is closed."))
      default:
        return paid(idempotencyKey)
          ? { happened: true, result: { output: [text("paid, as the bank says")] } }
          : { happened: false }
    }
  })

const pay = defineTool({
  name: "pay",
  description: "Pays",
  parameters: Schema.Struct({ amount: Schema.Int }),
  effects: ["net_write"],
  execute: (_, { emit, idempotencyKey }) =>
    Effect.gen(function* () {
      yield* around("before")
      appendFileSync(given.payments, `${idempotencyKey}\n`)
      yield* around("during")
      yield* emit("the bank took it\n")
      yield* around("after")
      return { output: [text("paid")] }
    }),
  ...(given.finding === "none" ? {} : { reconcile }),
})

let commits = 0
const dyingStore = (store: StoreService): StoreService => ({
  ...store,
  commit: (commit) =>
    Effect.suspend(() => {
      const n = ++commits
      const die = (when: "before" | "after") =>
        maybeDie((point) => point.at === "commit" && point.n === n && point.when === when)
      return die("before").pipe(
        Effect.zipRight(store.commit(commit)),
        Effect.tap(() => die("after")),
      )
    }),
})

const services = Layer.mergeAll(
  ActorSystem.layer(),
  Layer.scoped(Store, Effect.map(makeSqliteStore({ path: given.db }), dyingStore)),
  Layer.succeed(Models, makeModels({ env: {}, script })),
  Layer.succeed(Tools, makeTools([pay])),
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

const life = Effect.gen(function* () {
  const sessions = yield* Sessions
  const agent = { model: "script/kill" }
  const { conversation_id } = yield* sessions.open({ conversationId: null, agent, title: null, requestId: "open" })
  const target = { conversationId: conversation_id }
  const receipt = yield* sessions.submit({ ...target, content: [text(prompt)], requestId: "turn" })
  const settled = yield* sessions.awaitSubmission({ ...target, submissionId: receipt.submission_id })
  process.stdout.write(`${JSON.stringify({ status: settled.status, text: settled.text, commits })}\n`)
})

await Effect.runPromise(
  life.pipe(Effect.provide(Layer.provide(nodeLayer, services)), Effect.provide(Logger.remove(Logger.defaultLogger))),
)
