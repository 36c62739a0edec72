/**
 * Documents: addresses, incarnations, revisions as bases and deltas, values as of a commit, and what may not be written over.
 */
import { Effect, Either } from "effect"
import type { DocumentRecord } from "../../domain/document.ts"
import { diff } from "../../domain/document-patch.ts"
import { replay } from "../../domain/document-revision.ts"
import type { ConversationId, DocumentId, Seq, TaskId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import type { TestKit } from "../conformance.ts"
import { forkDocuments } from "../documents/fork.ts"
import type { DocumentWrite } from "../store.ts"
import { conversation, document, entry, task } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

const begin = (session: Session) =>
  Effect.gen(function* () {
    const id = yield* session.mint("conversation")
    yield* session.commit({ conversations: [conversation(id)] })
    return id
  })

const rewindable = { kind: "app.doc", history: "rewindable", fork: "asOf" } as const

const delta = (before: Json, after: Json): Pick<DocumentWrite, "value" | "revision"> => ({
  value: after,
  revision: { type: "delta", operations: diff(before, after) ?? [] },
})

/** The value right after a commit, rebuilt from the revisions; null where there are none. */
const valueAt = (session: Session, id: DocumentId, seq: Seq) =>
  Effect.map(session.store().documentRevisions(id, seq), (revisions) =>
    revisions.length === 0 ? null : Either.getOrThrow(replay(revisions)).value,
  )

const typesAt = (session: Session, id: DocumentId, seq: Seq) =>
  Effect.map(session.store().documentRevisions(id, seq), (revisions) => revisions.map((one) => one.type))

const names = (records: ReadonlyArray<DocumentRecord>) => records.map((row) => `${row.kind}/${row.key}`)

export const documents = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("the revisions of a rewindable document", () => {
    it("are bases and deltas, and give its value after every commit", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const id = yield* session.mint("document")
          const row = (some: Partial<DocumentWrite>) => document(id, of, { ...rewindable, ...some })
          const before = yield* session.commit({ entries: [entry(yield* session.mint("entry"), of)] })
          const seqs = [
            yield* session.commit({ documents: [row({ value: { a: [1] } })] }),
            yield* session.commit({ documents: [row(delta({ a: [1] }, { a: [1, 2], "x/y": "~" }))] }),
            yield* session.commit({ documents: [row(delta({ a: [1, 2], "x/y": "~" }, { a: [2] }))] }),
            yield* session.commit({ documents: [row({ value: { b: null } })] }),
            yield* session.commit({ documents: [row(delta({ b: null }, { b: [null] }))] }),
          ] as const
          const [first, second, third, fourth, fifth] = seqs
          expect(yield* valueAt(session, id, before)).toEqual(null)
          expect(yield* valueAt(session, id, first)).toEqual({ a: [1] })
          expect(yield* valueAt(session, id, second)).toEqual({ a: [1, 2], "x/y": "~" })
          expect(yield* valueAt(session, id, third)).toEqual({ a: [2] })
          expect(yield* valueAt(session, id, fourth)).toEqual({ b: null })
          expect(yield* valueAt(session, id, fifth)).toEqual({ b: [null] })
          expect(yield* typesAt(session, id, third)).toEqual(["base", "delta", "delta"])
          expect(yield* typesAt(session, id, fourth)).toEqual(["base"])
          expect((yield* session.store().document(id))?.value).toEqual({ b: [null] })
        }),
      ))

    it("begin with a base, whatever the first write says; a latest document has none", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const [id, latest] = yield* session.store().mint("document", 2)
          if (id === undefined || latest === undefined) return
          const seq = yield* session.commit({
            documents: [
              document(id, of, { ...rewindable, ...delta({}, { a: 1 }) }),
              document(latest, of, { kind: "app.latest", value: 1 }),
            ],
          })
          expect(yield* typesAt(session, id, seq)).toEqual(["base"])
          expect(yield* valueAt(session, id, seq)).toEqual({ a: 1 })
          expect(yield* typesAt(session, latest, seq)).toEqual([])
        }),
      ))

    it("are one for a commit that writes it twice, and right", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const id = yield* session.mint("document")
          const row = (some: Partial<DocumentWrite>) => document(id, of, { ...rewindable, ...some })
          const first = yield* session.commit({ documents: [row({ value: { a: 1 } }), row(delta({ a: 1 }, { a: 2 }))] })
          const second = yield* session.commit({
            documents: [row(delta({ a: 2 }, { a: 2, b: 1 })), row(delta({ a: 2, b: 1 }, { b: 1 }))],
          })
          const third = yield* session.commit({ documents: [row(delta({ b: 1 }, { b: 2 })), row({ value: { c: 1 } })] })
          const fourth = yield* session.commit({ documents: [row({ value: [] }), row(delta([], [1]))] })
          expect(yield* valueAt(session, id, first)).toEqual({ a: 2 })
          expect(yield* valueAt(session, id, second)).toEqual({ b: 1 })
          expect(yield* valueAt(session, id, third)).toEqual({ c: 1 })
          expect(yield* valueAt(session, id, fourth)).toEqual([1])
        }),
      ))

    it("are kept as the first write of the incarnation said, whatever later ones say", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const [id, latest] = yield* session.store().mint("document", 2)
          if (id === undefined || latest === undefined) return
          yield* session.commit({
            documents: [
              document(id, of, { ...rewindable, value: 1 }),
              document(latest, of, { kind: "app.latest", value: 1 }),
            ],
          })
          const seq = yield* session.commit({
            documents: [
              document(id, of, { kind: rewindable.kind, value: 2 }),
              document(latest, of, { ...rewindable, kind: "app.latest", value: 2 }),
            ],
          })
          expect(yield* valueAt(session, id, seq)).toEqual(2)
          expect(yield* typesAt(session, latest, seq)).toEqual([])
          const rows = yield* session.store().documents(of)
          expect(rows.map((row) => [row.history, row.fork, row.value])).toEqual([
            ["rewindable", "asOf", 2],
            ["latest", "initial", 2],
          ])
        }),
      ))

    it("go with the conversation", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const id = yield* session.mint("document")
          const seq = yield* session.commit({ documents: [document(id, of, { ...rewindable, value: 1 })] })
          yield* session.commit({ removeConversations: [of] })
          expect(yield* session.store().documentRevisions(id, seq)).toEqual([])
          expect(yield* session.store().document(id)).toEqual(null)
        }),
      ))
  })

  describe("an address", () => {
    it("holds one live incarnation after the other, each alive from its first commit to its last", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const [old, young] = yield* session.store().mint("document", 2)
          if (old === undefined || young === undefined) return
          const address = {
            scope: "conversation",
            conversation: of,
            task: null,
            kind: rewindable.kind,
            key: "",
          } as const
          const found = Effect.suspend(() =>
            Effect.map(session.store().findDocument(address), (row) => row?.id ?? null),
          )
          const alive = (seq: Seq) =>
            Effect.map(session.store().documentsAt(of, seq), (rows) => rows.map((row) => row.id))
          const before = yield* session.commit({ entries: [entry(yield* session.mint("entry"), of)] })
          const born = yield* session.commit({ documents: [document(old, of, { ...rewindable, value: 1 })] })
          expect(yield* found).toBe(old)
          const gone = yield* session.commit({
            documents: [document(old, of, { ...rewindable, value: 2, retire: true })],
          })
          expect(yield* found).toBe(null)
          const again = yield* session.commit({ documents: [document(young, of, { ...rewindable, value: 3 })] })
          expect(yield* found).toBe(young)
          expect(yield* alive(before)).toEqual([])
          expect(yield* alive(born)).toEqual([old])
          expect(yield* alive(gone)).toEqual([])
          expect(yield* alive(again)).toEqual([young])
          expect(yield* valueAt(session, old, born)).toEqual(1)
          expect((yield* session.store().document(old))?.retiredSeq).toBe(gone)
        }),
      ))

    it("is told apart by scope, owner, kind and key, and lists its family", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const here = yield* begin(session)
          const there = yield* begin(session)
          const workflow: TaskId = yield* session.mint("task")
          yield* session.commit({ tasks: [task(workflow, null)] })
          const ids = yield* session.store().mint("document", 8)
          const places = [
            { scope: "conversation", conversation: here, task: null, kind: "a", key: "1" },
            { scope: "conversation", conversation: here, task: null, kind: "a", key: "2" },
            { scope: "conversation", conversation: here, task: null, kind: "b", key: "1" },
            { scope: "conversation", conversation: there, task: null, kind: "a", key: "1" },
            { scope: "task", conversation: here, task: 901 as TaskId, kind: "a", key: "1" },
            { scope: "task", conversation: null, task: workflow, kind: "a", key: "1" },
            { scope: "task", conversation: null, task: workflow, kind: "a", key: "2" },
            { scope: "global", conversation: null, task: null, kind: "a", key: "1" },
          ] as const
          const rows = places.map((place, at) => document(ids[at] ?? (0 as DocumentId), null, { ...place, value: at }))
          yield* session.commit({ documents: rows })
          for (const [at, place] of places.entries()) {
            expect((yield* session.store().findDocument(place))?.value).toBe(at)
            const twin = document(yield* session.mint("document"), null, { ...place })
            expect(yield* session.refusal({ documents: [twin] })).toBe("Conflict")
            expect(yield* session.store().findDocument({ ...place, key: "3" })).toBe(null)
          }
          const family = (at: number) =>
            Effect.map(session.store().documentsOf(places[at] ?? places[0]), (members) =>
              members.map((row) => row.value),
            )
          expect([yield* family(0), yield* family(3), yield* family(4)]).toEqual([[0, 1], [3], [4]])
          expect([yield* family(5), yield* family(7)]).toEqual([[5, 6], [7]])
        }),
      ))
  })

  describe("a write of a document", () => {
    it("that names the commit of the value before it is refused where another one came in between", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const id = yield* session.mint("document")
          const row = (value: Json, since?: Seq) =>
            document(id, of, { ...rewindable, value, ...(since === undefined ? {} : { since }) })
          const note = entry(yield* session.mint("entry"), of)
          expect(yield* session.refusal({ documents: [row(0, 1 as Seq)] })).toBe("Conflict")
          const first = yield* session.commit({ documents: [row(1)] })
          const second = yield* session.commit({ documents: [row(2, first)] })
          expect(yield* session.refusal({ entries: [note], documents: [row(3, first)] })).toBe("Conflict")
          expect(yield* session.store().entries(of)).toEqual([])
          expect((yield* session.store().document(id))?.value).toBe(2)
          expect(yield* session.refusal({ documents: [row(4, second), row(5, second)] })).toBe("Conflict")
          expect(yield* session.refusal({ documents: [row(4, second)] })).toBe(null)
        }),
      ))

    it("of an older version than the stored one is refused, also to retire it", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const id = yield* session.mint("document")
          yield* session.commit({ documents: [document(id, of, { ...rewindable, version: 3, value: "new" })] })
          for (const some of [{}, { retire: true }, { history: "latest" as const }]) {
            const older = document(id, of, { ...rewindable, version: 2, value: "old", ...some })
            expect(yield* session.refusal({ documents: [older] })).toBe("Conflict")
          }
          const [row] = yield* session.store().documents(of)
          expect([row?.version, row?.value]).toEqual([3, "new"])
        }),
      ))

    it("keeps every byte of a value that no code here knows, and so does a fork of it", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const id = yield* session.mint("document")
          const text = '{"2":{"__proto__":[1e21,-0.5,"\\ud800"]},"1":{"constructor":{"prototype":null}},"":"\\u0000"}'
          const value: Json = JSON.parse(text)
          const wanted = JSON.stringify(value)
          yield* session.commit({ documents: [document(id, of, { ...rewindable, version: 99, value })] })
          const note = yield* session.mint("entry")
          yield* session.commit({ entries: [entry(note, of)] })
          const read = yield* session.store().entry(note)
          if (read === null) return expect(read).toBe("an entry")
          const fork: ConversationId = yield* session.mint("conversation")
          yield* session.commit({
            conversations: [conversation(fork, { parent: { conversation: of, entry: note } })],
            documents: yield* forkDocuments(session.store(), { conversation: of, entry: read }, fork),
          })
          for (const each of [of, fork]) {
            const [row] = yield* session.store().documents(each)
            expect([row?.version, JSON.stringify(row?.value)]).toEqual([99, wanted])
          }
          expect(names(yield* session.store().documents(fork))).toEqual(["app.doc/"])
        }),
      ))
  })
}
