/**
 * Conversations that go away, and one whose rows are damaged: what their callers and watchers are told.
 */
import { Effect, Exit, Fiber, Schedule } from "effect"
import { describe, expect, it } from "vitest"
import type { TreeNode } from "../../src/domain/tree.ts"
import { CorruptRow } from "../../src/storage/errors.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { collect, open, prompt, scriptModel, withNode } from "./harness.ts"

const rules = [{ match: "", steps: [{ text: "hello" }] }]

describe("a removed conversation", () => {
  it("ends its watchers with what was not found, and is not started again", () =>
    Effect.runPromise(
      withNode({ rules }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* prompt(sessions, conversationId, "hi")
          const watcher = yield* collect(sessions, conversationId, () => false)
          expect(yield* sessions.remove({ conversationId })).toEqual({ removed: true })
          const exit = yield* Fiber.await(watcher)
          expect(Exit.isFailure(exit) && JSON.stringify(exit.cause)).toContain(`conversation ${conversationId}`)
          expect(yield* Effect.flip(sessions.state({ conversationId }))).toMatchObject({ _tag: "NotFound" })
          // Its actor leaves on its own time, and none takes its place.
          yield* Effect.repeat(sessions.tree, {
            until: (tree: TreeNode) => !JSON.stringify(tree).includes(`conversation-${conversationId}`),
            schedule: Schedule.spaced("5 millis"),
          })
        }),
      ),
    ))
})

describe("a conversation with a damaged row", () => {
  const damaged = (store: StoreService): StoreService => ({
    ...store,
    contextEntries: () =>
      Effect.fail(new CorruptRow({ location: "/data/test.db", table: "entries", row: "7", detail: "model: not JSON" })),
  })

  it("says which row, and what to do, and can be removed", () =>
    Effect.runPromise(
      withNode({ rules, wrapStore: damaged }, (sessions) =>
        Effect.gen(function* () {
          const failure = yield* Effect.flip(
            sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
          )
          expect(failure).toMatchObject({ _tag: "ServiceFailure", code: "corrupt" })
          expect(failure.message).toBe(
            "conversation 1 cannot go on: /data/test.db: entries 7 is damaged: model: not JSON; restore the row from a copy, or remove the conversation with: super-pi session rm 1",
          )
          const [summary] = yield* sessions.list({})
          const conversationId = summary?.conversation_id
          if (conversationId === undefined) throw new Error("no conversation is listed")
          expect(yield* sessions.remove({ conversationId })).toEqual({ removed: true })
          expect(yield* sessions.list({})).toEqual([])
        }),
      ),
    ))
})

describe("a conversation that chose no model", () => {
  it("names the node's default", () =>
    Effect.runPromise(
      withNode({ rules }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          expect((yield* sessions.state({ conversationId })).model).toBe(scriptModel)
        }),
      ),
    ))
})
