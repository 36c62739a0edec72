/**
 * A durable turn on PostgreSQL: the whole product path beside DBOS, on one server that waits for its disk, in alternating rounds.
 */
import { createDatabase, openServer, type Server } from "../postgres-server.ts"
import { median, type Row } from "../row.ts"
import type { OpenEngine } from "./engine.ts"
import { openPostgresProduct } from "./product.ts"
import { type Shape, talk } from "./talk.ts"

const long: Shape = { conversations: 1, turns: 200 }
const wide: Shape = { conversations: 50, turns: 20 }

/** Turns of each shape beforehand. */
const warmTurns = Number(process.env.BENCH_WARM_TURNS ?? 2_000)

/** Turns per second. */
const measure = async (server: Server, open: OpenEngine, shape: Shape): Promise<number> => {
  const engine = await open(await createDatabase(server, "super_pi_bench_turn"))
  try {
    await engine.begin(shape.conversations)
    const start = performance.now()
    const times = await talk(engine, shape)
    return (times.length * 1_000) / (performance.now() - start)
  } finally {
    await engine.close()
  }
}

const compare = async (server: Server, shape: Shape, peer: OpenEngine, rounds: number) => {
  const ours: Array<number> = []
  const theirs: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    ours.push(await measure(server, openPostgresProduct, shape))
    theirs.push(await measure(server, peer, shape))
  }
  return { ours, theirs }
}

/** Three minutes with three rounds. */
export const postgresRows = async (rounds: number): Promise<ReadonlyArray<Row>> => {
  const { openDbos } = await import("./dbos.ts")
  const server = await openServer()
  try {
    const row = async (name: string, shape: Shape): Promise<Row> => {
      // until the code of both is compiled
      await compare(server, shape, openDbos, Math.ceil(warmTurns / (shape.conversations * shape.turns)))
      const { ours, theirs } = await compare(server, shape, openDbos, rounds)
      const ratio = median(ours.map((mine, round) => mine / (theirs[round] ?? 1)))
      const target = { target: "≥ 2 × DBOS", met: ratio >= 2 }
      return { name, ours: median(ours), peer: median(theirs), unit: "turns/s", ratio, ...target }
    }
    return [
      await row(`${long.turns} turns in one conversation, PostgreSQL, beside DBOS`, long),
      await row(`${wide.conversations} conversations × ${wide.turns} turns, PostgreSQL, beside DBOS`, wide),
    ]
  } finally {
    await server.close()
  }
}
