/**
 * Two nodes on one database: who may write, who may claim, and what each sees of the other.
 */
import { Effect, Either, Exit } from "effect"
import { expect, it } from "vitest"
import { shardOf } from "../../src/domain/cluster.ts"
import type { ConversationId, Seq, TaskId } from "../../src/domain/ids.ts"
import { conversation, document, entry, job, submission, task } from "../../src/storage/conformance/records.ts"
import { type CommitError, Conflict, Fenced } from "../../src/storage/errors.ts"
import { openPool } from "../../src/storage/postgres/pool.ts"
import type { PostgresStoreServices } from "../../src/storage/postgres/store.ts"
import { type IdsByKind, type StoreService, takenBy } from "../../src/storage/store.ts"
import { describePostgres } from "../support/postgres.ts"
import { migratedDatabase, node } from "./postgres-support.ts"

interface Two {
  readonly a: PostgresStoreServices
  readonly b: PostgresStoreServices
}

const two = (body: (nodes: Two) => Effect.Effect<void, unknown>): Promise<void> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const database = yield* migratedDatabase
        yield* body({ a: yield* node(database, "a"), b: yield* node(database, "b") })
      }),
    ),
  )

const mint = <K extends keyof IdsByKind>(store: StoreService, kind: K): Effect.Effect<IdsByKind[K], CommitError> =>
  Effect.flatMap(store.mint(kind, 1), ([id]) =>
    id === undefined ? Effect.dieMessage("mint gave no id") : Effect.succeed(id),
  )

const begin = (store: StoreService) =>
  Effect.gen(function* () {
    const id = yield* mint(store, "conversation")
    yield* store.commit({ conversations: [conversation(id)] })
    return id
  })

const refusal = (effect: Effect.Effect<Seq, CommitError>) => Effect.map(Effect.flip(effect), (error) => error)

