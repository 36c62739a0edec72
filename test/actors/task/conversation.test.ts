/**
 * Tasks and conversations of one node: a task that asks an own conversation and waits for the answer, over a restart, and takes it along when it is
 * aborted.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Logger, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { Sessions } from "../../../src/actors/sessions.ts"
import { defineTask, Step, Tasks } from "../../../src/actors/task/index.ts"
import { ConversationId } from "../../../src/domain/ids.ts"
import { text } from "../../../src/domain/message.ts"
import { defineTool } from "../../../src/tools/define.ts"
import { nodeAt } from "../../conversation/harness.ts"

const rules = [
  { match: "^hold$", steps: [{ tools: [{ name: "hold", args: {} }] }, { text: "held" }] },
  { match: "", steps: [{ text: "the answer" }] },
]

const Delegate = defineTask({
  kind: "test.delegate",
  version: 1,
  input: Schema.Struct({ ask: Schema.String }),
  checkpoint: Schema.Union(
    Schema.Struct({ phase: Schema.Literal("open") }),
    Schema.Struct({ phase: Schema.Literal("ask"), conversation: ConversationId }),
  ),
  result: Schema.NullOr(Schema.String),
  error: Schema.String,
  initial: () => ({ phase: "open" as const }),
  phases: {
    open: (_task, runtime) =>
      Effect.map(runtime.conversation("helper", { title: "helper" }), (conversation) =>
        Step.next({ phase: "ask", conversation }),
      ),
    ask: ({ checkpoint: { conversation: conversationId }, input }, runtime) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const requestId = yield* runtime.idempotencyKey("ask")
        const receipt = yield* sessions.submit({ conversationId, content: [text(input.ask)], requestId })
        const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
        return Step.complete(settled.text)
      }).pipe(Effect.mapError((failure) => failure.message)),
  },
})

/** A tool that says when it runs, and never ends. */
const holding = (begun: Deferred.Deferred<void>) =>
  defineTool({
    name: "hold",
    description: "Holds.",
    parameters: Schema.Struct({}),
    effects: ["read"],
    replay: "safe",
    execute: () => Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never),
  })

const inDirectory = <A, E>(use: (path: string) => Effect.Effect<A, E>): Promise<A> =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-tasks-"))),
    (directory) => use(join(directory, "test.db")),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
  ).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)), Effect.runPromise)

describe("a task with an own conversation", () => {
  it("gets its answer, and finds conversation and submission again after a restart in the middle", () =>
    inDirectory((path) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const id = yield* Effect.gen(function* () {
          const tasks = yield* Tasks
          yield* tasks.register(Delegate)
          const started = yield* tasks.start(Delegate, { ask: "hold" })
          yield* Deferred.await(begun)
          return started
        }).pipe(Effect.provide(nodeAt(path, { rules, tools: [holding(begun)] })))
        const done = defineTool({
          ...{ name: "hold", description: "Holds.", parameters: Schema.Struct({}) },
          ...{ effects: ["read"], replay: "safe", execute: () => Effect.succeed({ output: [text("let go")] }) },
        })
        yield* Effect.gen(function* () {
          const tasks = yield* Tasks
          yield* tasks.register(Delegate)
          expect(yield* tasks.outcome(Delegate, id)).toEqual({ status: "completed", result: "held" })
          const { list, transcript } = yield* Sessions
          // It is its task's, so no listing shows it.
          expect(yield* list({})).toEqual([])
          const entries = yield* transcript({ conversationId: ConversationId.make(1) })
          expect(entries.filter(({ kind }) => kind === "pi.user")).toHaveLength(1)
        }).pipe(Effect.provide(nodeAt(path, { rules, tools: [done] })))
      }),
    ))

  it("cancels its conversation when it is aborted, and ends after it", () =>
    inDirectory((path) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        yield* Effect.gen(function* () {
          const tasks = yield* Tasks
          yield* tasks.register(Delegate)
          const id = yield* tasks.start(Delegate, { ask: "hold" })
          yield* Deferred.await(begun)
          expect([...(yield* tasks.graphNow).values()].map(({ kind }) => kind).sort()).toEqual([
            "pi.generation",
            "pi.tool",
            "test.delegate",
          ])
          yield* tasks.abort(id, { reason: "enough" })
          expect(yield* tasks.outcome(Delegate, id)).toEqual({ status: "aborted", reason: "enough" })
          expect((yield* tasks.graphNow).size).toBe(0)
          const { state } = yield* Sessions
          expect(yield* state({ conversationId: ConversationId.make(1) })).toMatchObject({
            state: "idle",
            turn_id: null,
          })
        }).pipe(Effect.provide(nodeAt(path, { rules, tools: [holding(begun)] })))
      }),
    ))
})
