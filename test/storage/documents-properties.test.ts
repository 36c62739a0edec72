/**
 * Properties of documents over any history: values of every commit, forks as of an entry, unknown kinds, and drafts as plain edits.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Schema } from "effect"
import fc from "fast-check"
import { defineDocument } from "../../src/domain/document-definition.ts"
import type { DocumentRevision } from "../../src/domain/document-revision.ts"
import { replay } from "../../src/domain/document-revision.ts"
import type { ConversationId, EntryId, Seq } from "../../src/domain/ids.ts"
import type { Json } from "../../src/domain/json.ts"
import * as rows from "../../src/storage/conformance/records.ts"
import { makeDocuments } from "../../src/storage/documents/documents.ts"
import { documentDraft } from "../../src/storage/documents/draft.ts"
import { forkDocuments } from "../../src/storage/documents/fork.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import type { StoreService } from "../../src/storage/store.ts"

const runs = { numRuns: 1_000 }

const copy = <A>(value: A): A => JSON.parse(JSON.stringify(value))

const check = <A>(arbitrary: fc.Arbitrary<A>, body: (value: A) => Effect.Effect<void, unknown>) =>
  fc.assert(
    fc.asyncProperty(arbitrary, (value) => Effect.runPromise(Effect.asVoid(body(value)))),
    runs,
  )

/** Any JSON as a document. */
const anything = (kind: string, some: { readonly checkpointWhen?: () => boolean } = {}) =>
  defineDocument({
    kind,
    version: 1,
    schema: Schema.Unknown,
    scope: "conversation",
    history: "rewindable",
    fork: "asOf",
    family: true,
    initial: (): unknown => null,
    ...some,
  })

const key = fc.constantFrom("a", "b", "c/d", "~", "constructor", "__proto__")
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<Json>(null, 0, 1, "x"),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 3 }).map((entries): Json => Object.fromEntries(entries)),
  ),
})).value

const freshConversation = (store: StoreService) =>
  Effect.gen(function* () {
    const [id] = (yield* store.mint("conversation", 1)) as [ConversationId]
    yield* store.commit({ conversations: [rows.conversation(id)] })
    return id
  })

/** An edit of a JSON tree in place: what a program would do to an object that it holds. */
interface Edit {
  readonly path: ReadonlyArray<number>
  readonly act: "set" | "delete" | "push" | "shift" | "splice" | "reverse" | "repeat"
  readonly key: string
  readonly at: number
  readonly value: Json
}

const edit: fc.Arbitrary<Edit> = fc.record({
  path: fc.array(fc.nat(4), { maxLength: 3 }),
  act: fc.constantFrom("set", "delete", "push", "shift", "splice", "reverse", "repeat"),
  key: fc.constantFrom("a", "b", "c/d", "~", "constructor"),
  at: fc.nat(4),
  value: json,
})

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const apply = (root: unknown, { act, at, key: name, path, value }: Edit): void => {
  let target = root
  for (const step of path) {
    const inner: unknown = isObject(target) ? Object.values(target)[step] : undefined
    if (isObject(inner)) target = inner
  }
  if (Array.isArray(target)) {
    if (act === "push") target.push(copy(value))
    else if (act === "shift") target.shift()
    else if (act === "splice") target.splice(at, 1, copy(value), copy(value))
    else if (act === "reverse") target.reverse()
    else if (act === "set" && at < target.length) target[at] = copy(value)
  } else if (isObject(target)) {
    if (act === "set") target[name] = copy(value)
    else if (act === "delete") delete target[name]
    // a part of the value in a second place
    else if (act === "repeat" && isObject(Object.values(target)[at])) target[name] = copy(Object.values(target)[at])
  }
}

describe("a draft", () => {
  it("edited in any way holds what the same edits of a plain copy give, and leaves what it was made from alone", () =>
    check(fc.tuple(json, fc.array(edit, { maxLength: 6 })), ([before, edits]) =>
      Effect.gen(function* () {
        const definition = anything("app.any")
        const record = {
          ...rows.document(1 as never, 1 as never, {
            kind: definition.kind,
            key: "k",
            value: before,
            history: "rewindable",
          }),
          createdSeq: 1 as Seq,
          retiredSeq: null,
          seq: 1 as Seq,
        }
        const untouched = JSON.stringify(before)
        const draft = yield* documentDraft(definition, { record, tail: { deltas: 0, bytes: 0 } }).pipe(
          Either.mapLeft(String),
        )
        const plain = copy(before)
        for (const one of edits) apply(plain, one)
        const edited = edits.reduce((now, one) => now.edit((value) => apply(value, one)), draft)
        expect(copy(edited.value)).toEqual(copy(plain))
        expect(JSON.stringify(before)).toBe(untouched)
        const write = yield* edited.write().pipe(Either.mapLeft(String))
        if (write === null) return expect(copy(plain)).toEqual(before)
        const base: DocumentRevision = { type: "base", seq: 1 as Seq, version: 1, value: before }
        const next: ReadonlyArray<DocumentRevision> =
          write.revision === undefined
            ? [{ ...base, value: write.value }]
            : [base, { type: "delta", seq: 2 as Seq, version: 1, operations: copy(write.revision.operations) }]
        expect(Either.getOrThrow(replay(next)).value).toEqual(copy(plain))
      }),
    ))
})

