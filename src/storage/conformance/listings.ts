/**
 * Reads that list: what is open, what is newest, what belongs to whom.
 */
import { Effect } from "effect"
import type { ConversationId, EntryId } from "../../domain/ids.ts"
import type { TestKit } from "../conformance.ts"
import { conversation, document, entry, submission, task } from "./records.ts"
import type { Sessions } from "./session.ts"

export const listings = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("the listing of conversations", () => {
    it("gives the newest first, without those owned by a task, one principal's or everyone's", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const ids: Array<ConversationId> = []
          for (let index = 0; index < 4; index++) ids.push(yield* session.mint("conversation"))
          const [a, b, c, d] = ids as [ConversationId, ConversationId, ConversationId, ConversationId]
          const owner = yield* session.mint("task")
          yield* session.commit({
            conversations: [
              conversation(a, { updatedAt: 30, principal: "ann" }),
              conversation(b, { updatedAt: 10, principal: "bob" }),
              conversation(c, { updatedAt: 20, principal: "ann" }),
              conversation(d, { updatedAt: 40, principal: "ann", owner }),
            ],
            tasks: [task(owner, a), task(yield* session.mint("task"), c, { parked: "too many crashes" })],
            entries: [entry(yield* session.mint("entry"), c), entry(yield* session.mint("entry"), c)],
          })
          const list = (principal: string | null, limit: number, before?: ConversationId) =>
            session
              .store()
              .conversations({ principal, limit, ...(before === undefined ? {} : { before }) })
              .pipe(Effect.map((rows) => rows.map((row) => row.conversation.id)))
          expect(yield* list(null, 10)).toEqual([a, c, b])
          expect(yield* list("ann", 10)).toEqual([a, c])
          expect(yield* list("nobody", 10)).toEqual([])
          expect(yield* list(null, 2)).toEqual([a, c])
          expect(yield* list(null, 2, c)).toEqual([b])
          expect(yield* list(null, 2, b)).toEqual([])
          yield* session.commit({ conversationUpdates: [{ id: b, updatedAt: 50, title: "Renamed" }] })
          expect(yield* list(null, 10)).toEqual([b, a, c])
          const summaries = yield* session.store().conversations({ principal: null, limit: 10 })
          expect(summaries.map((row) => [row.conversation.title, row.entries, row.busy, row.parked])).toEqual([
            ["Renamed", 0, false, null],
            [null, 0, true, null],
            [null, 2, true, "too many crashes"],
          ])
        }),
      ))

    it("keeps the title where an update does not name it, and clears it where it is null", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const id = yield* session.mint("conversation")
          yield* session.commit({ conversations: [conversation(id, { title: "First" })] })
          yield* session.commit({ conversationUpdates: [{ id, updatedAt: 2 }] })
          expect((yield* session.store().conversation(id))?.title).toBe("First")
          yield* session.commit({ conversationUpdates: [{ id, updatedAt: 3, title: null }] })
          expect((yield* session.store().conversation(id))?.title).toBe(null)
        }),
      ))
  })

  describe("the entries of a conversation", () => {
    it("come in id order, bounded on either side, or only the last of them", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [here, there] = yield* session.store().mint("conversation", 2)
          if (here === undefined || there === undefined) return
          yield* session.commit({ conversations: [conversation(here), conversation(there)] })
          const ids: Array<EntryId> = []
          for (let index = 0; index < 6; index++) {
            const own = yield* session.mint("entry")
            ids.push(own)
            yield* session.commit({ entries: [entry(own, here), entry(yield* session.mint("entry"), there)] })
          }
          const read = (range?: { from?: EntryId; to?: EntryId; last?: number }) =>
            Effect.map(session.store().entries(here, range), (rows) => rows.map((row) => row.id))
          const [, second, , , fifth] = ids
          if (second === undefined || fifth === undefined) return
          expect(yield* read()).toEqual(ids)
          expect(yield* read({ from: second, to: fifth })).toEqual(ids.slice(1, 5))
          expect(yield* read({ last: 2 })).toEqual(ids.slice(4))
          expect(yield* read({ last: 0 })).toEqual([])
          expect(yield* read({ to: fifth, last: 2 })).toEqual(ids.slice(3, 5))
        }),
      ))
  })

  describe("open work", () => {
    it("is tasks that are not terminal and submissions that wait, oldest first", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [here, there] = yield* session.store().mint("conversation", 2)
          if (here === undefined || there === undefined) return
          yield* session.commit({ conversations: [conversation(here), conversation(there)] })
          const statuses = ["terminal", "completing", "sleeping", "waiting", "running", "pending"] as const
          const tasks = yield* session.store().mint("task", 7)
          yield* session.commit({
            tasks: tasks.map((id, index) =>
              task(id, index === 6 ? there : here, { status: statuses[index] ?? "pending" }),
            ),
          })
          const openIds = (of?: ConversationId) =>
            Effect.map(session.store().openTasks(of), (rows) => rows.map((row) => row.id))
          expect(yield* openIds(here)).toEqual(tasks.slice(1, 6))
          expect(yield* openIds()).toEqual(tasks.slice(1))
          const submissions = yield* session.store().mint("submission", 4)
          const states = ["queued", "done", "placed", "unanswered"] as const
          yield* session.commit({
            submissions: submissions.map((id, index) => submission(id, here, { status: states[index] ?? "done" })),
          })
          expect((yield* session.store().openSubmissions(here)).map((row) => row.id)).toEqual([
            submissions[0],
            submissions[2],
          ])
        }),
      ))
  })

  describe("a document", () => {
    it("keeps its first number when it is set again, and is listed until it is retired", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* session.mint("conversation")
          yield* session.commit({ conversations: [conversation(of)] })
          const id = yield* session.mint("document")
          const first = yield* session.commit({ documents: [document(id, of, { value: 1 })] })
          const second = yield* session.commit({ documents: [document(id, of, { value: 2, version: 2 })] })
          const [row] = yield* session.store().documents(of)
          expect([row?.value, row?.version, row?.createdSeq, row?.seq]).toEqual([2, 2, first, second])
          yield* session.commit({ documents: [document(id, of, { value: 3, version: 2, retire: true })] })
          expect(yield* session.store().documents(of)).toEqual([])
          expect(yield* session.refusal({ documents: [document(id, of, { value: 4 })] })).toBe("Conflict")
        }),
      ))

    it("that is set twice in one commit holds the last value", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* session.mint("conversation")
          const id = yield* session.mint("document")
          const twice = [1, 2].map((value) => document(id, of, { value, history: "rewindable" }))
          yield* session.commit({ conversations: [conversation(of)], documents: twice })
          yield* session.commit({ documents: twice })
          expect((yield* session.store().documents(of)).map((row) => row.value)).toEqual([2])
        }),
      ))

    it("has one live incarnation per kind, key and scope", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* session.mint("conversation")
          const [a, b, c, d, e] = yield* session.store().mint("document", 5)
          if (a === undefined || b === undefined || c === undefined || d === undefined || e === undefined) return
          yield* session.commit({ conversations: [conversation(of)], documents: [document(a, of)] })
          expect(yield* session.refusal({ documents: [document(b, of)] })).toBe("Conflict")
          expect(yield* session.refusal({ documents: [document(b, of, { key: "other" })] })).toBe(null)
          yield* session.commit({
            documents: [document(c, null, { kind: "app.settings", key: "x", value: { on: true } })],
          })
          expect(yield* session.refusal({ documents: [document(d, null, { kind: "app.settings", key: "x" })] })).toBe(
            "Conflict",
          )
          expect((yield* session.store().globalDocument("app.settings", "x"))?.value).toEqual({ on: true })
          expect(yield* session.store().globalDocument("app.settings", "y")).toBe(null)
          yield* session.commit({ documents: [document(a, of, { retire: true })] })
          expect(yield* session.refusal({ documents: [document(e, of)] })).toBe(null)
        }),
      ))
  })
}
