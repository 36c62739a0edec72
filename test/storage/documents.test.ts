/**
 * The documents service: reads of what is and of what was, drafts and their commits, and its errors.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { todoDocument } from "../../src/domain/builtin-documents.ts"
import { defineDocument } from "../../src/domain/document-definition.ts"
import type { ConversationId, EntryId, Seq, TaskId } from "../../src/domain/ids.ts"
import * as rows from "../../src/storage/conformance/records.ts"
import { Documents, type DocumentsService, makeDocuments } from "../../src/storage/documents/documents.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"

const Counter = Schema.Struct({ count: Schema.Int, names: Schema.Array(Schema.String) })

const base = {
  kind: "app.counter",
  version: 1,
  schema: Counter,
  initial: (): typeof Counter.Type => ({ count: 0, names: [] }),
}
const rewindable = { history: "rewindable", fork: "asOf" } as const

const counter = defineDocument({ ...base, ...rewindable, scope: "conversation" })
const latest = defineDocument({ ...base, kind: "app.latest", scope: "conversation" })
const settings = defineDocument({ ...base, kind: "app.settings", scope: "global", history: "rewindable" })
const notes = defineDocument({ ...base, kind: "app.notes", scope: "task", family: true })

interface World {
  readonly store: StoreService
  readonly documents: DocumentsService
  readonly conversation: ConversationId
  /** The conversation's own document. */
  readonly here: { readonly conversation: ConversationId }
  /** Appends an entry and gives it with its commit. */
  readonly append: (of?: ConversationId) => Effect.Effect<{ readonly id: EntryId; readonly seq: Seq }, unknown>
  readonly fork: (at: EntryId, of?: ConversationId) => Effect.Effect<ConversationId, unknown>
}

const world = <A, E>(body: (world: World) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const store = yield* makeMemoryStore(memoryDatabase())
    const documents = yield* Effect.provideService(Effect.provide(Documents, Documents.layer), Store, store)
    const newConversation = Effect.map(store.mint("conversation", 1), ([id]) => id as ConversationId)
    const conversation = yield* newConversation
    yield* store.commit({ conversations: [rows.conversation(conversation)] })
    const append: World["append"] = (of = conversation) =>
      Effect.gen(function* () {
        const [id] = (yield* store.mint("entry", 1)) as [EntryId]
        return { id, seq: yield* store.commit({ entries: [rows.entry(id, of)] }) }
      })
    const fork: World["fork"] = (entry, of = conversation) =>
      Effect.gen(function* () {
        const id = yield* newConversation
        yield* store.commit({ conversations: [rows.conversation(id, { parent: { conversation: of, entry } })] })
        return id
      })
    return yield* body({ store, documents, conversation, here: { conversation }, append, fork })
  })

const count = (value: number) => (draft: { count: number }) => {
  draft.count = value
}

