/**
 * Names of conversations: unique per principal and namespace, given with their conversation or not at all, gone with it, and forgotten
 * when they are not used.
 */
import { Effect } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { TestKit } from "../conformance.ts"
import type { NameChange, NameKey } from "../name-port.ts"
import { conversation, entry } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

const at = 1_750_000_000_000

const ann = (name: string, namespace: NameKey["namespace"] = "openai"): NameKey => ({
  namespace,
  principal: "ann",
  name,
})

const give = (key: NameKey, of: ConversationId, later = 0, moves = false): NameChange => ({
  type: "give",
  ...key,
  conversation: of,
  at: at + later,
  moves,
})

const begin = (session: Session, updatedAt = at) =>
  Effect.gen(function* () {
    const id = yield* session.mint("conversation")
    yield* session.commit({ conversations: [{ ...conversation(id), updatedAt }] })
    return id
  })

const listed = (session: Session, options: { readonly limit?: number; readonly before?: string } = {}) =>
  Effect.map(session.store().names({ namespace: "openai", principal: "ann", limit: 100, ...options }), (rows) =>
    rows.map((row) => row.record.name),
  )

export const names = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a name of a conversation", () => {
    it("is found by namespace, principal and name, with what its conversation is", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* session.mint("conversation")
          const row = { ...conversation(of), title: "a title", updatedAt: at + 7 }
          yield* session.commit({ conversations: [row], names: [give(ann("x'\"%🦊"), of)] })
          const record = { ...ann("x'\"%🦊"), conversation: of, createdAt: at, usedAt: at }
          expect(yield* session.store().name(ann("x'\"%🦊"))).toEqual({ record, title: "a title", updatedAt: at + 7 })
          for (const other of [{ ...ann("x'\"%🦊"), principal: "bob" }, ann("x'\"%🦊", "acp"), ann("X'\"%🦊")]) {
            expect(yield* session.store().name(other)).toBe(null)
          }
        }),
      ))

    it("is given once, unless it moves; a commit that is refused gives none", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [one, two] = [yield* begin(session), yield* begin(session)]
          yield* session.commit({ names: [give(ann("a"), one), give(ann("a", "acp"), two)] })
          expect(yield* session.refusal({ names: [give(ann("b"), two), give(ann("a"), two)] })).toBe("Conflict")
          expect(yield* session.store().name(ann("b"))).toBe(null)
          const twice = entry(yield* session.mint("entry"), one)
          expect(yield* session.refusal({ names: [give(ann("b"), one)], entries: [twice, twice] })).toBe("Conflict")
          const missing = yield* session.mint("conversation")
          expect(yield* session.refusal({ names: [give(ann("b"), missing)] })).toBe("Conflict")
          expect(yield* session.store().name(ann("b"))).toBe(null)
          yield* session.commit({ names: [give(ann("a"), two, 5, true)] })
          expect((yield* session.store().name(ann("a")))?.record).toEqual({
            ...ann("a"),
            conversation: two,
            createdAt: at + 5,
            usedAt: at + 5,
          })
        }),
      ))

    it("is taken away by itself, or with its conversation", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const [one, two] = [yield* begin(session), yield* begin(session)]
          yield* session.commit({ names: [give(ann("a"), one), give(ann("b"), one), give(ann("c"), two)] })
          yield* session.commit({
            names: [
              { type: "take", ...ann("a") },
              { type: "take", ...ann("none") },
            ],
          })
          expect(yield* listed(session)).toEqual(["b", "c"])
          yield* session.commit({ removeConversations: [one] })
          expect(yield* listed(session)).toEqual(["c"])
        }),
      ))

    it("is listed by the change of its conversation, the newest first, page by page", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const old = yield* begin(session, at)
          const recent = yield* begin(session, at + 100)
          yield* session.commit({
            names: [
              give(ann("d"), old),
              give(ann("b"), old),
              give(ann("é"), recent),
              give(ann("z"), recent),
              give({ ...ann("other"), principal: "bob" }, recent),
              give(ann("elsewhere", "acp"), recent),
            ],
          })
          expect(yield* listed(session)).toEqual(["z", "é", "b", "d"])
          expect(yield* listed(session, { limit: 2 })).toEqual(["z", "é"])
          expect(yield* listed(session, { limit: 2, before: "é" })).toEqual(["b", "d"])
          expect(yield* listed(session, { before: "d" })).toEqual([])
          expect(yield* listed(session, { before: "none" })).toEqual([])
        }),
      ))

    it("is forgotten when it was not used for long, or when too many were used after it", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          yield* session.commit({ names: ["a", "b", "c", "d"].map((name, later) => give(ann(name), of, later)) })
          yield* session.commit({
            names: [
              { type: "use", ...ann("a"), at: at + 50 },
              { type: "use", ...ann("none"), at: at + 50 },
            ],
          })
          expect((yield* session.store().name(ann("a")))?.record.usedAt).toBe(at + 50)
          yield* session.commit({ names: [{ type: "prune", before: at + 2, keep: 100 }] })
          expect(yield* listed(session)).toEqual(["a", "c", "d"])
          yield* session.commit({ names: [{ type: "prune", before: 0, keep: 2 }] })
          expect(yield* listed(session)).toEqual(["a", "d"])
          expect((yield* session.store().conversation(of))?.id).toBe(of)
        }),
      ))
  })
}
