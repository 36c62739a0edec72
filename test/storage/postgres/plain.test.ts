/**
 * What turns write goes as plain SQL, and says the same as the function where it is not taken.
 */
import { Effect, Exit, type Scope } from "effect"
import type pg from "pg"
import { describe, expect, it } from "vitest"
import type { ConversationId, DocumentId, EntryId, Seq, SubmissionId, TaskId } from "../../../src/domain/ids.ts"
import { type Message, text } from "../../../src/domain/message.ts"
import { conversation, document, entry, submission, task } from "../../../src/storage/conformance/records.ts"
import { plainStatement } from "../../../src/storage/postgres/plain.ts"
import { type PlainRows, plainRows } from "../../../src/storage/postgres/plain-rows.ts"
import type { Commit, StoreService } from "../../../src/storage/store.ts"
import { describePostgres } from "../../support/postgres.ts"
import { migratedDatabase, node, observer } from "../postgres-support.ts"

const run = <A>(body: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(body))

const here = 1 as ConversationId
const noRows: PlainRows = { updates: [], entries: [], tasks: [], submissions: [], documents: [] }

/** How the writer said its last words to the server: as plain SQL, or to the function. */
const lastWay = (rows: pg.Client): Effect.Effect<string> =>
  Effect.promise(async () => {
    const { rows: found } = await rows.query<{ query: string }>(
      "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'super-pi writer one'",
    )
    const query = found[0]?.query ?? ""
    return query.startsWith("WITH held") ? "plain" : query.includes("super_pi_commit") ? "function" : query
  })

const opened = Effect.gen(function* () {
  const database = yield* migratedDatabase
  const { store } = yield* node(database, "one")
  yield* store.commit({ conversations: [conversation(here), conversation(2 as ConversationId)] })
  return { store, rows: yield* observer(database) }
})

/** What a turn writes: entries, tasks, a submission, a document that is there, the conversation's time. */
const turn = (n: number, of: ConversationId = here): Commit => ({
  conversationUpdates: [{ id: of, updatedAt: 1_000 + n, ...(n % 2 === 0 ? { title: `turn "${n}"` } : {}) }],
  entries: [entry((10 * n + 1) as EntryId, of), entry((10 * n + 2) as EntryId, of)],
  tasks: [1, 2, 3, 4].map((at) => task((10 * n + at) as TaskId, of)),
  submissions: [submission(n as SubmissionId, of, { requestId: `request ${n}` })],
})

describe("a commit is plain", () => {
  it("where it writes rows of conversations that are there, in whatever number; a part without rows is none", () => {
    expect(plainRows({})).toEqual(noRows)
    expect(plainRows({ jobs: [], conversations: [], conversationUpdates: [], names: [] })).toEqual(noRows)
    expect(plainRows(turn(1))?.tasks).toHaveLength(4)
    const counted = document(1 as DocumentId, here, { kind: "pi.usage", value: {} })
    expect(plainRows({ documents: [counted] })?.documents).toHaveLength(1)
  })

  it("not where anything needs a look around: new conversations, jobs, names, requests of tasks, histories, ends of documents", () => {
    const kept = document(1 as DocumentId, here, { kind: "pi.agent", value: {}, history: "rewindable" })
    for (const commit of [
      { conversations: [conversation(here)] },
      { removeConversations: [here] },
      { tasks: [task(1 as TaskId, here, { requestId: "a" })] },
      { tasks: [task(1 as TaskId, here, { conversation: null })] },
      { documents: [kept] },
      { documents: [{ ...document(1 as DocumentId, here, { kind: "pi.live", value: {} }), retire: true }] },
      { ...turn(1), names: [{ type: "prune", before: 1, keep: 1 }] },
    ] satisfies ReadonlyArray<Commit>) {
      expect(plainRows(commit)).toBe(null)
    }
  })

  it("and prepares a limited number of statements, whatever comes", () => {
    const names = new Set<string>()
    for (let entries = 0; entries < 5; entries++) {
      for (let tasks = 0; tasks < 5; tasks++) {
        for (let submissions = 0; submissions < 5; submissions++) {
          const rows = { ...noRows, entries: Array(entries).fill([]), tasks: Array(tasks).fill([]) }
          names.add(plainStatement([{ ...rows, submissions: Array(submissions).fill([]) }], [1], [null]).name)
        }
      }
    }
    expect(names.size).toBeGreaterThan(8)
    expect(names.size).toBeLessThanOrEqual(32 + 8)
  })
})