describe("a document", () => {
  it.effect("has its initial value until it is changed, and then the changed one", () =>
    world(({ documents, here }) =>
      Effect.gen(function* () {
        expect(yield* documents.get(counter, here)).toEqual({ count: 0, names: [] })
        const changed = yield* documents.update(counter, here, (draft) => draft.names.push("a"))
        expect(changed).toEqual({ count: 0, names: ["a"] })
        expect(yield* documents.get(counter, here)).toEqual(changed)
      }),
    ),
  )

  it.effect("of a conversation, of a task and of everybody are told apart", () =>
    world(({ conversation, documents, here }) =>
      Effect.gen(function* () {
        const task = { conversation, task: 7 as TaskId }
        yield* documents.update(latest, here, count(1))
        yield* documents.update(settings, {}, count(2))
        yield* documents.update(notes, { ...task, key: "x" }, count(3))
        yield* documents.update(notes, { conversation: null, task: 8 as TaskId, key: "x" }, count(4))
        expect((yield* documents.get(latest, here)).count).toBe(1)
        expect((yield* documents.get(settings, {})).count).toBe(2)
        expect((yield* documents.get(notes, { ...task, key: "x" })).count).toBe(3)
        expect((yield* documents.get(notes, { ...task, key: "y" })).count).toBe(0)
        expect((yield* documents.get(notes, { conversation: null, task: 8 as TaskId, key: "x" })).count).toBe(4)
      }),
    ),
  )

  it.effect("of a family is listed with its siblings, and needs a key; a single one takes none", () =>
    world(({ conversation, documents, here }) =>
      Effect.gen(function* () {
        const task = { conversation, task: 7 as TaskId }
        for (const key of ["b", "a"]) yield* documents.update(notes, { ...task, key }, count(1))
        yield* documents.update(notes, { conversation, task: 8 as TaskId, key: "c" }, count(1))
        expect((yield* documents.family(notes, task)).map(({ key }) => key)).toEqual(["b", "a"])
        expect(() => documents.get(notes, task)).toThrow('document "app.notes".key: expected a key')
        expect(() => documents.get(latest, { ...here, key: "x" })).toThrow("expected no key")
      }),
    ),
  )

  it.effect("that changes nothing writes nothing", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        yield* documents.update(counter, here, count(1))
        const before = yield* store.documents(here.conversation)
        yield* documents.update(counter, here, count(1))
        expect(yield* store.documents(here.conversation)).toEqual(before)
        const draft = yield* documents.draft(counter, here)
        expect(yield* documents.write(counter, draft)).toBe(null)
      }),
    ),
  )

  it.effect("is changed by each of many updates at once", () =>
    world(({ here, store }) =>
      Effect.gen(function* () {
        // others run between an update's read and its commit
        const commit: StoreService["commit"] = (rows) => Effect.zipRight(Effect.yieldNow(), store.commit(rows))
        const documents = makeDocuments({ ...store, commit })
        const add = documents.update(counter, here, (draft) => void draft.count++)
        yield* Effect.all(
          Array.from({ length: 10 }, () => add),
          { concurrency: "unbounded" },
        )
        expect((yield* documents.get(counter, here)).count).toBe(10)
      }),
    ),
  )
})

describe("a draft", () => {
  it.effect("is committed together with other rows, or not at all", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        const draft = (yield* documents.draft(counter, here)).edit(count(5)).edit((value) => value.names.push("x"))
        expect(draft.value).toEqual({ count: 5, names: ["x"] })
        expect(yield* documents.get(counter, here)).toEqual({ count: 0, names: [] })
        const write = yield* documents.write(counter, draft)
        if (write === null) return expect.unreachable()
        const [id] = (yield* store.mint("entry", 1)) as [EntryId]
        yield* store.commit({ entries: [rows.entry(id, here.conversation)], documents: [write] })
        expect(yield* documents.get(counter, here)).toEqual(draft.value)
        const other = (yield* documents.draft(counter, here)).replace({ count: 6, names: [] })
        const taken = rows.entry(id, here.conversation)
        const refused = (yield* documents.write(counter, other)) ?? write
        expect((yield* Effect.flip(store.commit({ documents: [refused], entries: [taken] })))._tag).toBe("Conflict")
        expect(yield* documents.get(counter, here)).toEqual(draft.value)
      }),
    ),
  )

  it.effect("of a document that another commit changed is refused", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        yield* documents.update(counter, here, count(1))
        const write = yield* documents.write(counter, (yield* documents.draft(counter, here)).edit(count(2)))
        yield* documents.update(counter, here, count(3))
        if (write === null) return expect.unreachable()
        expect((yield* Effect.flip(store.commit({ documents: [write] })))._tag).toBe("Conflict")
        expect((yield* documents.get(counter, here)).count).toBe(3)
      }),
    ),
  )

  it.effect("edited to what the schema refuses is an error that says where, and nothing is written", () =>
    world(({ documents, here }) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(documents.update(counter, here, count(1.5)))
        expect(error._tag).toBe("InvalidDocument")
        expect(error.message).toContain("document app.counter: count: ")
        expect((yield* documents.get(counter, here)).count).toBe(0)
      }),
    ),
  )

  it.effect("that retires its document leaves the address to the next one", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        yield* documents.update(counter, here, count(1))
        const end = yield* documents.write(counter, (yield* documents.draft(counter, here)).retire())
        if (end === null) return expect.unreachable()
        const retired = yield* store.commit({ documents: [end] })
        expect((yield* documents.get(counter, here)).count).toBe(0)
        yield* documents.update(counter, here, count(9))
        const [live] = yield* store.documents(here.conversation)
        expect(live?.id).not.toBe(end.id)
        expect((yield* documents.documentAt(counter, here, (retired - 1) as Seq)).count).toBe(1)
        expect((yield* documents.documentAt(counter, here, retired)).count).toBe(0)
      }),
    ),
  )

  it.effect("of a long list stores operations, not the list", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        const items = Array.from({ length: 500 }, (_, at) => ({
          id: `${at}`,
          text: "some words",
          status: "pending" as const,
        }))
        yield* documents.update(todoDocument, here, (draft) => {
          draft.items = items
        })
        yield* documents.update(todoDocument, here, ({ items: [first] }) => {
          if (first !== undefined) first.status = "done"
        })
        const [record] = yield* store.documents(here.conversation)
        if (record === undefined) return expect.unreachable()
        expect((yield* store.documentRevisions(record.id, record.seq)).at(-1)).toMatchObject({
          type: "delta",
          operations: [{ op: "replace", path: "/items/0/status", value: "done" }],
        })
      }),
    ),
  )

  it.effect("is stored whole where the definition's own checkpoint rule says so", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        const seen: Array<number> = []
        const own = defineDocument({
          ...base,
          ...rewindable,
          scope: "conversation",
          checkpointWhen: (value, { deltas }) => {
            seen.push(deltas)
            return value.count === 3
          },
        })
        const long = Array.from({ length: 50 }, (_, at) => `name ${at}`)
        yield* documents.update(own, here, (draft) => void draft.names.push(...long))
        const types: Array<string | undefined> = []
        for (let value = 1; value <= 5; value++) {
          yield* documents.update(own, here, count(value))
          const [record] = yield* store.documents(here.conversation)
          if (record === undefined) return expect.unreachable()
          types.push((yield* store.documentRevisions(record.id, record.seq)).at(-1)?.type)
        }
        expect(types).toEqual(["delta", "delta", "base", "delta", "delta"])
        expect(seen).toEqual([1, 2, 3, 1, 2])
      }),
    ),
  )
})