describe("the value of a document", () => {
  it("after every commit is rebuilt from the nearest base, and from any base before it", () =>
    check(
      fc.tuple(
        json,
        fc.array(fc.oneof(fc.array(edit, { minLength: 1, maxLength: 3 }), json), { maxLength: 14 }),
        fc.nat(6),
      ),
      ([first, steps, every]) =>
        Effect.gen(function* () {
          let changes = 0
          const definition = anything("app.any", { checkpointWhen: () => ++changes % (every + 1) === 0 })
          const store = yield* makeMemoryStore(memoryDatabase())
          const documents = makeDocuments(store)
          const target = { conversation: yield* freshConversation(store), key: "k" }
          const wanted = new Map<Seq, Json>()
          const set = (value: Json | ReadonlyArray<Edit>) =>
            Effect.gen(function* () {
              const draft = yield* documents.draft(definition, target)
              const isEdits =
                Array.isArray(value) && value.length > 0 && value.every((one) => isObject(one) && "act" in one)
              const next = isEdits
                ? (value as ReadonlyArray<Edit>).reduce((now, one) => now.edit((tree) => apply(tree, one)), draft)
                : draft.replace(value)
              const write = yield* documents.write(definition, next)
              if (write === null) return
              wanted.set(yield* store.commit({ documents: [write] }), copy(next.value as Json))
            })
          yield* set(first)
          for (const step of steps) yield* set(step)
          const [record] = yield* store.documents(target.conversation)
          if (record === undefined) return
          const all = new Map<Seq, DocumentRevision>()
          for (const [seq, value] of wanted) {
            expect(yield* documents.documentAt(definition, target, seq)).toEqual(value)
            for (const revision of yield* store.documentRevisions(record.id, seq)) all.set(revision.seq, revision)
          }
          const chain = [...all.values()].sort((a, b) => a.seq - b.seq)
          expect(chain.map((revision) => revision.seq)).toEqual([...wanted.keys()])
          for (const [from, base] of chain.entries()) {
            if (base.type !== "base") continue
            for (let until = from; until < chain.length; until++) {
              const reached = Either.getOrThrow(replay(chain.slice(from, until + 1))).value
              expect(reached).toEqual(wanted.get(chain[until]?.seq as Seq))
            }
          }
          expect(record.value).toEqual([...wanted.values()].at(-1))
        }),
    ))
})

describe("a fork", () => {
  type Step =
    | { readonly do: "set"; readonly where: number; readonly key: string; readonly value: Json }
    | { readonly do: "retire"; readonly where: number; readonly key: string }
    | { readonly do: "append"; readonly where: number }
    | { readonly do: "fork"; readonly where: number; readonly at: number }

  const where = fc.nat(5)
  const member = fc.constantFrom("k", "l")
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("set" as const), where, key: member, value: json }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("retire" as const), where, key: member }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("append" as const), where }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("fork" as const), where, at: fc.nat(20) }) },
  )

  /** What a conversation holds, in the plainest form, and what each entry that it shows was written beside. */
  interface Plain {
    readonly id: ConversationId
    readonly now: Map<string, Json>
    readonly shown: ReadonlyArray<{ readonly id: EntryId; readonly held: ReadonlyMap<string, Json> }>
  }

  it("anywhere, of a fork or not, holds exactly what the entry's conversation held at that entry", () =>
    check(fc.array(step, { minLength: 4, maxLength: 24 }), (steps) =>
      Effect.gen(function* () {
        const store = yield* makeMemoryStore(memoryDatabase())
        const documents = makeDocuments(store)
        const definition = anything("app.any")
        const plain: Array<Plain> = [{ id: yield* freshConversation(store), now: new Map(), shown: [] }]
        for (const one of steps) {
          const place = one.where % plain.length
          const here = plain[place] as Plain
          const target = { conversation: here.id, key: "key" in one ? one.key : "" }
          if (one.do === "set") {
            const draft = (yield* documents.draft(definition, target)).replace(one.value)
            const write = yield* documents.write(definition, draft)
            if (write !== null) yield* store.commit({ documents: [write] })
            here.now.set(one.key, one.value)
          } else if (one.do === "retire") {
            if (!here.now.delete(one.key)) continue
            const write = yield* documents.write(definition, (yield* documents.draft(definition, target)).retire())
            yield* store.commit({ documents: write === null ? [] : [write] })
          } else if (one.do === "append") {
            const [id] = (yield* store.mint("entry", 1)) as [EntryId]
            yield* store.commit({ entries: [rows.entry(id, here.id)] })
            plain[place] = { ...here, shown: [...here.shown, { id, held: new Map(here.now) }] }
          } else if (here.shown.length > 0) {
            const at = one.at % here.shown.length
            const entry = yield* store.entry(here.shown[at]?.id as EntryId)
            const [id] = (yield* store.mint("conversation", 1)) as [ConversationId]
            if (entry === null) return expect.unreachable()
            yield* store.commit({
              conversations: [rows.conversation(id, { parent: { conversation: here.id, entry: entry.id } })],
              documents: yield* forkDocuments(store, { conversation: here.id, entry }, id),
            })
            plain.push({ id, now: new Map(here.shown[at]?.held), shown: here.shown.slice(0, at + 1) })
          }
        }
        for (const { id, now, shown } of plain) {
          const members = yield* documents.family(definition, { conversation: id })
          expect(new Map(members.map(({ key: name, value }) => [name, value]))).toEqual(now)
          for (const { id: entry, held } of shown) {
            for (const name of ["k", "l"]) {
              const value = yield* documents.snapshotAsOf(definition, { conversation: id, key: name }, entry)
              expect(value).toEqual(held.get(name) ?? null)
            }
          }
        }
      }),
    ))
})

