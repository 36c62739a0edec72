/**
 * One life of a node that kills itself: the real supervision tree, store and conversation machine, around them a store, models and tools that
 * send SIGKILL to their own process at one point. `SUPER_PI_CRASH_CASE` is the case as JSON.
 */
import { appendFileSync, writeSync } from "node:fs"
import { Deferred, Effect, FiberId, Layer, Logger, Schema } from "effect"
import { defaultPolicy } from "../../src/actors/conversation/machine/data.ts"
import { ConversationSettings } from "../../src/actors/conversation/settings.ts"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import { Sessions } from "../../src/actors/sessions.ts"
import type { Failure } from "../../src/domain/failure.ts"
import type { SubmissionId } from "../../src/domain/ids.ts"
import { type ModelPart, Models, type ModelsService } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { type Commit, Store, type StoreService } from "../../src/storage/store.ts"
import { nodeLayer } from "../../src/supervisors/node.ts"
import { defineTool } from "../../src/tools/define.ts"
import { makeTools, Tools } from "../../src/tools/tools.ts"
import { type ChildLine, type CrashCase, type CrashPoint, nextPrompt, prompt, script, storyPrompt } from "./case.ts"

const given: CrashCase = JSON.parse(process.env.SUPER_PI_CRASH_CASE ?? "null")

/** Written at once: what was printed before the kill is what the parent holds the database to. */
const print = (line: ChildLine): void => {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

const counts = { commit: 0, model: 0, tool: 0 }

/** Dies here if this is the point; else goes on. */
const maybeDie = (at: CrashPoint["at"], n: number, when: CrashPoint["when"]): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { crash } = given
    if (crash === null || crash.at !== at || crash.n !== n || crash.when !== when) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })

const ids = (rows: ReadonlyArray<{ readonly id: number }> | undefined) => (rows ?? []).map(({ id }) => id)

/** Commits about queues alone are the node's own, and come when they come. */
const ofQueues = new Set(["jobs", "jobUpdates", "jobClaims", "pruneJobs"])
const isOfQueues = (commit: Commit): boolean => Object.keys(commit).every((part) => ofQueues.has(part))

const dyingStore = (store: StoreService): StoreService => ({
  ...store,
  commit: (commit: Commit) =>
    Effect.suspend(() => {
      if (isOfQueues(commit)) return store.commit(commit)
      const n = ++counts.commit
      return maybeDie("commit", n, "before").pipe(
        Effect.zipRight(store.commit(commit)),
        Effect.tap((seq) =>
          Effect.sync(() => {
            const { entries, submissions, tasks } = commit
            print({ type: "committed", seq, entries: ids(entries), tasks: ids(tasks), submissions: ids(submissions) })
          }),
        ),
        Effect.tap(() => maybeDie("commit", n, "after")),
      )
    }),
})

const dyingModels = (models: ModelsService): ModelsService => ({
  ...models,
  respond: (request, sink) =>
    Effect.suspend(() => {
      const n = ++counts.model
      const one = (part: ModelPart) =>
        Effect.zipRight(maybeDie("model", n, part.type === "finish" ? "after" : "during"), sink([part]))
      const respond = models.respond(request, (parts) => Effect.forEach(parts, one, { discard: true }))
      return Effect.zipRight(maybeDie("model", n, "before"), respond)
    }),
})

/** Done once the second input is admitted: the calls wait for it, so that every life has the same commits in the same order. */
const queued = Deferred.unsafeMake<void>(FiberId.none)

const logger = (name: string, replay: "safe" | "unsafe") =>
  defineTool({
    name,
    description: `Appends a line to a file outside the workspace (${replay} to repeat)`,
    parameters: Schema.Struct({ line: Schema.String }),
    effects: ["exec"],
    replay,
    execute: ({ line }) =>
      Effect.gen(function* () {
        const n = ++counts.tool
        yield* maybeDie("tool", n, "before")
        if (given.followUp) yield* Deferred.await(queued)
        appendFileSync(given.effects, `${line}\n`)
        yield* maybeDie("tool", n, "during")
        if (replay === "unsafe") appendFileSync(given.effects, `${line.replace("start", "end")}\n`)
        yield* maybeDie("tool", n, "after")
        return { output: [{ type: "text", text: `done ${line}` }] }
      }),
  })

const settings = Layer.succeed(ConversationSettings, {
  node: `child-${process.pid}`,
  policy: {
    ...defaultPolicy,
    // On a slow machine a flush would be one commit more.
    flushMs: 600_000,
    ...(given.compaction
      ? { compaction: { mode: "summary" as const, reserveTokens: 100_000, backgroundTokens: 0 } }
      : {}),
  },
  defaultMode: "auto",
  defaultEffort: undefined,
  defaultCwd: given.workspace,
  confined: true,
  platform: process.platform,
  idleMs: 30_000,
})

const services = Layer.mergeAll(
  ActorSystem.layer(),
  Layer.scoped(Store, Effect.map(makeSqliteStore({ path: given.db }), dyingStore)),
  Layer.succeed(Models, dyingModels(makeModels({ env: {}, script }))),
  Layer.succeed(Tools, makeTools([logger("append", "unsafe"), logger("look", "safe")])),
  settings,
)

/** Repeats what an earlier life began: the request ids make it the same conversation and the same submissions. */
const life: Effect.Effect<void, Failure, Sessions> = Effect.gen(function* () {
  const sessions = yield* Sessions
  const agent = { model: "script/crash" }
  const opened = yield* sessions.open({ conversationId: null, agent, title: null, requestId: "open" })
  const conversationId = opened.conversation_id
  print({ type: "opened", conversation: conversationId })
  const submit = (text: string, requestId: string) =>
    Effect.gen(function* () {
      const content = [{ type: "text" as const, text }]
      const receipt = yield* sessions.submit({ conversationId, content, requestId })
      print({ type: "acknowledged", submission: receipt.submission_id })
      return receipt.submission_id
    })
  const settle = (submissionId: SubmissionId, request: string) =>
    Effect.map(sessions.awaitSubmission({ conversationId, submissionId }), ({ status, text }) =>
      print({ type: "settled", request, status, text }),
    )
  if (given.compaction) yield* settle(yield* submit(storyPrompt, "story"), "story")
  const turn = yield* submit(prompt, "turn")
  const next = given.followUp ? yield* submit(nextPrompt, "next") : null
  yield* Deferred.succeed(queued, undefined)
  yield* settle(turn, "turn")
  if (next !== null) yield* settle(next, "next")
})

const program = life.pipe(
  Effect.provide(Layer.provide(nodeLayer, services)),
  Effect.tap(() => Effect.sync(() => print({ type: "counts", ...counts }))),
  Effect.provide(Logger.remove(Logger.defaultLogger)),
)

await Effect.runPromise(program)
