/**
 * Commits: all or nothing, numbered in order, each alone, under a valid fencing token.
 */
import { Effect, Either, Exit, Fiber } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { TestKit } from "../conformance.ts"
import type { Commit } from "../store.ts"
import { conversation, document, entry, submission, task } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

/** A session with one conversation. */
const begun = (session: Session) =>
  Effect.gen(function* () {
    const id = yield* session.mint("conversation")
    yield* session.commit({ conversations: [conversation(id)] })
    return id
  })

/** A commit of one row of each kind to `of`. */
const oneOfEach = (session: Session, of: ConversationId) =>
  Effect.gen(function* () {
    return {
      entries: [entry(yield* session.mint("entry"), of)],
      tasks: [task(yield* session.mint("task"), of)],
      submissions: [submission(yield* session.mint("submission"), of)],
      documents: [document(yield* session.mint("document"), of, { history: "rewindable", value: { a: 1 } })],
    } satisfies Commit
  })

/** How many rows of each kind a conversation has. */
const counts = (session: Session, of: ConversationId) =>
  Effect.gen(function* () {
    const store = session.store()
    return [
      (yield* store.entries(of)).length,
      (yield* store.openTasks(of)).length,
      (yield* store.openSubmissions(of)).length,
      (yield* store.documents(of)).length,
    ]
  })