describe("a value of the past", () => {
  it.effect("is what the document held right after that commit, and the initial one before it was there", () =>
    world(({ documents, here, append }) =>
      Effect.gen(function* () {
        const seqs = [(yield* append()).seq]
        for (let value = 1; value <= 100; value++) {
          yield* documents.update(counter, here, (draft) => {
            draft.count = value
            if (value % 10 === 0) draft.names.push(`${value}`)
          })
          seqs.push((yield* append()).seq)
        }
        for (const [value, seq] of seqs.entries()) {
          const then = yield* documents.documentAt(counter, here, seq)
          expect([then.count, then.names.length]).toEqual([value, Math.floor(value / 10)])
        }
      }),
    ),
  )

  it.effect("of a document that keeps none is an error once it changed, and the value until then", () =>
    world(({ documents, here, append }) =>
      Effect.gen(function* () {
        yield* documents.update(latest, here, count(1))
        const { seq } = yield* append()
        expect((yield* documents.documentAt(latest, here, seq)).count).toBe(1)
        yield* documents.update(latest, here, count(2))
        const error = yield* Effect.flip(documents.documentAt(latest, here, seq))
        expect(error).toMatchObject({ _tag: "HistoryNotKept", document: "app.latest", seq })
        expect(error.message).toContain('its history is "latest"')
      }),
    ),
  )

  it.effect("outside a conversation is known of the live incarnation only", () =>
    world(({ documents, append }) =>
      Effect.gen(function* () {
        const before = yield* append()
        yield* documents.update(settings, {}, count(1))
        const { seq } = yield* append()
        yield* documents.update(settings, {}, count(2))
        expect((yield* documents.documentAt(settings, {}, seq)).count).toBe(1)
        expect((yield* Effect.flip(documents.documentAt(settings, {}, before.seq)))._tag).toBe("HistoryNotKept")
      }),
    ),
  )

  it.effect(
    "as of an entry is that of the entry's own conversation, through forks of forks, and only where it is shown",
    () =>
      world(({ documents, here, append, fork }) =>
        Effect.gen(function* () {
          yield* documents.update(counter, here, count(1))
          const first = yield* append()
          yield* documents.update(counter, here, count(2))
          const second = yield* append()
          yield* documents.update(counter, here, count(3))
          const third = yield* append()
          const child = yield* fork(second.id)
          yield* documents.update(counter, { conversation: child }, count(20))
          const own = yield* append(child)
          const grandchild = yield* fork(own.id, child)
          const at = (conversation: ConversationId, entry: EntryId) =>
            Effect.map(documents.snapshotAsOf(counter, { conversation }, entry), (value) => value.count)
          expect(yield* at(here.conversation, third.id)).toBe(3)
          expect(yield* at(child, first.id)).toBe(1)
          expect(yield* at(grandchild, second.id)).toBe(2)
          expect(yield* at(grandchild, own.id)).toBe(20)
          for (const [conversation, entry] of [
            [child, third.id],
            [grandchild, third.id],
            [here.conversation, own.id],
            [here.conversation, 999 as EntryId],
          ] as const) {
            const error = yield* Effect.flip(documents.snapshotAsOf(counter, { conversation }, entry))
            expect(error).toMatchObject({ _tag: "EntryNotVisible", conversation, entry })
          }
        }),
      ),
  )
})

