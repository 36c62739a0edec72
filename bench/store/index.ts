/**
 * The store beside a hand-written `better-sqlite3` program that writes the same rows, in alternating slices of one run. The ratio is the
 * median over the slices, since the disk of a shared machine drifts more than the programs differ.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect, Exit, Scope } from "effect"
import type { ConversationId, DocumentId, EntryId, TaskId } from "../../src/domain/ids.ts"
import { conversation } from "../../src/storage/conformance/records.ts"
import type { Synchronous } from "../../src/storage/sqlite/connection.ts"
import { makeSqliteReader, makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { Commit, StoreService } from "../../src/storage/store.ts"
import { median, type Row } from "../row.ts"
import { postgresRows } from "./postgres.ts"
import { openRaw, type RawWriter } from "./raw.ts"
import { type Ids, oneCommit } from "./rows.ts"

/** Slices per case; odd. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
/** Commits in a slice. */
const SLICE = 500
/** Slices beforehand, until the code is compiled. */
const WARM_SLICES = 8
const CONVERSATIONS = 50

const as = <Id>(value: number): Id => value as unknown as Id

const idsOf = (of: number, round: number): Ids => ({
  conversation: as<ConversationId>(of),
  entries: [as<EntryId>(2 * round - 1), as<EntryId>(2 * round)],
  task: as<TaskId>(of),
  document: as<DocumentId>(of),
})

const conversations: Commit = {
  conversations: Array.from({ length: CONVERSATIONS }, (_, index) => conversation(as<ConversationId>(index + 1))),
}

/** Two databases, both with the conversations; `ours` under an open scope. */
const openBoth = async (directory: string, synchronous: Synchronous) => {
  const scope = Effect.runSync(Scope.make())
  const path = join(directory, `ours-${synchronous}.db`)
  const store = await Effect.runPromise(Scope.extend(makeSqliteStore({ path, synchronous }), scope))
  const raw = openRaw(join(directory, `raw-${synchronous}.db`), synchronous)
  raw.write(conversations)
  await Effect.runPromise(store.commit(conversations))
  return {
    path,
    store,
    raw,
    close: async () => {
      raw.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    },
  }
}

/** Commits per second. */
const rate = async (count: number, body: () => Promise<void> | void): Promise<number> => {
  const start = performance.now()
  await body()
  return (count / (performance.now() - start)) * 1000
}

/** Alternates slices of raw single commits with ours, alone and grouped. `from` counts commits, so that entry ids never repeat. */
const commits = async (directory: string, synchronous: Synchronous): Promise<ReadonlyArray<Row>> => {
  const both = await openBoth(directory, synchronous)
  const raw: Array<number> = []
  const alone: Array<number> = []
  const grouped: Array<number> = []
  const rawGrouped: Array<number> = []
  let rawRound = 0
  let ourRound = 0
  const rawSlice = (writer: RawWriter) => {
    for (let index = 0; index < SLICE; index++)
      writer.write(oneCommit(idsOf((index % CONVERSATIONS) + 1, ++rawRound), rawRound))
  }
  const rawGroupedSlice = (writer: RawWriter) => {
    for (let group = 0; group < SLICE / CONVERSATIONS; group++) {
      const commits = Array.from({ length: CONVERSATIONS }, (_, index) =>
        oneCommit(idsOf(index + 1, ++rawRound), rawRound),
      )
      writer.writeTogether(commits)
    }
  }
  const aloneSlice = (store: StoreService) =>
    Effect.runPromise(
      Effect.gen(function* () {
        for (let index = 0; index < SLICE; index++) {
          yield* store.commit(oneCommit(idsOf((index % CONVERSATIONS) + 1, ++ourRound), ourRound))
        }
      }),
    )
  const groupedSlice = (store: StoreService) =>
    Effect.runPromise(
      Effect.forEach(
        Array.from({ length: CONVERSATIONS }, (_, index) => index + 1),
        (of) =>
          Effect.gen(function* () {
            for (let index = 0; index < SLICE / CONVERSATIONS; index++) {
              yield* store.commit(oneCommit(idsOf(of, ++ourRound), ourRound))
            }
          }),
        { concurrency: "unbounded", discard: true },
      ),
    )
  for (let slice = 0; slice < WARM_SLICES; slice++) {
    rawSlice(both.raw)
    await aloneSlice(both.store)
    await groupedSlice(both.store)
    rawGroupedSlice(both.raw)
  }
  for (let round = 0; round < ROUNDS; round++) {
    raw.push(await rate(SLICE, () => rawSlice(both.raw)))
    alone.push(await rate(SLICE, () => aloneSlice(both.store)))
    grouped.push(await rate(SLICE, () => groupedSlice(both.store)))
    rawGrouped.push(await rate(SLICE, () => rawGroupedSlice(both.raw)))
  }
  await both.close()
  return [
    row(`one commit, ${synchronous}`, alone, raw, "/s", 1 / 1.5, "≤ 1.5 × raw's time"),
    synchronous === "FULL"
      ? row(`${CONVERSATIONS} conversations, ${synchronous}`, grouped, raw, "/s", 3, "≥ 3 × raw single commits")
      : row(`${CONVERSATIONS} conversations, ${synchronous}`, grouped, raw, "/s", 1 / 0.8, "≤ 0.8 × raw's time"),
    // what there is to reach: SQLite alone, without an answer to each commit
    row(`${CONVERSATIONS} conversations, ${synchronous}, beside raw in groups`, grouped, rawGrouped, "/s", 0, ""),
  ]
}

