/**
 * One life of a node with a person who answers whatever is open: a real node around a store that kills its own process at one commit.
 * `SUPER_PI_KILL_CASE` is the case as JSON.
 */
import { appendFileSync } from "node:fs"
import { Deferred, Effect, Layer, Logger, Schema, Stream } from "effect"
import { Sessions } from "../../src/actors/sessions.ts"
import type { Event } from "../../src/domain/event.ts"
import { text } from "../../src/domain/message.ts"
import type { QuestionView } from "../../src/domain/question.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { anyPlugin, definePlugin } from "../../src/harness/define.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { SuperPi } from "../../src/super-pi.ts"
import { defineTool } from "../../src/tools/define.ts"
import { type KillCase, type KillPoint, rules, type Told } from "./case.ts"

const given: KillCase = JSON.parse(process.env.SUPER_PI_KILL_CASE ?? "null")
const told = { commits: 0, asked: 0 }

const maybeDie = (n: number, when: KillPoint["when"]): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (given.kill?.n !== n || given.kill.when !== when) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })

/** Commits about queues alone are the node's own, and come when they come. */
const ofQueues = new Set(["jobs", "jobUpdates", "jobClaims", "pruneJobs"])

const dyingStore = (store: StoreService): StoreService => ({
  ...store,
  commit: (commit) =>
    Effect.suspend(() => {
      if (Object.keys(commit).every((part) => ofQueues.has(part))) return store.commit(commit)
      const n = ++told.commits
      return maybeDie(n, "before").pipe(
        Effect.zipRight(store.commit(commit)),
        Effect.tap(() => maybeDie(n, "after")),
      )
    }),
})

const act = defineTool({
  name: "act",
  description: "Acts",
  parameters: Schema.Struct({}),
  effects: ["exec"],
  execute: () =>
    Effect.sync(() => {
      appendFileSync(given.acts, "acted\n")
      return { output: [text("acted")] }
    }),
})

const askFirst = anyPlugin(
  definePlugin({
    name: "ask-first",
    description: "Asks about every call of act.",
    hooks: {
      beforeTool: ({ name }) =>
        Effect.succeed(
          name === "act" ? { type: "ask" as const, rule: "ask", title: "May it?", reason: "It acts." } : undefined,
        ),
    },
  }),
)
const harness = defineHarness(
  { id: "test", name: "Test", description: "Test", prompt: "Test.", plugins: ["ask-first", "questionnaire"] },
  { plugins: [askFirst] },
)

/** The open questions that an event tells of. */
const openIn = (event: Event): ReadonlyArray<QuestionView> => {
  if (event.type === "snapshot") return event.session.questions
  if (event.type === "permission_request") return [{ ...event, kind: "permission" }]
  return event.type === "ui_request" ? [{ ...event, kind: "choice" }] : []
}

const life = Effect.gen(function* () {
  const sessions = yield* Sessions
  // A question may be asked before the person of this life has come back.
  const agent = { questions: "wait" as const }
  const opened = yield* sessions.open({ conversationId: null, agent, title: null, requestId: "open" })
  const conversationId = opened.conversation_id
  const joined = yield* Deferred.make<void>()
  const answer = (question: QuestionView) => {
    told.asked++
    const said =
      question.kind === "permission" || given.says === "reject_once"
        ? given.says
        : { q1: { selected: ["red"], text: null } }
    const requestId = `answer-${question.question_id}`
    return Effect.ignore(
      sessions.answer({ questionId: question.question_id, answer: said, requestId, client: "child" }),
    )
  }
  yield* sessions.watch({ conversationId, after: null, interactive: true }).pipe(
    Stream.runForEach((event) =>
      Effect.zipRight(Deferred.succeed(joined, undefined), Effect.forEach(openIn(event), answer, { discard: true })),
    ),
    Effect.forkScoped,
  )
  yield* Deferred.await(joined)
  const receipt = yield* sessions.submit({ conversationId, content: [text(given.turn)], requestId: "turn" })
  const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
  const line: Told = { status: settled.status, ...told }
  process.stdout.write(`${JSON.stringify(line)}\n`)
})

const node = SuperPi.layer({
  storage: Layer.scoped(Store, Effect.map(makeSqliteStore({ path: given.db }), dyingStore)),
  models: { env: {}, model: "script/test", script: { rules } as never },
  builtinTools: false,
  tools: [act],
  // On a slow machine a flush would be one commit more.
  defaults: { policy: { flushMs: 600_000 } },
  harness: "test",
  extraPlugins: [askFirst],
  extraHarnesses: [harness],
})

await Effect.runPromise(
  Effect.scoped(life).pipe(Effect.provide(node), Effect.provide(Logger.remove(Logger.defaultLogger))),
)