describe("a document of another version of the code", () => {
  const second = defineDocument({
    ...rewindable,
    kind: base.kind,
    scope: "conversation",
    version: 2,
    schema: Schema.Struct({ total: Schema.Int, names: Schema.Array(Schema.String) }),
    initial: () => ({ total: 0, names: [] }),
    checkpointWhen: () => false,
    migrate: (value) => {
      const { count: total, ...rest } = value as { readonly count: number; readonly names: ReadonlyArray<string> }
      return { ...rest, total }
    },
  })

  it.effect("that is older is read through its migration, now and in the past, and written as the newer one", () =>
    world(({ documents, here, append, store }) =>
      Effect.gen(function* () {
        yield* documents.update(counter, here, count(1))
        const old = yield* append()
        yield* documents.update(counter, here, count(2))
        expect((yield* documents.get(second, here)).total).toBe(2)
        expect((yield* store.documents(here.conversation))[0]?.version).toBe(1)
        yield* documents.update(second, here, (draft) => void draft.names.push("x"))
        yield* documents.update(second, here, (draft) => void draft.total++)
        expect((yield* store.documents(here.conversation))[0]).toMatchObject({
          version: 2,
          value: { total: 3, names: ["x"] },
        })
        expect((yield* documents.documentAt(second, here, old.seq)).total).toBe(1)
      }),
    ),
  )

  it.effect("that is newer is refused by name, and keeps every byte", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        yield* documents.update(second, here, (draft) => {
          draft.total = 1
        })
        const before = yield* store.documents(here.conversation)
        for (const attempt of [
          documents.get(counter, here),
          documents.update(counter, here, count(1)),
          Effect.flatMap(documents.draft(counter, here), () => Effect.void),
        ]) {
          const error = yield* Effect.flip(attempt)
          expect(error).toMatchObject({ _tag: "NewerDocument", document: "app.counter", found: 2, supported: 1 })
        }
        expect(yield* store.documents(here.conversation)).toEqual(before)
      }),
    ),
  )

  it.effect("that is damaged is a corrupt row that names it", () =>
    world(({ documents, here, store }) =>
      Effect.gen(function* () {
        const [id] = yield* store.mint("document", 1)
        if (id === undefined) return
        yield* store.commit({
          documents: [rows.document(id, here.conversation, { kind: counter.kind, value: { count: "x", names: [] } })],
        })
        const error = yield* Effect.flip(documents.get(counter, here))
        expect(error).toMatchObject({ _tag: "CorruptRow", table: "documents", row: `${id} (app.counter)` })
        expect(error.message).toContain("count: ")
      }),
    ),
  )
})

it.effect("documents are made from any store", () =>
  Effect.gen(function* () {
    const documents = makeDocuments(yield* makeMemoryStore(memoryDatabase()))
    expect((yield* documents.update(settings, {}, count(4))).count).toBe(4)
  }),
)
