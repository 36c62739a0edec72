/**
 * A durable turn (user input, tool call, tool result, answer; every step committed; instant model): the whole product path beside LangGraph JS
 * with its SQLite checkpointer, beside @effect/workflow, and beside the raw rows; and the bare engine path beside the raw rows. Ours and the
 * floor alternate; the peers run once, LangGraph since it takes minutes. On PostgreSQL beside DBOS (postgres.ts).
 */
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { median, type Row } from "../row.ts"
import { openBare } from "./bare.ts"
import type { OpenEngine } from "./engine.ts"
import { openFloor } from "./floor.ts"
import { postgresRows } from "./postgres.ts"
import { openProduct } from "./product.ts"
import { type Shape, talk } from "./talk.ts"

/** Rounds of ours and the floor; odd. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)

const long: Shape = { conversations: 1, turns: Number(process.env.BENCH_TURNS ?? 500) }
const wide: Shape = { conversations: 50, turns: 20 }

const WARM_TURNS = Number(process.env.BENCH_WARM_TURNS ?? 5_000)

/** Turns per conversation of @effect/workflow at most: its rate does not depend on them. */
const WORKFLOW_TURNS = 100

/** The first and the last turns whose medians are compared. */
const EDGE = 50

interface Measured {
  /** Turns per second. */
  readonly rate: number
  /** Milliseconds, the median of the first and of the last turns. */
  readonly first: number
  readonly last: number
  /** Of the database, per turn. */
  readonly bytes: number
}

const measure = async (open: OpenEngine, shape: Shape): Promise<Measured> => {
  const directory = mkdtempSync(path.join(tmpdir(), "super-pi-turn-"))
  const file = path.join(directory, "bench.db")
  try {
    const engine = await open(file)
    await engine.begin(shape.conversations)
    const start = performance.now()
    const times = await talk(engine, shape)
    const elapsed = performance.now() - start
    await engine.close()
    const edge = Math.min(EDGE, Math.floor(times.length / 2))
    return {
      rate: (times.length * 1_000) / elapsed,
      first: median(times.slice(0, edge)),
      last: median(times.slice(-edge)),
      bytes: statSync(file).size / times.length,
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const middle = (rounds: ReadonlyArray<Measured>, of: (measured: Measured) => number): number => median(rounds.map(of))

/** Turns of the same shape until the code is compiled, which takes about five thousand: a node runs for days. */
const warmUp = async (shape: Shape): Promise<void> => {
  for (let turns = 0; turns < WARM_TURNS; turns += shape.conversations * shape.turns) {
    await measure(openProduct, shape)
    await measure(openBare, shape)
    await measure(openFloor, shape)
  }
}

const compare = async (shape: Shape, peer: OpenEngine) => {
  await warmUp(shape)
  const ours: Array<Measured> = []
  const bare: Array<Measured> = []
  const floor: Array<Measured> = []
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await measure(openProduct, shape))
    bare.push(await measure(openBare, shape))
    floor.push(await measure(openFloor, shape))
  }
  const { openWorkflow } = await import("./workflow.ts")
  const workflow = await measure(openWorkflow, {
    conversations: shape.conversations,
    turns: Math.min(shape.turns, WORKFLOW_TURNS),
  })
  return { ours, bare, floor, workflow, peer: await measure(peer, shape) }
}

const rateRows = (
  title: string,
  { ours, bare, floor, workflow, peer }: Awaited<ReturnType<typeof compare>>,
  target: { readonly ratio: number; readonly rate: number | null },
): ReadonlyArray<Row> => {
  const mine = middle(ours, ({ rate }) => rate)
  const raw = middle(floor, ({ rate }) => rate)
  const engine = middle(bare, ({ rate }) => rate)
  const ratio = mine / peer.rate
  return [
    {
      ...{ name: `${title}, beside LangGraph`, ours: mine, peer: peer.rate, unit: "turns/s", ratio },
      target: `≥ ${target.ratio} × LangGraph${target.rate === null ? "" : `, ≥ ${target.rate}/s`}`,
      met: ratio >= target.ratio && mine >= (target.rate ?? 0),
    },
    {
      name: `${title}, beside the raw rows`,
      ours: mine,
      peer: raw,
      unit: "turns/s",
      ratio: mine / raw,
      target: "",
      met: true,
    },
    {
      name: `${title}, beside @effect/workflow`,
      ...{ ours: mine, peer: workflow.rate, unit: "turns/s", ratio: mine / workflow.rate },
      ...{ target: "", met: true },
    },
    {
      name: `${title}, the bare engine beside the raw rows`,
      ...{ ours: engine, peer: raw, unit: "turns/s", ratio: engine / raw },
      ...{ target: "≥ 0.625 (≤ 1.6 × the time)", met: engine >= raw / 1.6 },
    },
  ]
}

/** Runs everything: about four minutes, most of it LangGraph's; with `postgres`, what runs on PostgreSQL alone. */
export const rows = async (only?: string): Promise<ReadonlyArray<Row>> => {
  if (only === "postgres") return postgresRows(ROUNDS)
  const { openLangGraph } = await import("./langgraph.ts")
  const inOne = await compare(long, openLangGraph)
  const inMany = await compare(wide, openLangGraph)
  const growth = middle(inOne.ours, ({ first, last }) => last / first)
  const peerGrowth = inOne.peer.last / inOne.peer.first
  const bytes = middle(inOne.ours, (measured) => measured.bytes)
  return [
    ...rateRows(`${long.turns} turns in one conversation`, inOne, { ratio: 70, rate: 300 }),
    ...rateRows(`${wide.conversations} conversations × ${wide.turns} turns`, inMany, { ratio: 10, rate: null }),
    {
      ...{ name: `last turns over first of ${long.turns}`, ours: growth, peer: peerGrowth, unit: "×" },
      ...{ ratio: peerGrowth / growth, target: "≤ 1.2", met: growth <= 1.2 },
    },
    {
      ...{ name: "bytes per turn", ours: bytes, peer: inOne.peer.bytes, unit: "B" },
      ...{ ratio: inOne.peer.bytes / bytes, target: "≤ 8,192", met: bytes <= 8_192 },
    },
    ...(await postgresRows(ROUNDS)),
  ]
}
