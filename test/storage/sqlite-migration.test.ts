/**
 * A database of an older schema version: an owner migrates it with every row, a reader reads it and leaves it as it is.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { ConversationId, DocumentId, EntryId, JobId, SubmissionId, TaskId } from "../../src/domain/ids.ts"
import { job, task } from "../../src/storage/conformance/records.ts"
import { migrateFile } from "../../src/storage/sqlite/migrate.ts"
import { applicationId, migrations, schemaVersion } from "../../src/storage/sqlite/schema.ts"
import { makeSqliteReader, makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreReads } from "../../src/storage/store.ts"
import { bundle, run, temporaryDirectory } from "./support.ts"

const [conversation, fork] = [1 as ConversationId, 2 as ConversationId]
const at = 1_750_000_000_000

/** A closed file as version 1 of the program left it, with rows in every table. */
const versionOne = (path: string): void => {
  const db = new Database(path)
  db.pragma("journal_mode = WAL")
  db.exec(migrations[0] ?? "")
  db.pragma(`application_id = ${applicationId}`)
  db.pragma("user_version = 1")
  db.exec(`
    UPDATE meta SET value = 9 WHERE name = 'epoch';
    UPDATE meta SET value = 50 WHERE name IN ('seq', 'conversation', 'entry', 'task', 'submission', 'document');
    INSERT INTO conversations VALUES (1, NULL, NULL, NULL, 'ann', 'a title', ${at}, ${at}, 3), (2, 1, 11, NULL, 'ann', NULL, ${at}, ${at}, 4);
    INSERT INTO entries VALUES
      (11, 1, 'pi.user', '[{"role":"user","content":[{"type":"text","text":"hello"}]}]', NULL, NULL, '[]', NULL, ${at}, 3),
      (12, 1, 'pi.error', '[]', '{"why":[1]}', 11, '[{"type":"omit","entry":11}]', 21, ${at}, 4);
    INSERT INTO tasks VALUES
      (21, 1, 'pi.generation', 1, '{"a":1}', 'sleeping', '{"phase":"sleep"}', NULL, 0, 1, 2, NULL, NULL, 7, NULL, ${at + 9}, NULL, ${at}, ${at}, NULL, 4),
      (22, 1, 'pi.tool', 1, '{}', 'terminal', 'null', 21, 1, 0, 0, NULL, NULL, 7, NULL, NULL, '{"status":"completed","result":1}', ${at}, ${at}, ${at}, 4);
    INSERT INTO submissions VALUES (31, 1, 'input', '{"content":[]}', 'followUp', 'placed', NULL, NULL, 'r1', 11, NULL, ${at}, 3);
    INSERT INTO documents VALUES
      (41, 'pi.agent', 'conversation', 1, NULL, '', 1, 'rewindable', '{"model":"mock/echo"}', 3, NULL, 4),
      (42, 'pi.live', 'conversation', 1, NULL, '', 1, 'latest', '{"generation":null,"tools":{},"retry":null}', 3, NULL, 4),
      (43, 'pi.settings', 'global', NULL, NULL, 'k', 1, 'latest', '[true]', 3, NULL, 4);
    INSERT INTO document_revisions VALUES (41, 3, 'base', 1, '{}'), (41, 4, 'base', 1, '{"model":"mock/echo"}');
  `)
  db.close()
}

/** What the reads say of that file. */
const shows = (reads: StoreReads) =>
  Effect.gen(function* () {
    expect((yield* reads.conversation(conversation))?.title).toBe("a title")
    expect((yield* reads.visibleEntries(fork)).map((entry) => entry.id)).toEqual([11 as EntryId])
    expect((yield* reads.entries(conversation))[1]).toMatchObject({ data: { why: [1] }, head: 11, task: 21, seq: 4 })
    const sleeping = task(21 as TaskId, conversation, {
      input: { a: 1 },
      status: "sleeping",
      checkpoint: { phase: "sleep" },
      abortRequested: true,
      crashes: 2,
      fence: 7,
      wakeAt: at + 9,
      startedAt: at,
    })
    expect(yield* reads.openTasks()).toEqual([{ ...sleeping, seq: 4 }])
    expect((yield* reads.ownedTasks(21 as TaskId)).map((row) => row.outcome)).toEqual([
      { status: "completed", result: 1 },
    ])
    expect(yield* reads.tasksInDoubt({ limit: 9 })).toEqual([])
    expect((yield* reads.submissionByRequest(conversation, "r1"))?.id).toBe(31 as SubmissionId)
    const documents = yield* reads.documents(conversation)
    expect(documents.map(({ id, fork: policy }) => [id, policy])).toEqual([
      [41 as DocumentId, "asOf"],
      [42 as DocumentId, "initial"],
    ])
    expect((yield* reads.globalDocument("pi.settings", "k"))?.value).toEqual([true])
    expect(yield* reads.jobs({ limit: 9 })).toEqual([])
    expect(yield* reads.artifacts(conversation)).toEqual([])
    expect(yield* reads.names({ namespace: "acp", principal: "ann", limit: 9 })).toEqual([])
  })