export const atomicity = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a commit", () => {
    it("writes rows of every kind at once and stamps them with its number", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begun(session)
          const rows = yield* oneOfEach(session, of)
          const seq = yield* session.commit(rows)
          const store = session.store()
          expect(yield* store.entries(of)).toEqual(rows.entries.map((row) => ({ ...row, seq })))
          expect(yield* store.openTasks()).toEqual(rows.tasks.map((row) => ({ ...row, seq })))
          expect(yield* store.openSubmissions(of)).toEqual(rows.submissions.map((row) => ({ ...row, seq })))
          expect(yield* store.documents(of)).toEqual(
            rows.documents.map((row) => ({ ...row, createdSeq: seq, retiredSeq: null, seq })),
          )
        }),
      ))

    it("gets a higher number than every commit before it, also after a reopen and after a removal", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const numbers: Array<number> = []
          for (let round = 0; round < 5; round++) {
            const id = yield* session.mint("conversation")
            numbers.push(yield* session.commit({ conversations: [conversation(id)] }))
            numbers.push(yield* session.commit({ removeConversations: [id] }))
            yield* session.reopen
          }
          expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
        }),
      ))

    it("that uses an entry id twice writes nothing at all", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begun(session)
          const first = yield* oneOfEach(session, of)
          yield* session.commit(first)
          const second = yield* oneOfEach(session, of)
          const before = yield* counts(session, of)
          expect(yield* session.refusal({ ...second, entries: [...second.entries, ...first.entries] })).toBe("Conflict")
          expect(yield* counts(session, of)).toEqual(before)
        }),
      ))

    it("that admits a request id twice is a conflict, in another conversation it is not", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const here = yield* begun(session)
          const there = yield* begun(session)
          const first = submission(yield* session.mint("submission"), here, { requestId: "r-1" })
          yield* session.commit({ submissions: [first] })
          const again = submission(yield* session.mint("submission"), here, { requestId: "r-1" })
          const note = entry(yield* session.mint("entry"), here)
          expect(yield* session.refusal({ entries: [note], submissions: [again] })).toBe("Conflict")
          expect(yield* session.store().entries(here)).toEqual([])
          const elsewhere = submission(yield* session.mint("submission"), there, { requestId: "r-1" })
          expect(yield* session.refusal({ submissions: [elsewhere] })).toBe(null)
          expect((yield* session.store().submissionByRequest(here, "r-1"))?.id).toBe(first.id)
          // the same submission may move on under its request id
          expect(yield* session.refusal({ submissions: [{ ...first, status: "placed" }] })).toBe(null)
          expect((yield* session.store().submissionByRequest(here, "r-1"))?.status).toBe("placed")
        }),
      ))

    it("for a conversation that does not exist is a conflict", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const nowhere = yield* session.mint("conversation")
          const note = entry(yield* session.mint("entry"), nowhere)
          expect(yield* session.refusal({ entries: [note] })).toBe("Conflict")
          expect(yield* session.refusal({ conversationUpdates: [{ id: nowhere, updatedAt: 5 }] })).toBe("Conflict")
        }),
      ))

    it("under a stale task token is fenced and writes nothing, under the same or a newer one it is not", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begun(session)
          const id = yield* session.mint("task")
          yield* session.commit({ tasks: [task(id, of, { fence: 7, status: "running" })] })
          const note = entry(yield* session.mint("entry"), of)
          expect(yield* session.refusal({ entries: [note], tasks: [task(id, of, { fence: 6 })] })).toBe("Fenced")
          expect(yield* session.store().entries(of)).toEqual([])
          expect((yield* session.store().task(id))?.fence).toBe(7)
          expect(yield* session.refusal({ tasks: [task(id, of, { fence: 7, checkpoint: 1 })] })).toBe(null)
          expect(yield* session.refusal({ entries: [note], tasks: [task(id, of, { fence: 9, checkpoint: 2 })] })).toBe(
            null,
          )
          expect((yield* session.store().task(id))?.checkpoint).toBe(2)
        }),
      ))
  })

  describe("commits that arrive together", () => {
    it("are all written, and one that is refused harms no other", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begun(session)
          const taken = entry(yield* session.mint("entry"), of)
          yield* session.commit({ entries: [taken] })
          const commits: Array<Commit> = []
          for (let index = 0; index < 20; index++) {
            commits.push(index % 7 === 3 ? { entries: [taken] } : yield* oneOfEach(session, of))
          }
          const separate = commits.map((commit, index) =>
            commit.documents === undefined
              ? commit
              : { ...commit, documents: commit.documents.map((row) => ({ ...row, key: `${index}` })) },
          )
          const store = session.store()
          const results = yield* Effect.forEach(separate, (commit) => Effect.either(store.commit(commit)), {
            concurrency: "unbounded",
          })
          expect(results.map((result) => (Either.isLeft(result) ? result.left._tag : "written"))).toEqual(
            separate.map((_, index) => (index % 7 === 3 ? "Conflict" : "written")),
          )
          const numbers = results.flatMap((result) => (Either.isRight(result) ? [result.right] : []))
          expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
          expect(yield* counts(session, of)).toEqual([18, 17, 17, 17])
          yield* session.reopen
          expect(yield* counts(session, of)).toEqual([18, 17, 17, 17])
        }),
      ))

    it("whose callers are interrupted are each there whole or not at all, and the store goes on", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begun(session)
          const store = session.store()
          const commits: Array<ReturnType<typeof pair>> = []
          for (let index = 0; index < 40; index++) {
            commits.push(pair(of, yield* session.mint("entry"), yield* session.mint("task")))
          }
          const fibers = yield* Effect.forEach(commits, (commit) => Effect.fork(store.commit(commit)))
          const exits = yield* Effect.forEach(
            fibers,
            (fiber, index) =>
              (index % 3 === 0 ? Effect.yieldNow() : Effect.void).pipe(Effect.zipRight(Fiber.interrupt(fiber))),
            { concurrency: "unbounded" },
          )
          const entries = new Set((yield* store.entries(of)).map((row) => row.id))
          const tasks = new Set((yield* store.openTasks(of)).map((row) => row.id))
          commits.forEach((commit, index) => {
            const exit = exits[index]
            const there = entries.has(commit.entries[0].id)
            expect(tasks.has(commit.tasks[0].id)).toBe(there)
            if (exit !== undefined && Exit.isSuccess(exit)) expect(there).toBe(true)
          })
          const last = entry(yield* session.mint("entry"), of)
          expect(yield* session.refusal({ entries: [last] })).toBe(null)
        }),
      ))
  })

  describe("a new owner", () => {
    it("has a higher epoch and fences the one before it", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begun(session)
          const old = session.store()
          yield* session.reopen
          expect(session.store().epoch > old.epoch).toBe(true)
          const note = entry(yield* session.mint("entry"), of)
          expect(Exit.isFailure(yield* Effect.exit(old.commit({ entries: [note] })))).toBe(true)
          expect(yield* session.store().entries(of)).toEqual([])
        }),
      ))
  })

  describe("minted ids", () => {
    it("grow, are never given twice, and not again after a reopen", () =>
      sessions((session) =>
        Effect.gen(function* () {
          for (const kind of ["conversation", "entry", "task", "submission", "document"] as const) {
            const ids: Array<number> = []
            for (const count of [1, 3, 0, 300, 1]) {
              ids.push(...(yield* session.store().mint(kind, count)))
              yield* session.reopen
            }
            expect(ids.length).toBe(305)
            expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
          }
        }),
      ))
  })
}

const pair = (of: ConversationId, entryId: Parameters<typeof entry>[0], taskId: Parameters<typeof task>[0]) => ({
  entries: [entry(entryId, of)] as const,
  tasks: [task(taskId, of)] as const,
})
