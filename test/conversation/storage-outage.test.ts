/**
 * Storage that fails for a while: nothing acknowledged is lost, nothing is shown that is not stored, work goes on when it is back.
 */
import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { text } from "../../src/domain/message.ts"
import { StorageUnavailable } from "../../src/storage/errors.ts"
import type { Commit, StoreService } from "../../src/storage/store.ts"
import { atRest, collect, open, prompt, withNode } from "./harness.ts"

const full = new StorageUnavailable({
  location: "/data/test.db",
  cause: "the disk is full",
  advice: "Free some space and try again",
})

/** Fails commits while `refuse` says so. */
const failing =
  (refuse: (commit: Commit) => boolean) =>
  (store: StoreService): StoreService => ({
    ...store,
    commit: (commit) => Effect.suspend(() => (refuse(commit) ? Effect.fail(full) : store.commit(commit))),
  })

const rules = [{ match: "", steps: [{ tools: [{ name: "echo", args: { value: "x" } }] }, { text: "done" }] }]

describe("when storage refuses commits", () => {
  it("a caller is told what and where, and the conversation stays as it was", () => {
    let refused = false
    return Effect.runPromise(
      withNode({ rules, wrapStore: failing(() => refused) }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          refused = true
          const failure = yield* Effect.flip(
            sessions.submit({ conversationId, content: [text("hi")], requestId: "once" }),
          )
          expect(failure).toMatchObject({ _tag: "ServiceFailure", code: "storage" })
          expect(failure.message).toContain("/data/test.db: the disk is full. Free some space")
          expect(yield* sessions.state({ conversationId })).toMatchObject({ state: "idle", entries: 0 })
          refused = false
          expect(yield* prompt(sessions, conversationId, "hi")).toMatchObject({ status: "done", text: "done" })
          expect(yield* sessions.transcript({ conversationId })).toHaveLength(5)
        }),
      ),
    )
  })

  it.each([
    ["the response", (commit: Commit) => commit.entries?.some((entry) => entry.kind === "pi.assistant") === true],
    ["a result", (commit: Commit) => commit.entries?.some((entry) => entry.kind === "pi.tool-result") === true],
  ])("the commit of %s is tried again until it is stored, and watchers are told", (_name, matches) => {
    let left = 2
    const refuse = (commit: Commit) => matches(commit) && left-- > 0
    return Effect.runPromise(
      withNode({ rules, wrapStore: failing(refuse) }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const events = yield* collect(sessions, conversationId, atRest)
          expect(yield* prompt(sessions, conversationId, "hi")).toMatchObject({ status: "done", text: "done" })
          const seen = yield* Fiber.join(events)
          const notices = seen.filter((event) => event.type === "notice" && event.message.includes("disk is full"))
          expect(notices.length).toBeGreaterThan(0)
          const kinds = (yield* sessions.transcript({ conversationId })).map((entry) => entry.kind)
          expect(kinds.filter((kind) => kind === "pi.tool-result")).toHaveLength(1)
        }),
      ),
    )
  })
})
