/**
 * Damaged rows and files: a typed error that names what and where, and nothing else is touched.
 */
import { closeSync, openSync, statSync, writeSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Arbitrary, Effect, Either, FastCheck as fc, Schema } from "effect"
import { ContextEdit } from "../../src/domain/entry.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { Message } from "../../src/domain/message.ts"
import { conversation, document, entry, submission, task } from "../../src/storage/conformance/records.ts"
import type { ReadError } from "../../src/storage/errors.ts"
import { areEdits, areMessages } from "../../src/storage/guards.ts"
import { makeSqliteReader, makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { temporaryDirectory } from "./support.ts"

/** A closed database with one row of each kind in each of two conversations. */
const written = Effect.gen(function* () {
  const path = join(yield* temporaryDirectory, "store.db")
  yield* Effect.scoped(
    Effect.gen(function* () {
      const store = yield* makeSqliteStore({ path })
      const conversations = yield* store.mint("conversation", 2)
      const entries = yield* store.mint("entry", 2)
      const tasks = yield* store.mint("task", 2)
      const submissions = yield* store.mint("submission", 2)
      const documents = yield* store.mint("document", 2)
      for (const [index, of] of conversations.entries()) {
        const [e, t, s, d] = [entries[index], tasks[index], submissions[index], documents[index]]
        if (e === undefined || t === undefined || s === undefined || d === undefined) continue
        yield* store.commit({
          conversations: [conversation(of)],
          entries: [entry(e, of)],
          tasks: [task(t, of)],
          submissions: [submission(s, of)],
          documents: [document(d, of)],
        })
      }
    }),
  )
  return path
})

/** That database edited by `sql` and opened again. */
const damaged = (sql: string) =>
  Effect.gen(function* () {
    const path = yield* written
    const db = new Database(path)
    db.exec(sql)
    db.close()
    return { path, store: yield* makeSqliteStore({ path }) }
  })

const cases: ReadonlyArray<readonly [what: string, sql: string, table: string, row: string, detail: RegExp]> = [
  [
    "an entry whose messages are not JSON",
    `UPDATE entries SET model = '[{"role"' WHERE id = 1`,
    "entries",
    "1",
    /^model: expected JSON/,
  ],
  [
    "an entry whose message has an unknown role",
    `UPDATE entries SET model = '[{"role":"king","content":[]}]' WHERE id = 1`,
    "entries",
    "1",
    /^model\.0/,
  ],
  [
    "an entry whose text is a number",
    `UPDATE entries SET model = '[{"role":"user","content":[{"type":"text","text":5}]}]' WHERE id = 1`,
    "entries",
    "1",
    /^model\.0/,
  ],
  ["an entry whose kind is empty", "UPDATE entries SET kind = '' WHERE id = 1", "entries", "1", /^kind/],
  ["an entry with an impossible head", "UPDATE entries SET head = -3 WHERE id = 1", "entries", "1", /^head/],
  [
    "a task whose outcome has no status",
    "UPDATE tasks SET status = 'waiting', outcome = '{}' WHERE id = 1",
    "tasks",
    "1",
    /^outcome/,
  ],
  [
    "a task whose checkpoint is not JSON",
    "UPDATE tasks SET checkpoint = 'oops' WHERE id = 1",
    "tasks",
    "1",
    /^checkpoint: expected JSON/,
  ],
  ["a submission of an unknown kind", "UPDATE submissions SET kind = 'gift' WHERE id = 1", "submissions", "1", /^kind/],
  ["a document in an unknown scope", "UPDATE documents SET scope = 'galaxy' WHERE id = 1", "documents", "1", /^scope/],
  [
    "a conversation that is its own ancestor",
    "UPDATE conversations SET parent_conversation = 1, parent_entry = 1 WHERE id = 1",
    "conversations",
    "1",
    /^parent/,
  ],
]

describe("a damaged row", () => {
  it.scopedLive.each(cases)(
    "%s is named by table, row and path; the other conversation still reads",
    ([, sql, table, row, detail]) =>
      Effect.gen(function* () {
        const { path, store } = yield* damaged(sql)
        const everythingOf = (id: number) =>
          Effect.all([
            store.visibleEntries(id as never),
            store.openTasks(id as never),
            store.openSubmissions(id as never),
            store.documents(id as never),
          ])
        const error = yield* Effect.flip(everythingOf(1))
        expect(error).toMatchObject({ _tag: "CorruptRow", location: path, table, row })
        expect(error._tag === "CorruptRow" ? error.detail : "").toMatch(detail)
        expect((yield* everythingOf(2)).map((rows) => rows.length)).toEqual([1, 1, 1, 1])
        const [next] = yield* store.mint("entry", 1)
        if (next !== undefined) yield* store.commit({ entries: [entry(next, 2 as never)] })
      }),
  )
})

describe("a damaged lineage", () => {
  it.scopedLive.each([
    [
      "that closes a circle",
      "parent_conversation = 2, parent_entry = 1",
      "parent: expected an older conversation, got 2",
    ],
    [
      "with a younger parent",
      "parent_conversation = 3, parent_entry = 1",
      "parent: expected an older conversation, got 3",
    ],
    [
      "that forks at no entry",
      "parent_conversation = 1, parent_entry = NULL",
      "parent: expected an entry of conversation 1, got null",
    ],
  ])("%s is named by every read that follows it, of an owner and of a reader", ([, change, detail]) =>
    Effect.gen(function* () {
      const { path, store } = yield* damaged(`UPDATE conversations SET ${change} WHERE id = 2`)
      const reader = yield* makeSqliteReader({ path })
      const [sound, faulty] = [1 as ConversationId, 2 as ConversationId]
      for (const reads of [store, reader]) {
        for (const read of ["visibleEntries", "contextEntries", "entryCount"] as const) {
          const error = yield* Effect.flip(Effect.asVoid<unknown, ReadError, never>(reads[read](faulty)))
          expect(error).toMatchObject({ _tag: "CorruptRow", location: path, table: "conversations", row: "2", detail })
          yield* Effect.asVoid<unknown, ReadError, never>(reads[read](sound))
        }
      }
    }),
  )
})

describe("a damaged file", () => {
  it.scopedLive("gives a typed error with advice where its pages are overwritten", () =>
    Effect.gen(function* () {
      const path = yield* written
      const size = statSync(path).size
      const file = openSync(path, "r+")
      writeSync(file, Buffer.alloc(size - 8192, 0x5a), 0, size - 8192, 8192)
      closeSync(file)
      const error = yield* Effect.flip(
        Effect.scoped(
          Effect.flatMap(makeSqliteReader({ path }), (reader) => reader.conversations({ principal: null, limit: 9 })),
        ),
      )
      expect(error).toMatchObject({ _tag: "StorageUnavailable", location: path })
      expect(error.message).toContain("the file is damaged")
    }),
  )
})

/** Any message, and any message with one of its parts replaced by something else. */
const nearMessages = (() => {
  const sound = Arbitrary.make(Schema.Array(Message)).map((messages): unknown => JSON.parse(JSON.stringify(messages)))
  const change = (value: unknown, path: ReadonlyArray<number>, other: unknown): unknown => {
    const [step, ...rest] = path
    if (step === undefined || typeof value !== "object" || value === null) return other
    const names = Object.keys(value)
    const name = names[step % Math.max(1, names.length)]
    if (name === undefined) return other
    const copy: Record<string, unknown> | Array<unknown> = Array.isArray(value) ? [...value] : { ...value }
    Object.assign(copy, { [name]: change(Reflect.get(value, name), rest, other) })
    return copy
  }
  const strange = fc
    .tuple(
      sound,
      fc.array(fc.nat(6), { minLength: 1, maxLength: 5 }),
      fc.oneof(fc.jsonValue(), fc.constantFrom("text", "stop", -1, 1.5)),
    )
    .map(([messages, path, other]) => change(messages, path, other))
  return fc.oneof(sound, strange)
})()

describe("the fast checks", () => {
  it("pass only what the schema accepts and would give back unchanged", () => {
    const decode = Schema.decodeUnknownEither(Schema.Array(Message))
    let passed = 0
    fc.assert(
      fc.property(nearMessages, (value) => {
        if (!areMessages(value)) return
        passed++
        expect(decode(value)).toEqual(Either.right(value))
      }),
      { numRuns: 400 },
    )
    expect(passed).toBeGreaterThan(20)
  })

  it("pass omissions only as the schema does", () => {
    const decode = Schema.decodeUnknownEither(Schema.Array(ContextEdit))
    const edit = fc.record({
      type: fc.constantFrom("omit", "replace", "x"),
      entry: fc.oneof(fc.integer(), fc.string()),
    })
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 2 }), (value) => {
        if (areEdits(value)) expect(decode(value)).toEqual(Either.right(value))
      }),
    )
    expect(areEdits([{ type: "omit", entry: 3 }])).toBe(true)
  })
})