describe("a document that some versions of the code do not know", () => {
  /** Version `n` of the code adds the field `f<n>`. */
  const version = (n: number) =>
    defineDocument({
      kind: "other.plugin",
      version: n,
      schema: Schema.Struct({ rest: Schema.Unknown, touched: Schema.Int }),
      scope: "conversation",
      history: "rewindable",
      fork: "asOf",
      initial: (): { readonly rest: unknown; readonly touched: number } => ({ rest: null, touched: 0 }),
      migrate: (value, from) => ({ ...(value as { readonly [name: string]: Json }), [`f${from + 1}`]: from }),
    })

  /** Who acts: 0 knows no definition, `n` knows version `n`. */
  const actor = fc.nat(4)
  const act = fc.constantFrom("read" as const, "touch" as const, "fork" as const, "beside" as const)

  it("loses no byte, whoever reads, forks, writes beside it or is refused; a write changes what it says and no more", () =>
    check(fc.tuple(json, fc.array(fc.tuple(actor, act, fc.nat(3)), { maxLength: 12 })), ([rest, acts]) =>
      Effect.gen(function* () {
        const store = yield* makeMemoryStore(memoryDatabase())
        const documents = makeDocuments(store)
        const conversations = [yield* freshConversation(store)]
        const first = conversations[0] as ConversationId
        const [id] = yield* store.mint("document", 1)
        if (id === undefined) return
        const value = { extra: [rest], rest, touched: 0 }
        const some = { kind: "other.plugin", version: 2, history: "rewindable", fork: "asOf", value } as const
        yield* store.commit({ documents: [rows.document(id, first, some)] })
        /** The stored text and version of it in each conversation, as they must be. */
        const wanted = new Map([[first, { version: 2, value: value as { readonly [name: string]: Json } }]])
        for (const [code, what, place] of acts) {
          const conversation = conversations[place % conversations.length] as ConversationId
          const mine = wanted.get(conversation)
          if (mine === undefined) return expect.unreachable()
          const definition = code === 0 ? null : version(code)
          const refused = code < mine.version
          if (what === "read" && definition !== null) {
            const result = yield* Effect.either(documents.get(definition, { conversation }))
            expect(Either.isLeft(result)).toBe(refused)
          } else if (what === "touch" && definition !== null) {
            const touched = documents.update(definition, { conversation }, (draft) => void draft.touched++)
            const result = yield* Effect.either(touched)
            expect(Either.isLeft(result)).toBe(refused)
            if (refused) continue
            const added = Object.fromEntries(
              Array.from({ length: code - mine.version }, (_, at) => [`f${mine.version + at + 1}`, mine.version + at]),
            )
            const next = { ...mine.value, ...added, touched: Number(mine.value.touched) + 1 }
            wanted.set(conversation, { version: code, value: next })
          } else if (what === "fork") {
            const [entry, into] = [
              ((yield* store.mint("entry", 1)) as [EntryId])[0],
              ((yield* store.mint("conversation", 1)) as [ConversationId])[0],
            ]
            yield* store.commit({ entries: [rows.entry(entry, conversation)] })
            const at = yield* store.entry(entry)
            if (at === null) return expect.unreachable()
            yield* store.commit({
              conversations: [rows.conversation(into, { parent: { conversation, entry } })],
              documents: yield* forkDocuments(store, { conversation, entry: at }, into),
            })
            conversations.push(into)
            wanted.set(into, mine)
          } else {
            yield* documents.update(anything("app.beside"), { conversation, key: "k" }, () => {})
            const beside = (yield* documents.draft(anything("app.beside"), { conversation, key: "k" })).replace(code)
            const write = yield* documents.write(anything("app.beside"), beside)
            if (write !== null) yield* store.commit({ documents: [write] })
          }
        }
        for (const [conversation, { value: text, version: by }] of wanted) {
          const found = (yield* store.documents(conversation)).filter((row) => row.kind === "other.plugin")
          expect(found.map((row) => [row.version, JSON.stringify(row.value)])).toEqual([[by, JSON.stringify(text)]])
        }
      }),
    ))
})