describePostgres("two nodes on one PostgreSQL", () => {
  it("have epochs of their own, never the same ids or commit numbers, and see at once what the other was answered", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        expect(b.store.epoch).toBeGreaterThan(a.store.epoch)
        const of = yield* begin(a.store)
        const written = yield* Effect.forEach(
          Array.from({ length: 300 }, (_, index) => (index % 2 === 0 ? a.store : b.store)),
          (store, index) =>
            Effect.gen(function* () {
              const id = yield* mint(store, "entry")
              const seq = yield* store.commit({ entries: [entry(id, of)] })
              const other = index % 2 === 0 ? b.store : a.store
              expect((yield* other.entry(id))?.seq).toBe(seq)
              return { id, seq }
            }),
          { concurrency: 20 },
        )
        expect(new Set(written.map((one) => one.id)).size).toBe(300)
        expect(new Set(written.map((one) => one.seq)).size).toBe(300)
        expect(yield* a.store.entryCount(of)).toBe(300)
      }),
    ))

  it("take a conversation from each other: the older token commits nothing any more, whatever it tries", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        const mine = yield* takenBy(a.store, of)
        const id = yield* mint(mine, "entry")
        yield* mine.commit({ entries: [entry(id, of)] })
        const theirs = yield* takenBy(b.store, of)
        expect(theirs.epoch).toBeGreaterThan(mine.epoch)
        const late = entry(yield* mint(mine, "entry"), of)
        const other = yield* begin(a.store)
        const both = { entries: [late, entry(yield* mint(mine, "entry"), other)] }
        expect(yield* refusal(mine.commit(both))).toEqual(
          new Fenced({ what: `conversation ${of}`, held: mine.epoch, current: theirs.epoch }),
        )
        expect(yield* a.store.entries(other)).toEqual([])
        yield* theirs.commit({ entries: [entry(yield* mint(theirs, "entry"), of)] })
        expect((yield* a.store.entries(of)).length).toBe(2)
        // among others that arrive at the same time only the late one is refused
        const answers = yield* Effect.forEach(
          [mine, a.store, mine],
          (store, index) => Effect.either(store.commit({ names: [given(of, `n${index}`)] })),
          { concurrency: "unbounded" },
        )
        expect(answers.map((answer) => (Either.isLeft(answer) ? answer.left._tag : "written"))).toEqual([
          "Fenced",
          "written",
          "Fenced",
        ])
      }),
    ))

  it("mint ids after taking a conversation that are larger than all in it", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        // both have a block of each kind; b's is the later one
        yield* mint(a.store, "entry")
        yield* mint(b.store, "entry")
        const last = yield* mint(b.store, "entry")
        yield* b.store.commit({ entries: [entry(last, of)] })
        yield* a.store.takeConversation(of)
        expect(yield* mint(a.store, "entry")).toBeGreaterThan(last)
        const more = yield* a.store.mint("entry", 600)
        expect([...more].toSorted((x, y) => x - y)).toEqual(more)
        yield* b.store.takeConversation(of)
        expect(yield* mint(b.store, "entry")).toBeGreaterThan(more.at(-1) ?? 0)
        const [first = 0, second = 0] = [yield* mint(a.store, "conversation"), yield* mint(b.store, "conversation")]
        expect(second - first).toBe(1)
      }),
    ))

  it("cannot take a conversation that is gone, and write nothing under a token of one that was removed", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        const mine = yield* takenBy(a.store, of)
        yield* b.store.commit({ removeConversations: [of] })
        const gone = new Conflict({ what: `conversation ${of}`, detail: "it does not exist" })
        expect(yield* refusal(mine.commit({ documents: [document(yield* mint(mine, "document"), null)] }))).toEqual(
          gone,
        )
        expect(yield* Effect.flip(a.store.takeConversation(of))).toEqual(gone)
      }),
    ))

  it("fence each other off: nothing is committed, taken or adopted by the one that was, and it is told so every time", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        yield* b.cluster.fenceOff(a.store.epoch)
        const note = entry(yield* mint(b.store, "entry"), of)
        for (let round = 0; round < 2; round++) {
          const error = yield* refusal(a.store.commit({ entries: [note] }))
          expect(error).toMatchObject({ _tag: "Fenced", held: a.store.epoch })
          expect(error instanceof Fenced && error.current > a.store.epoch).toBe(true)
          expect((yield* Effect.flip(a.store.takeConversation(of)))._tag).toBe("Fenced")
          expect((yield* Effect.flip(a.cluster.adoptTasks([1])))._tag).toBe("Fenced")
        }
        expect(yield* b.store.entries(of)).toEqual([])
        yield* b.store.commit({ entries: [note] })
        expect((yield* a.store.entries(of)).length).toBe(1)
      }),
    ))

  it("write the same documents at once, in whatever order: each commit is answered, and the newest number wins", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        const ids = yield* a.store.mint("document", 4)
        const rows = ids.map((id, index) => document(id, index < 2 ? null : of, { key: `${index}` }))
        yield* a.store.commit({ documents: rows })
        const seqs = yield* Effect.forEach(
          Array.from({ length: 120 }, (_, index) => index),
          (index) =>
            (index % 2 === 0 ? a.store : b.store).commit({
              documents: (index % 4 < 2 ? rows : rows.toReversed()).map((row) => ({ ...row, value: index })),
            }),
          { concurrency: "unbounded" },
        )
        const newest = Math.max(...seqs)
        for (const id of ids) {
          const stored = yield* b.store.document(id)
          expect([stored?.seq, stored?.value]).toEqual([newest, seqs.indexOf(newest as Seq)])
        }
      }),
    ))

  it("admit one request once, whoever is asked", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        for (let round = 0; round < 10; round++) {
          const answers = yield* Effect.forEach(
            [a.store, b.store, a.store, b.store],
            (store, index) =>
              Effect.gen(function* () {
                const requestId = `r\u0000${round}`
                return yield* Effect.either(
                  store.commit(
                    index < 2
                      ? { tasks: [task(yield* mint(store, "task"), null, { requestId })] }
                      : { submissions: [submission(yield* mint(store, "submission"), of, { requestId })] },
                  ),
                )
              }),
            { concurrency: "unbounded" },
          )
          for (const pair of [answers.slice(0, 2), answers.slice(2)]) {
            const refused = pair.flatMap((answer) => (Either.isLeft(answer) ? [answer.left] : []))
            expect(refused.length).toBe(1)
            expect(refused[0]).toMatchObject({ _tag: "Conflict" })
            expect(refused[0]?.message).toMatch(`request id ${JSON.stringify(`r\u0000${round}`)}`)
          }
        }
      }),
    ))

  it("never claim the same attempt", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const ids = yield* a.store.mint("job", 60)
        yield* a.store.commit({ jobs: ids.map((id) => job(id)) })
        const now = 1_750_000_000_000
        const taken = yield* Effect.forEach(
          Array.from({ length: 24 }, (_, index) => index),
          (index) =>
            (index % 2 === 0 ? a.store : b.store).claimJobs({
              ...{ queue: "q", limit: 5, now, leaseUntil: now + 1, node: `node ${index}` },
            }),
          { concurrency: "unbounded" },
        )
        const claimed = taken.flat().map((row) => row.id)
        expect(new Set(claimed).size).toBe(claimed.length)
        const rest = yield* a.store.claimJobs({ queue: "q", limit: 60, now, leaseUntil: now + 1, node: "last" })
        expect([...claimed, ...rest.map((row) => row.id)].toSorted((x, y) => x - y)).toEqual(ids)
        expect(yield* b.store.dueAt("q")).toBe(null)
      }),
    ))

  it("fence off everybody else where one opens alone", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const database = yield* migratedDatabase
          const { store: old } = yield* node(database, "old")
          const of = yield* begin(old)
          const { store } = yield* node(database, "new", { alone: true })
          expect((yield* refusal(old.commit({ names: [given(of, "x")] })))._tag).toBe("Fenced")
          expect(yield* store.endedEpochs([old.epoch, store.epoch])).toEqual([old.epoch])
          expect(Exit.isSuccess(yield* Effect.exit(store.commit({ names: [given(of, "x")] })))).toBe(true)
        }),
      ),
    ))
})

