/**
 * The documents of forks: by each row's policy, known kinds and unknown ones.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DocumentRecord } from "../../src/domain/document.ts"
import type { Entry } from "../../src/domain/entry.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import * as rows from "../../src/storage/conformance/records.ts"
import { forkDocuments } from "../../src/storage/documents/fork.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import type { DocumentWrite, StoreService } from "../../src/storage/store.ts"

const fresh = Effect.suspend(() => makeMemoryStore(memoryDatabase()))

const mintOne = (store: StoreService, kind: "conversation" | "entry" | "document") =>
  Effect.map(store.mint(kind, 1), ([id]) => id as number)

/** A conversation with its documents, each under its kind's name. */
const begin = (store: StoreService, kinds: ReadonlyArray<Partial<DocumentWrite> & { readonly kind: string }>) =>
  Effect.gen(function* () {
    const id = (yield* mintOne(store, "conversation")) as ConversationId
    const documents: Array<DocumentWrite> = []
    for (const some of kinds) documents.push(rows.document((yield* mintOne(store, "document")) as never, id, some))
    yield* store.commit({ conversations: [rows.conversation(id)], documents })
    return { id, documents }
  })

const append = (store: StoreService, of: ConversationId) =>
  Effect.gen(function* () {
    const id = (yield* mintOne(store, "entry")) as never
    yield* store.commit({ entries: [rows.entry(id, of)] })
    return (yield* store.entry(id)) as Entry
  })

const forkAt = (store: StoreService, conversation: ConversationId, entry: Entry) =>
  Effect.gen(function* () {
    const into = (yield* mintOne(store, "conversation")) as ConversationId
    const documents = yield* forkDocuments(store, { conversation, entry }, into)
    const parent = { conversation: entry.conversation, entry: entry.id }
    yield* store.commit({ conversations: [rows.conversation(into, { parent })], documents })
    return into
  })

const valuesOf = (documents: ReadonlyArray<DocumentRecord>) =>
  Object.fromEntries(documents.map((row) => [row.key === "" ? row.kind : `${row.kind}/${row.key}`, row.value]))

const three = [
  { kind: "app.fresh", fork: "initial", value: 0 },
  { kind: "app.now", fork: "current", value: 0 },
  { kind: "app.then", fork: "asOf", history: "rewindable", value: 0 },
] as const

describe("a fork", () => {
  it.effect("starts without `initial` documents, with the parent's current ones, and with those as of its entry", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { documents, id } = yield* begin(store, three)
      const set = (value: number) => store.commit({ documents: documents.map((row) => ({ ...row, value })) })
      yield* set(1)
      const entry = yield* append(store, id)
      yield* set(2)
      const fork = yield* forkAt(store, id, entry)
      expect(valuesOf(yield* store.documents(fork))).toEqual({ "app.now": 2, "app.then": 1 })
      const [now, then] = yield* store.documents(fork)
      expect([now?.fork, now?.history, then?.fork, then?.history]).toEqual(["current", "latest", "asOf", "rewindable"])
      // its own from now on
      yield* set(3)
      expect(valuesOf(yield* store.documents(fork))).toEqual({ "app.now": 2, "app.then": 1 })
    }),
  )

  it.effect("of a fork at an inherited entry takes the ancestor's documents of that time", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { documents, id } = yield* begin(store, three)
      const [, , then] = documents
      if (then === undefined) return
      const first = yield* append(store, id)
      yield* store.commit({ documents: [{ ...then, value: "later" }] })
      const second = yield* append(store, id)
      const fork = yield* forkAt(store, id, second)
      const [own] = (yield* store.documents(fork)).filter((row) => row.kind === then.kind)
      if (own === undefined) return
      yield* store.commit({ documents: [{ ...own, conversation: fork, value: "own" }] })
      const third = yield* append(store, fork)
      const inherited = yield* forkAt(store, fork, first)
      const ofItsOwn = yield* forkAt(store, fork, third)
      expect(valuesOf(yield* store.documents(inherited))["app.then"]).toBe(0)
      expect(valuesOf(yield* store.documents(ofItsOwn))["app.then"]).toBe("own")
    }),
  )

  it.effect("takes an incarnation that was retired since, and none that was created since", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const family = { kind: "app.item", fork: "asOf", history: "rewindable" } as const
      const { documents, id } = yield* begin(store, [
        { ...family, key: "gone", value: 1 },
        { ...family, key: "kept", value: 1 },
      ])
      const [gone] = documents
      if (gone === undefined) return
      const entry = yield* append(store, id)
      const late = rows.document((yield* mintOne(store, "document")) as never, id, { ...family, key: "late" })
      yield* store.commit({ documents: [{ ...gone, value: 2, retire: true }, late] })
      const fork = yield* forkAt(store, id, entry)
      expect(valuesOf(yield* store.documents(fork))).toEqual({ "app.item/gone": 1, "app.item/kept": 1 })
    }),
  )

  it.effect("keeps version and value of a kind that no code here defines, to the last character", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const value = JSON.parse('{"__proto__":{"x":[1,null,"\\ud800"]},"constructor":1,"2":"b","":{}}')
      const unknown = { kind: "other.plugin", version: 41, value, fork: "asOf", history: "rewindable" } as const
      const { id } = yield* begin(store, [unknown])
      const fork = yield* forkAt(store, id, yield* append(store, id))
      const [copy] = yield* store.documents(fork)
      expect(copy?.version).toBe(41)
      expect(JSON.stringify(copy?.value)).toBe(JSON.stringify(value))
    }),
  )

  it.effect("starts afresh with an `asOf` document that kept no history and has changed since", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { documents, id } = yield* begin(store, [{ kind: "app.odd", fork: "asOf", value: 1 }])
      const entry = yield* append(store, id)
      expect(valuesOf(yield* store.documents(yield* forkAt(store, id, entry)))).toEqual({ "app.odd": 1 })
      yield* store.commit({ documents: documents.map((row) => ({ ...row, value: 2 })) })
      expect(valuesOf(yield* store.documents(yield* forkAt(store, id, entry)))).toEqual({})
    }),
  )
})
