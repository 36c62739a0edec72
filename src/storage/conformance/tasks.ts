/**
 * Tasks by what binds them: the task that owns them, the request that started them, an effect in doubt.
 */
import { Effect } from "effect"
import type { TestKit } from "../conformance.ts"
import { conversation, task } from "./records.ts"
import type { Sessions } from "./session.ts"

export const tasks = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a task", () => {
    it("needs no conversation, and comes back with all that it waits for", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [id, first, second] = yield* session.store().mint("task", 3)
          if (id === undefined || first === undefined || second === undefined) return
          const row = task(id, null, {
            status: "waiting",
            waitingOn: { on: [first, second], policy: "failFast" },
            requestId: "order 7",
            inDoubt: true,
          })
          const seq = yield* session.commit({ tasks: [row] })
          expect(yield* session.store().task(id)).toEqual({ ...row, seq })
          expect(yield* session.store().openTasks()).toEqual([{ ...row, seq }])
        }),
      ))

    it("is found among what its owner owns, whatever its status, and so is a conversation", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [owner, child, ended, other] = yield* session.store().mint("task", 4)
          const of = yield* session.mint("conversation")
          if (owner === undefined || child === undefined || ended === undefined || other === undefined) return
          yield* session.commit({
            conversations: [conversation(of, { owner })],
            tasks: [
              task(owner, null),
              task(child, null, { owner }),
              task(ended, of, { owner, status: "terminal", outcome: { status: "completed", result: 1 } }),
              task(other, null, { owner: child }),
            ],
          })
          const store = session.store()
          expect((yield* store.ownedTasks(owner)).map((row) => row.id)).toEqual([child, ended])
          expect((yield* store.ownedTasks(child)).map((row) => row.id)).toEqual([other])
          expect(yield* store.ownedTasks(other)).toEqual([])
          expect((yield* store.ownedConversations(owner)).map((row) => row.id)).toEqual([of])
          expect(yield* store.ownedConversations(child)).toEqual([])
        }),
      ))

    it("is the only one of its request, for good", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [first, second] = yield* session.store().mint("task", 2)
          if (first === undefined || second === undefined) return
          yield* session.commit({ tasks: [task(first, null, { requestId: "r" })] })
          expect(yield* session.refusal({ tasks: [task(second, null, { requestId: "r" })] })).toBe("Conflict")
          yield* session.commit({ tasks: [task(first, null, { requestId: "r", status: "terminal" })] })
          expect(yield* session.refusal({ tasks: [task(second, null, { requestId: "r" })] })).toBe("Conflict")
          expect((yield* session.store().taskByRequest("r"))?.id).toBe(first)
          expect(yield* session.store().taskByRequest("s")).toBe(null)
          expect(yield* session.refusal({ tasks: [task(second, null, { requestId: "s" })] })).toBe(null)
        }),
      ))

    it("is listed while an effect of it is in doubt, newest first, of one conversation or of all", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const ids = yield* session.store().mint("task", 4)
          const [a, b, c, d] = ids
          const of = yield* session.mint("conversation")
          if (a === undefined || b === undefined || c === undefined || d === undefined) return
          const doubt = { inDoubt: true, status: "terminal" } as const
          yield* session.commit({
            conversations: [conversation(of)],
            tasks: [task(a, of, doubt), task(b, null, doubt), task(c, of, doubt), task(d, of)],
          })
          const inDoubt = (options: { conversation?: typeof of; limit: number }) =>
            Effect.map(session.store().tasksInDoubt(options), (rows) => rows.map((row) => row.id))
          expect(yield* inDoubt({ limit: 9 })).toEqual([c, b, a])
          expect(yield* inDoubt({ limit: 1 })).toEqual([c])
          expect(yield* inDoubt({ conversation: of, limit: 9 })).toEqual([c, a])
          yield* session.commit({ tasks: [task(c, of, { ...doubt, inDoubt: false })] })
          expect(yield* inDoubt({ conversation: of, limit: 9 })).toEqual([a])
        }),
      ))
  })
}