const given = (of: ConversationId, name: string) =>
  ({ type: "give", namespace: "openai", principal: "ann", name, conversation: of, at: 1, moves: false }) as const

describePostgres("the places of a cluster", () => {
  it("are those of the root: of a conversation's owner, of a task's conversation, whether they come together or not", () =>
    two(({ a: { cluster, store } }) =>
      Effect.gen(function* () {
        const [root, child, grandchild, later] = (yield* store.mint("conversation", 4)) as [
          ConversationId,
          ConversationId,
          ConversationId,
          ConversationId,
        ]
        const ids = (yield* store.mint("task", 7)) as [TaskId, TaskId, TaskId, TaskId, TaskId, TaskId, TaskId]
        const [owner, deeper, workflow, step, substep, lone, last] = ids
        yield* store.commit({
          conversations: [
            conversation(grandchild, { owner: deeper }),
            conversation(child, { owner }),
            conversation(root),
          ],
          tasks: [
            task(deeper, child),
            task(owner, root),
            task(substep, null, { owner: step }),
            task(step, null, { owner: workflow }),
            task(workflow, null),
          ],
        })
        yield* store.commit({
          conversations: [conversation(later, { owner: substep })],
          tasks: [task(lone, null, { owner: 999_999 as TaskId }), task(last, later)],
        })
        for (const id of [root, child, grandchild]) expect(yield* cluster.placeOfConversation(id)).toBe(root)
        for (const id of [owner, deeper]) expect(yield* cluster.placeOfTask(id)).toBe(root)
        for (const id of [workflow, step, substep, last]) expect(yield* cluster.placeOfTask(id)).toBe(workflow)
        expect(yield* cluster.placeOfConversation(later)).toBe(workflow)
        expect(yield* cluster.placeOfTask(lone)).toBe(lone)
        yield* store.commit({ tasks: [task(lone, null, { owner: step, status: "running" })] })
        expect(yield* cluster.placeOfTask(lone)).toBe(lone)
        expect(yield* cluster.placeOfConversation(999_999 as ConversationId)).toBe(null)
        expect(yield* cluster.placeOfTask(999_999 as TaskId)).toBe(null)
      }),
    ))

  it("decide who claims a job, and when it is due for whom; jobs without one are everybody's", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const database = yield* migratedDatabase
          let held: ReadonlyArray<number> = []
          const { store } = yield* node(database, "a", { held: () => held })
          const here = yield* begin(store)
          const there = yield* begin(store)
          const [free, mine, theirs] = yield* store.mint("job", 3)
          if (free === undefined || mine === undefined || theirs === undefined) return
          const now = 1_750_000_000_000
          yield* store.commit({
            jobs: [
              job(mine, { conversation: here, runAt: now - 2 }),
              job(theirs, { conversation: there, runAt: now - 3 }),
              job(free, { runAt: now - 1 }),
            ],
          })
          const claim = Effect.map(
            Effect.suspend(() => store.claimJobs({ queue: "q", limit: 9, now, leaseUntil: now, node: "a" })),
            (rows) => rows.map((row) => row.id),
          )
          expect(yield* store.dueAt("q")).toBe(now - 1)
          held = [shardOf(here)]
          expect(yield* store.dueAt("q")).toBe(now - 2)
          expect(yield* claim).toEqual([mine, free])
          expect(yield* store.dueAt("q")).toBe(null)
          held = [shardOf(there), shardOf(here)]
          expect(yield* claim).toEqual([theirs])
        }),
      ),
    ))

  it("find the busy conversations of a shard, and what nobody serves", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const { cluster, store } = a
        const [idle, working, waiting] = [yield* begin(store), yield* begin(store), yield* begin(store)]
        const shards = [idle, working, waiting].map(shardOf)
        expect(yield* cluster.oldestUnserved).toBe(null)
        const taken = yield* takenBy(store, working)
        yield* taken.commit({ tasks: [task(yield* mint(store, "task"), working, { status: "running" })] })
        expect(yield* cluster.oldestUnserved).toBe(null)
        yield* store.commit({
          submissions: [submission(yield* mint(store, "submission"), waiting, { createdAt: 1_000 })],
        })
        const parked = yield* begin(store)
        yield* store.commit({ tasks: [task(yield* mint(store, "task"), parked, { parked: "too many crashes" })] })
        expect(yield* cluster.busyConversations([...shards, shardOf(parked)])).toEqual([working])
        expect(yield* cluster.busyConversations([shardOf(waiting)])).toEqual([])
        expect(yield* cluster.busyConversations([])).toEqual([])
        expect(yield* cluster.oldestUnserved).toBe(1_000)
        yield* store.commit({ jobs: [job(yield* mint(store, "job"), { runAt: 500 })] })
        expect(yield* cluster.oldestUnserved).toBe(500)
        yield* store.commit({ jobs: [job(yield* mint(store, "job"), { runAt: 9e15 })] })
        expect(yield* cluster.oldestUnserved).toBe(500)
        yield* store.claimJobs({ queue: "q", limit: 9, now: 600, leaseUntil: 700, node: "a" })
        yield* store.commit({ removeConversations: [waiting] })
        expect(yield* cluster.oldestUnserved).toBe(null)
        yield* b.cluster.fenceOff(store.epoch)
        expect(yield* cluster.oldestUnserved).not.toBe(null)
      }),
    ))

  it("are adopted with their tasks: the applications' under a raised fence, which the one before can write nothing under", () =>
    two(({ a, b }) =>
      Effect.gen(function* () {
        const of = yield* begin(a.store)
        const [turn, workflow, ended, elsewhere] = yield* a.store.mint("task", 4)
        if (turn === undefined || workflow === undefined || ended === undefined || elsewhere === undefined) return
        const mine = { kind: "app.flow", fence: a.store.epoch, status: "running" } as const
        yield* a.store.commit({
          tasks: [
            task(turn, of, { status: "running", fence: 3 }),
            task(workflow, null, { ...mine, checkpoint: { text: "\u0001\u0000" }, requestId: "a\u0000b" }),
            task(ended, null, { ...mine, status: "terminal" }),
            task(elsewhere, null, mine),
          ],
        })
        const shards = [shardOf(of), shardOf(workflow), shardOf(ended)]
        const { fence, tasks } = yield* b.cluster.adoptTasks(shards)
        expect(fence).toBeGreaterThan(b.store.epoch)
        expect(tasks.map((one) => [one.task.id, one.task.fence, one.place])).toEqual(
          [
            [turn, 3, of],
            [workflow, fence, workflow],
          ].toSorted(([x = 0], [y = 0]) => Number(x) - Number(y)),
        )
        expect(tasks.find((one) => one.task.id === workflow)?.task).toEqual(yield* b.store.task(workflow))
        expect((yield* refusal(a.store.commit({ tasks: [task(workflow, null, mine)] })))._tag).toBe("Fenced")
        yield* a.store.commit({ tasks: [task(elsewhere, null, { ...mine, checkpoint: 1 })] })
        yield* b.store.commit({ tasks: [task(workflow, null, { ...mine, fence })] })
        expect(yield* a.store.endedEpochs([fence])).toEqual([])
        yield* a.cluster.fenceOff(b.store.epoch)
        expect(yield* a.store.endedEpochs([fence])).toEqual([fence])
      }),
    ))
})