/** Reading a transcript of 2,000 entries of 1 KB, validated, beside the raw rows with `JSON.parse`. */
const reads = async (directory: string): Promise<ReadonlyArray<Row>> => {
  const path = join(directory, "reads.db")
  const of = as<ConversationId>(1)
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const store = yield* makeSqliteStore({ path })
        yield* store.commit({ conversations: [conversation(of)] })
        for (let round = 1; round <= 1000; round++) yield* store.commit(oneCommit(idsOf(1, round), round))
      }),
    ),
  )
  const db = new Database(path, { readonly: true })
  const everything = db.prepare<[number], RawEntry>("SELECT * FROM entries WHERE conversation = ? ORDER BY id")
  const newest = db.prepare<[number], RawEntry>(
    "SELECT * FROM entries WHERE conversation = ? ORDER BY id DESC LIMIT 50",
  )
  const parse = (rows: ReadonlyArray<RawEntry>): number =>
    rows.map((each) => ({
      ...each,
      model: JSON.parse(each.model),
      data: JSON.parse(each.data ?? "null"),
      edits: JSON.parse(each.edits),
    })).length

  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const reader = yield* makeSqliteReader({ path })
        const measure = (
          name: string,
          times: number,
          count: number,
          ours: Effect.Effect<{ readonly length: number }, unknown>,
          raw: () => number,
        ) =>
          Effect.promise(async () => {
            const mine: Array<number> = []
            const theirs: Array<number> = []
            for (let round = 0; round <= ROUNDS; round++) {
              const ourRate = await rate(times, async () => {
                for (let index = 0; index < times; index++) {
                  if ((await Effect.runPromise(ours)).length !== count)
                    throw new Error(`${name}: expected ${count} entries`)
                }
              })
              const rawRate = await rate(times, () => {
                for (let index = 0; index < times; index++) raw()
              })
              if (round === 0) continue
              mine.push(1000 / ourRate)
              theirs.push(1000 / rawRate)
            }
            return row(name, mine, theirs, "ms", 1 / 2, "≤ 2 × raw's time")
          })
        const all = yield* measure("read 2,000 entries", 5, 2000, reader.visibleEntries(of), () =>
          parse(everything.all(of)),
        )
        const last = yield* measure("read the last 50", 100, 50, reader.entries(of, { last: 50 }), () =>
          parse(newest.all(of)),
        )
        db.close()
        return [all, last]
      }),
    ),
  )
}

interface RawEntry {
  readonly model: string
  readonly data: string | null
  readonly edits: string
}

/** `least`: the ratio to reach. For times, less is better; for rates, more. */
const row = (
  name: string,
  ours: ReadonlyArray<number>,
  peer: ReadonlyArray<number>,
  unit: "/s" | "ms",
  least: number,
  target: string,
): Row => {
  const ratio = median(
    ours.map((mine, index) => (unit === "ms" ? (peer[index] ?? 0) / mine : mine / (peer[index] ?? 1))),
  )
  return { name, ours: median(ours), peer: median(peer), unit, ratio, target, met: ratio >= least }
}

/** Runs every case, under half a minute with nine slices. */
export const rows = async (only?: string): Promise<ReadonlyArray<Row>> => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-bench-store-"))
  try {
    const all = [
      ...(await commits(directory, "NORMAL")),
      ...(await commits(directory, "FULL")),
      ...(await reads(directory)),
      ...(await postgresRows()),
    ]
    return all.filter((each) => only === undefined || each.name.includes(only))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
