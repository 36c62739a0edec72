/**
 * Damaged revisions in a SQLite file: a typed error that names the row, for the commits that need it and for no other.
 */
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Schema } from "effect"
import { defineDocument } from "../../src/domain/document-definition.ts"
import type { DocumentId, Seq } from "../../src/domain/ids.ts"
import { makeDocuments } from "../../src/storage/documents/documents.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { temporaryDirectory } from "./support.ts"

const counter = defineDocument({
  kind: "app.counter",
  version: 1,
  schema: Schema.Struct({ count: Schema.Int, padding: Schema.String }),
  scope: "global",
  history: "rewindable",
  initial: () => ({ count: 0, padding: "x".repeat(200) }),
})

/** A closed database whose document was 1, 2, 3 and 4, one commit each: a base and three deltas. */
const written = Effect.gen(function* () {
  const path = join(yield* temporaryDirectory, "store.db")
  const seqs: Array<Seq> = []
  const id = yield* Effect.scoped(
    Effect.gen(function* () {
      const store = yield* makeSqliteStore({ path })
      const documents = makeDocuments(store)
      let id: DocumentId | null = null
      for (let count = 1; count <= 4; count++) {
        yield* documents.update(counter, {}, (value) => {
          value.count = count
        })
        const record = yield* store.globalDocument(counter.kind, "")
        if (record === null) return expect.unreachable()
        id = record.id
        seqs.push(record.seq)
      }
      return id
    }),
  )
  return { path, id, seqs: seqs as [Seq, Seq, Seq, Seq] }
})

const damage = (sql: string, where: "base" | "third" | "all") =>
  Effect.gen(function* () {
    const { id, path, seqs } = yield* written
    const db = new Database(path)
    const seq = where === "base" ? seqs[0] : seqs[2]
    db.exec(where === "all" ? sql : `${sql} WHERE seq = ${seq}`)
    db.close()
    const documents = makeDocuments(yield* makeSqliteStore({ path }))
    return { documents, id, seqs }
  })

describe("a damaged revision", () => {
  const cases = [
    ["that is not JSON", "UPDATE document_revisions SET body = '[{'", "body: expected JSON"],
    ["that is no list of operations", `UPDATE document_revisions SET body = '{"op":"add"}'`, "Expected"],
    ["with an unknown operation", `UPDATE document_revisions SET body = '[{"op":"jump","path":"/count"}]'`, "op"],
    ["of an unknown type", "UPDATE document_revisions SET type = 'gamma'", "type"],
    [
      "that does not fit",
      `UPDATE document_revisions SET body = '[{"op":"remove","path":"/none"}]'`,
      "operation 0 (remove /none)",
    ],
    [
      "that walks into a prototype",
      `UPDATE document_revisions SET body = '[{"op":"add","path":"/__proto__/x","value":1}]'`,
      "expected a path without __proto__",
    ],
  ] as const

  it.scoped.each(cases)("%s is named, and the commits before it can still be read", ([, sql, detail]) =>
    Effect.gen(function* () {
      const { documents, id, seqs } = yield* damage(sql, "third")
      const error = yield* Effect.flip(documents.documentAt(counter, {}, seqs[2]))
      expect(error).toMatchObject({ _tag: "CorruptRow", table: "document_revisions", row: `${id} at ${seqs[2]}` })
      expect(error.message).toContain(detail)
      expect((yield* documents.documentAt(counter, {}, seqs[0])).count).toBe(1)
      expect((yield* documents.documentAt(counter, {}, seqs[1])).count).toBe(2)
      // what is now needs no revision
      expect((yield* documents.get(counter, {})).count).toBe(4)
      expect((yield* documents.documentAt(counter, {}, seqs[3])).count).toBe(4)
    }),
  )

  it.scoped("whose base is gone is named by the document", () =>
    Effect.gen(function* () {
      const { documents, id, seqs } = yield* damage("DELETE FROM document_revisions", "base")
      const error = yield* Effect.flip(documents.documentAt(counter, {}, seqs[1]))
      expect(error).toMatchObject({ _tag: "CorruptRow", table: "document_revisions", row: `${id}` })
      expect(error.message).toContain("expected a base at or before commit")
    }),
  )

  it.scoped("that is lost altogether does not keep the document from going on, with a base", () =>
    Effect.gen(function* () {
      const { documents } = yield* damage("DELETE FROM document_revisions", "all")
      const next = yield* documents.update(counter, {}, (value) => {
        value.count = 5
      })
      expect(next.count).toBe(5)
      expect((yield* documents.get(counter, {})).count).toBe(5)
    }),
  )
})
