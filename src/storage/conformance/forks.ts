/**
 * What a fork sees, and where a context begins (context rules 1 to 3).
 */
import { Effect } from "effect"
import type { ConversationId, EntryId } from "../../domain/ids.ts"
import type { TestKit } from "../conformance.ts"
import { conversation, entry } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

const begin = (session: Session, parent: { conversation: ConversationId; entry: EntryId } | null = null) =>
  Effect.gen(function* () {
    const id = yield* session.mint("conversation")
    yield* session.commit({ conversations: [conversation(id, { parent })] })
    return id
  })

const append = (session: Session, of: ConversationId, head: "own" | EntryId | null = null) =>
  Effect.gen(function* () {
    const id = yield* session.mint("entry")
    yield* session.commit({ entries: [entry(id, of, { head: head === "own" ? id : head })] })
    return id
  })

const visible = (session: Session, of: ConversationId, cutoff?: EntryId) =>
  Effect.map(session.store().visibleEntries(of, cutoff), (rows) => rows.map((row) => row.id))

const count = (session: Session, of: ConversationId) => session.store().entryCount(of)

const context = (session: Session, of: ConversationId) =>
  Effect.map(session.store().contextEntries(of), (rows) => rows.map((row) => row.id))

export const forks = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a fork", () => {
    it("sees its ancestors' entries up to each fork point, then its own", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const root = yield* begin(session)
          const r1 = yield* append(session, root)
          const r2 = yield* append(session, root)
          const fork = yield* begin(session, { conversation: root, entry: r1 })
          const f1 = yield* append(session, fork)
          const r3 = yield* append(session, root)
          const f2 = yield* append(session, fork)
          const grand = yield* begin(session, { conversation: fork, entry: f1 })
          const g1 = yield* append(session, grand)
          const f3 = yield* append(session, fork)
          expect(yield* visible(session, root)).toEqual([r1, r2, r3])
          expect(yield* visible(session, fork)).toEqual([r1, f1, f2, f3])
          expect(yield* visible(session, grand)).toEqual([r1, f1, g1])
          expect(yield* visible(session, fork, f2)).toEqual([r1, f1, f2])
          expect(yield* visible(session, grand, r1)).toEqual([r1])
          expect([yield* count(session, root), yield* count(session, fork), yield* count(session, grand)]).toEqual([
            3, 4, 3,
          ])
        }),
      ))

    it("taken from a fork at an inherited entry sees no more than that entry", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const root = yield* begin(session)
          const r1 = yield* append(session, root)
          const r2 = yield* append(session, root)
          const fork = yield* begin(session, { conversation: root, entry: r2 })
          yield* append(session, fork)
          const grand = yield* begin(session, { conversation: fork, entry: r1 })
          const g1 = yield* append(session, grand)
          expect(yield* visible(session, grand)).toEqual([r1, g1])
        }),
      ))

    it("of a conversation that does not exist is a conflict", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const parent = { conversation: yield* session.mint("conversation"), entry: yield* session.mint("entry") }
          const id = yield* session.mint("conversation")
          expect(yield* session.refusal({ conversations: [conversation(id, { parent })] })).toBe("Conflict")
        }),
      ))
  })

  describe("the context entries", () => {
    it("are everything without a head, and what the newest head keeps with one", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const a = yield* append(session, of)
          const b = yield* append(session, of)
          expect(yield* context(session, of)).toEqual([a, b])
          const c = yield* append(session, of)
          const compaction = yield* append(session, of, b)
          const d = yield* append(session, of)
          expect(yield* context(session, of)).toEqual([b, c, compaction, d])
          const reset = yield* append(session, of, "own")
          expect(yield* context(session, of)).toEqual([reset])
          const e = yield* append(session, of)
          expect(yield* context(session, of)).toEqual([reset, e])
        }),
      ))

    it("of a fork follow a head that it inherits, one of its own first, none beyond the fork point", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const root = yield* begin(session)
          yield* append(session, root)
          const b = yield* append(session, root)
          const compaction = yield* append(session, root, b)
          const c = yield* append(session, root)
          const fork = yield* begin(session, { conversation: root, entry: c })
          yield* append(session, root, "own")
          const f1 = yield* append(session, fork)
          expect(yield* context(session, fork)).toEqual([b, compaction, c, f1])
          const own = yield* append(session, fork, c)
          expect(yield* context(session, fork)).toEqual([c, f1, own])
          const grand = yield* begin(session, { conversation: fork, entry: f1 })
          expect(yield* context(session, grand)).toEqual([b, compaction, c, f1])
        }),
      ))

    it("of a conversation that does not exist are none", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const nowhere = yield* session.mint("conversation")
          expect(yield* context(session, nowhere)).toEqual([])
          expect(yield* visible(session, nowhere)).toEqual([])
        }),
      ))
  })
}