describePostgres("plain SQL", () => {
  it("writes what turns write, alone and together, with texts of every kind", () =>
    run(
      Effect.gen(function* () {
        const { rows, store } = yield* opened
        yield* store.commit(turn(1))
        expect(yield* lastWay(rows)).toBe("plain")
        const odd = ['"', "\\", "{a,b}", "NULL", "", "a\u0000b", "\ud800", "𝄞", "\n\t'"]
        const said = odd.map((words, at) => entry((5_000 + at) as EntryId, here, { model: [user(words)], data: words }))
        yield* store.commit({ entries: said })
        expect(yield* lastWay(rows)).toBe("plain")
        const ids = Array.from({ length: 60 }, (_, at) => (at + 100) as ConversationId)
        yield* store.commit({ conversations: ids.map((id) => conversation(id)) })
        const many = ids.map((id, at) => turn(at + 2, id))
        const seqs = yield* Effect.forEach(many, (commit) => store.commit(commit), { concurrency: "unbounded" })
        expect(new Set(seqs).size).toBe(60)
        expect(yield* lastWay(rows)).toBe("plain")

        const found = yield* store.entries(here)
        const stored = found.filter(({ id }) => id >= 5_000)
        expect(stored.map(({ model }) => model)).toEqual(said.map(({ model }) => wellFormed(model)))
        expect(stored.map(({ data }) => data)).toEqual(odd.map(wellFormed))
        expect(found.filter(({ id }) => id < 5_000)).toHaveLength(2)
        for (const [at, id] of ids.entries()) {
          const seq = seqs[at]
          const n = at + 2
          const title = n % 2 === 0 ? `turn "${n}"` : null
          expect(yield* store.conversation(id)).toMatchObject({ seq, title, updatedAt: 1_000 + n })
          expect(yield* store.submissionByRequest(id, `request ${n}`)).toMatchObject({ id: n, seq })
          expect(yield* store.task((10 * n + 4) as TaskId)).toMatchObject({ conversation: id, seq })
          expect(yield* store.entries(id)).toMatchObject([{ seq }, { seq }])
        }
      }),
    ))

  it("writes nothing where a row is not taken, and the function says why", () =>
    run(
      Effect.gen(function* () {
        const { rows, store } = yield* opened
        const usage = document(7 as DocumentId, here, { kind: "pi.usage", value: { n: 1 } })
        const created = yield* store.commit({ ...turn(1), documents: [usage] })
        expect(yield* lastWay(rows)).toBe("plain")
        const second = yield* store.commit({ documents: [{ ...usage, value: { n: 2 }, since: created }] })
        expect(yield* lastWay(rows)).toBe("plain")
        expect(yield* stamps(rows, 7)).toEqual({ created, changed: second })
        const token = yield* store.takeConversation(here)
        const refused = (commit: Commit) => refusal(store, rows, { ...turn(2), ...commit })
        expect(yield* refused({ entries: [entry(11 as EntryId, here)] })).toBe("entry 11: this id is already used")
        expect(yield* refused({ tasks: [task(11 as TaskId, here, { fence: -1 })] })).toContain("task 11")
        expect(yield* refused({ tasks: [task(11 as TaskId, 2 as ConversationId)] })).toContain("task 11")
        const again = submission(9 as SubmissionId, here, { requestId: "request 1" })
        expect(yield* refused({ submissions: [again] })).toContain("it is already submission 1")
        for (const since of [1 as Seq, created, (second + 1) as Seq, -second as Seq]) {
          const why = yield* refused({ documents: [{ ...usage, value: {}, since }] })
          expect(why).toContain(`expected it as of commit ${since}, it changed in commit ${second}`)
        }
        const missing = { ...usage, id: 8 as DocumentId, key: "other", since: second }
        expect(yield* refused({ documents: [missing] })).toContain("it does not exist")
        expect(yield* refused({ documents: [{ ...usage, id: 8 as DocumentId }] })).toContain(
          "a live one exists already",
        )
        expect(yield* refused({ documents: [{ ...usage, version: 0 }] })).toContain("newer code wrote it")
        expect(yield* refused({ entries: [entry(999 as EntryId, 77 as ConversationId)] })).toContain("conversation 77")
        const stale = { conversation: here, token: (token ?? 0) - 1 }
        expect(yield* refused({ under: stale })).toContain(`fencing token ${stale.token} is stale`)
        expect(yield* store.submissionByRequest(here, "request 2")).toBe(null)
        expect(yield* store.document(7 as DocumentId)).toMatchObject({ value: { n: 2 } })
        yield* store.commit({ ...turn(2), under: { conversation: here, token: token ?? 0 } })
        expect(yield* lastWay(rows)).toBe("plain")
      }),
    ))
})

/** The commits that created a document and that changed it last. */
const stamps = (rows: pg.Client, id: number): Effect.Effect<unknown> =>
  Effect.promise(async () => {
    const sql = "SELECT created_seq::int AS created, seq::int AS changed FROM documents WHERE id = $1"
    return (await rows.query(sql, [id])).rows[0]
  })

const user = (words: string): Message => ({ role: "user" as const, content: [text(words)] })

/** JSON holds a lone surrogate as an escape. */
const wellFormed = <A>(value: A): A => JSON.parse(JSON.stringify(value))

const refusal = (store: StoreService, rows: pg.Client, commit: Commit): Effect.Effect<string> =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(store.commit(commit))
    if (Exit.isSuccess(exit) || exit.cause._tag !== "Fail") throw new Error(`expected a refusal, got ${String(exit)}`)
    expect(yield* lastWay(rows)).toBe("function")
    return exit.cause.error.message
  })
