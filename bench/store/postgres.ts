/**
 * The store on PostgreSQL beside the raw named statement for the same rows, in alternating slices on one server that waits for its disk.
 */
import { Effect, Either, Exit, Scope } from "effect"
import type { ConversationId } from "../../src/domain/ids.ts"
import { conversation } from "../../src/storage/conformance/records.ts"
import { migrate } from "../../src/storage/postgres/migrations.ts"
import { settingsOfUrl } from "../../src/storage/postgres/settings.ts"
import { makePostgresStore } from "../../src/storage/postgres/store.ts"
import type { Commit, StoreService } from "../../src/storage/store.ts"
import { createDatabase, openServer, type Server } from "../postgres-server.ts"
import { median, type Row } from "../row.ts"
import { openRawPostgres } from "./raw-postgres.ts"
import { oneCommit } from "./rows.ts"

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
const SLICE = 500
const CONVERSATIONS = 50

const as = <Id>(value: number): Id => value as unknown as Id

const conversations: Commit = {
  conversations: Array.from({ length: CONVERSATIONS }, (_, index) => conversation(as<ConversationId>(index + 1))),
}

const commitOf = (of: number, round: number): Commit =>
  oneCommit(
    { conversation: as(of), entries: [as(2 * round - 1), as(2 * round)], task: as(of), document: as(of) },
    round,
  )

/** A fresh database there with this program's tables. */
const createMigrated = async (server: Server, name: string): Promise<string> => {
  const url = await createDatabase(server, name)
  await Effect.runPromise(migrate(Either.getOrThrow(settingsOfUrl(url))))
  return url
}

/** Commits per second. */
const rate = async (body: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await body()
  return (SLICE / (performance.now() - start)) * 1000
}

const measure = async (server: Server): Promise<ReadonlyArray<Row>> => {
  const scope = Effect.runSync(Scope.make())
  const open = async (name: string) => {
    const settings = Either.getOrThrow(settingsOfUrl(await createMigrated(server, name)))
    const node = { name, address: "", version: "bench" }
    const store = await Effect.runPromise(Scope.extend(makePostgresStore({ settings, node }), scope))
    await Effect.runPromise(store.commit(conversations))
    return store
  }
  const store: StoreService = await open("super_pi_bench_ours")
  await open("super_pi_bench_raw")
  const rawUrl = new URL(server.url)
  rawUrl.pathname = "/super_pi_bench_raw"
  const raw = await openRawPostgres(rawUrl.href)
  let rawRound = 0
  let ourRound = 0
  const rawSlice = async () => {
    for (let index = 0; index < SLICE; index++) await raw.write(commitOf((index % CONVERSATIONS) + 1, ++rawRound))
  }
  const aloneSlice = () =>
    Effect.runPromise(
      Effect.gen(function* () {
        for (let index = 0; index < SLICE; index++) {
          yield* store.commit(commitOf((index % CONVERSATIONS) + 1, ++ourRound))
        }
      }),
    )
  const togetherSlice = () =>
    Effect.runPromise(
      Effect.forEach(
        Array.from({ length: CONVERSATIONS }, (_, index) => index + 1),
        (of) =>
          Effect.gen(function* () {
            for (let index = 0; index < SLICE / CONVERSATIONS; index++) yield* store.commit(commitOf(of, ++ourRound))
          }),
        { concurrency: "unbounded", discard: true },
      ),
    )
  const rates: { raw: Array<number>; alone: Array<number>; together: Array<number> } = {
    raw: [],
    alone: [],
    together: [],
  }
  for (let round = 0; round <= ROUNDS; round++) {
    const measured = [await rate(rawSlice), await rate(aloneSlice), await rate(togetherSlice)] as const
    if (round === 0) continue
    rates.raw.push(measured[0])
    rates.alone.push(measured[1])
    rates.together.push(measured[2])
  }
  await raw.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  const row = (name: string, ours: ReadonlyArray<number>, least: number, target: string): Row => {
    const ratio = median(ours.map((mine, index) => mine / (rates.raw[index] ?? 1)))
    return { name, ours: median(ours), peer: median(rates.raw), unit: "/s", ratio, target, met: ratio >= least }
  }
  return [
    row("one commit, PostgreSQL", rates.alone, 1 / 1.5, "≤ 1.5 × raw's time"),
    row(`${CONVERSATIONS} conversations, PostgreSQL`, rates.together, 1.5, "≥ 1.5 × raw single commits"),
  ]
}

/** Half a minute with nine slices. */
export const postgresRows = async (): Promise<ReadonlyArray<Row>> => {
  const server = await openServer()
  try {
    return await measure(server)
  } finally {
    await server.close()
  }
}
