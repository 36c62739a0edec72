/**
 * Removing conversations with all that belongs to them.
 */
import { Effect } from "effect"
import type { TestKit } from "../conformance.ts"
import { conversation, document, entry, submission, task } from "./records.ts"
import type { Sessions } from "./session.ts"

export const removal = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a removed conversation", () => {
    it("leaves nothing behind, neither of itself nor of the conversations that its tasks own", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [gone, child, other] = yield* session.store().mint("conversation", 3)
          if (gone === undefined || child === undefined || other === undefined) return
          const owner = yield* session.mint("task")
          const request = yield* session.mint("submission")
          yield* session.commit({
            conversations: [conversation(gone), conversation(child, { owner }), conversation(other)],
            tasks: [task(owner, gone)],
          })
          for (const of of [gone, child, other]) {
            yield* session.commit({
              entries: [entry(yield* session.mint("entry"), of)],
              tasks: [task(yield* session.mint("task"), of)],
              documents: [document(yield* session.mint("document"), of, { history: "rewindable" })],
            })
          }
          yield* session.commit({ submissions: [submission(request, gone, { requestId: "r" })] })
          yield* session.commit({ removeConversations: [gone] })
          const store = session.store()
          for (const of of [gone, child]) {
            expect(yield* store.conversation(of)).toBe(null)
            expect(yield* store.entries(of)).toEqual([])
            expect(yield* store.openTasks(of)).toEqual([])
            expect(yield* store.documents(of)).toEqual([])
          }
          expect(yield* store.task(owner)).toBe(null)
          expect(yield* store.submission(request)).toBe(null)
          expect(yield* store.submissionByRequest(gone, "r")).toBe(null)
          expect((yield* store.entries(other)).length).toBe(1)
          expect((yield* store.openTasks()).map((row) => row.conversation)).toEqual([other])
          expect((yield* store.documents(other)).length).toBe(1)
          const late = entry(yield* session.mint("entry"), gone)
          expect(yield* session.refusal({ entries: [late] })).toBe("Conflict")
        }),
      ))

    it("is kept while a fork needs it, and goes together with its fork or after it", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [root, fork, second] = yield* session.store().mint("conversation", 3)
          if (root === undefined || fork === undefined || second === undefined) return
          const id = yield* session.mint("entry")
          yield* session.commit({ conversations: [conversation(root)], entries: [entry(id, root)] })
          const parent = { conversation: root, entry: id }
          yield* session.commit({ conversations: [conversation(fork, { parent }), conversation(second, { parent })] })
          expect(yield* session.refusal({ removeConversations: [root] })).toBe("Conflict")
          expect(yield* session.refusal({ removeConversations: [root, fork] })).toBe("Conflict")
          expect((yield* session.store().visibleEntries(fork)).length).toBe(1)
          expect(yield* session.refusal({ removeConversations: [fork] })).toBe(null)
          expect(yield* session.refusal({ removeConversations: [root, second] })).toBe(null)
          expect(yield* session.store().conversations({ principal: null, limit: 9 })).toEqual([])
          expect(yield* session.refusal({ removeConversations: [root] })).toBe("Conflict")
        }),
      ))
  })
}