describe("a database of version 1", () => {
  it.scopedLive("is migrated by its owner with every row, and goes on as one of this version", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      versionOne(path)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* makeSqliteStore({ path })
          expect(store.epoch).toBe(10)
          yield* shows(store)
          expect(yield* store.mint("task", 1)).toEqual([50])
          expect(yield* store.mint("job", 1)).toEqual([1])
          yield* store.commit({
            tasks: [task(51 as TaskId, null, { requestId: "r" })],
            jobs: [job(1 as JobId)],
            names: [{ type: "give", namespace: "acp", principal: "ann", name: "n", conversation, at, moves: false }],
            artifacts: [{ conversation, name: "a", mediaType: "x/y", content: new Uint8Array(1), at }],
          })
        }),
      )
      const db = new Database(path, { readonly: true })
      expect(db.pragma("user_version", { simple: true })).toBe(schemaVersion)
      const fresh = new Database(":memory:")
      for (const sql of migrations) fresh.exec(sql)
      const schema = "SELECT name, sql FROM sqlite_schema ORDER BY name"
      expect(db.prepare(schema).all()).toEqual(fresh.prepare(schema).all())
      expect(db.prepare("SELECT seq, body FROM document_revisions ORDER BY seq").all()).toEqual([
        { seq: 3, body: "{}" },
        { seq: 4, body: '{"model":"mock/echo"}' },
      ])
      db.close()
      const reader = yield* makeSqliteReader({ path })
      expect((yield* reader.taskByRequest("r"))?.id).toBe(51 as TaskId)
      expect((yield* reader.job(1 as JobId))?.state).toBe("available")
    }),
  )

  it.scopedLive("is read as it is by a reader, which changes no byte of it", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      versionOne(path)
      const before = readFileSync(path)
      yield* Effect.scoped(Effect.flatMap(makeSqliteReader({ path }), shows))
      expect(readFileSync(path).equals(before)).toBe(true)
    }),
  )

  it.scopedLive("is read with what its owner has only in the log", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      versionOne(path)
      const owner = yield* Effect.acquireRelease(
        Effect.sync(() => new Database(path)),
        (db) => Effect.sync(() => db.close()),
      )
      owner.exec("UPDATE conversations SET title = 'another' WHERE id = 1")
      const reader = yield* makeSqliteReader({ path })
      expect((yield* reader.conversation(conversation))?.title).toBe("another")
      expect(owner.pragma("user_version", { simple: true })).toBe(1)
    }),
  )
})

/** Its schema, version and rows of two tables, as the plain driver finds them. */
const contentOf = (path: string): unknown => {
  const db = new Database(path, { readonly: true })
  try {
    return [
      db.pragma("user_version", { simple: true }),
      db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all(),
      db.prepare("SELECT * FROM tasks").all(),
      db.prepare("SELECT * FROM meta").all(),
    ]
  } finally {
    db.close()
  }
}

describe("a migration", () => {
  it.scopedLive("that fails half way leaves all as it was, and says why", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      versionOne(path)
      const db = new Database(path)
      db.exec("CREATE TABLE artifacts (mine TEXT)")
      db.close()
      const before = contentOf(path)
      const error = yield* Effect.flip(makeSqliteStore({ path }))
      expect(error).toMatchObject({ _tag: "StorageUnavailable", location: path })
      expect(error.message).toContain("table artifacts already exists")
      expect(contentOf(path)).toEqual(before)
    }),
  )

  it.scopedLive("does nothing where the database became another's, or a newer one, before it had the lock", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      versionOne(path)
      for (const [change, tag] of [
        [`user_version = ${schemaVersion + 1}`, "NewerDatabase"],
        ["application_id = 77", "ForeignDatabase"],
      ] as const) {
        const db = new Database(path)
        db.pragma(change)
        db.close()
        const before = contentOf(path)
        expect(yield* Effect.flip(migrateFile(path))).toMatchObject({ _tag: tag, location: path })
        expect(contentOf(path)).toEqual(before)
      }
    }),
  )
})

const opener = `
import { Effect } from "effect"
import { makeSqliteStore } from "./src/storage/sqlite/store.ts"
const path = process.argv[2] ?? ""
process.stdout.write("ready\\n")
process.stdin.once("data", async () => {
  const answer = await Effect.runPromise(Effect.either(Effect.scoped(makeSqliteStore({ path }))))
  process.stdout.write((answer._tag === "Right" ? answer.right.epoch : answer.left.message) + "\\n")
  process.exit()
})
`

describe("a file that several processes open at once", () => {
  it.scopedLive.each([
    ["new", () => undefined],
    ["of version 1", versionOne],
  ] as const)("and that is %s is migrated by one of them, and opened by all", ([, make]) =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const path = join(directory, "store.db")
      make(path)
      const program = yield* Effect.promise(() => bundle(directory, "opener", opener))
      const children = yield* Effect.forEach([1, 2, 3, 4, 5], () => run(program, [path]))
      for (const child of children) expect(yield* Effect.promise(child.line)).toBe("ready")
      for (const child of children) child.process.stdin?.write("go\n")
      const epochs = yield* Effect.forEach(children, (child) => Effect.promise(child.line))
      const first = make === versionOne ? 10 : 1
      expect(epochs.map(Number).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4].map((index) => first + index))
    }),
  )
})