describePostgres("a caller's own transaction", () => {
  it("is on the caller's database, and what is read within it is of this one", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { store } = yield* node(yield* migratedDatabase, "one")
          const of = yield* begin(store)
          const { sql } = yield* openPool((yield* migratedDatabase).settings, { applicationName: "an application" })
          const found = yield* sql.withTransaction(
            Effect.zip(store.conversation(of), store.conversations({ principal: null, limit: 10 })),
          )
          expect(found).toMatchObject([{ id: of }, [{ conversation: { id: of } }]])
          expect(yield* sql`SELECT count(*)::int AS rows FROM conversations`).toEqual([{ rows: 0 }])
        }),
      ),
    ))
})

describePostgres("epochs and tokens", () => {
  it("are over with their node, whether it ended or was fenced off, and with the next taking of the conversation", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const database = yield* migratedDatabase
          const { cluster, store } = yield* node(database, "stays")
          const closed = yield* Effect.scoped(Effect.map(node(database, "closed"), (one) => one.store.epoch))
          const { store: other } = yield* node(database, "fenced")
          const [of, gone] = [yield* begin(store), yield* begin(store)]
          const first = yield* store.takeConversation(of)
          const second = yield* other.takeConversation(of)
          const lost = yield* store.takeConversation(gone)
          if (first === null || second === null || lost === null) return
          const all = [store.epoch, closed, other.epoch, first, second, lost, 999_999]
          expect(yield* store.endedEpochs(all)).toEqual([closed, first, 999_999])
          yield* cluster.fenceOff(other.epoch)
          yield* store.commit({ removeConversations: [gone] })
          expect(yield* store.endedEpochs(all)).toEqual([closed, other.epoch, first, second, lost, 999_999])
          expect(yield* store.endedEpochs([])).toEqual([])
          expect(yield* store.ownerEpoch).toBe(other.epoch)
        }),
      ),
    ))
})
