/**
 * What a request costs that comes to a node which does not hold the conversation: one, two and three real nodes on one PostgreSQL, all requests
 * through the first one, conversations that it holds beside those of the others.
 */
import type { Script } from "../../src/models/providers/script-file.ts"
import { percentile } from "../../test/cluster/support/figures.ts"
import { RpcSocket } from "../../test/cluster/support/rpc-socket.ts"
import { buildPrograms } from "../build.ts"
import { createDatabase, openServer } from "../postgres-server.ts"
import { median, type Row } from "../row.ts"
import { type Nodes, startNodes } from "./nodes.ts"
import { lateness } from "./watch.ts"

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
/** Conversations of each kind that are asked at once. */
const WIDTH = 16
const CALLS = 1_600
const TURNS = 320
const SOCKETS = 4

const words = Array.from({ length: 50 }, (_, at) => `word${at}`)
const script: Script = {
  rules: [
    { match: "stream", steps: [{ text: words.join(" "), chunks: words.length, chunkMs: 10 }] },
    { match: "ping", steps: [{ text: "pong" }] },
  ],
}

interface Measured {
  readonly rate: number
  readonly p99: number
}

/** `count` requests, {@link WIDTH} at a time. */
const drive = async (count: number, request: (lane: number, at: number) => Promise<unknown>): Promise<Measured> => {
  const times: Array<number> = []
  const start = performance.now()
  await Promise.all(
    Array.from({ length: WIDTH }, async (_, lane) => {
      for (let at = lane; at < count; at += WIDTH) {
        const begun = performance.now()
        await request(lane, at)
        times.push(performance.now() - begun)
      }
    }),
  )
  return { rate: (count * 1_000) / (performance.now() - start), p99: percentile(times, 0.99) }
}

interface Kind {
  readonly name: "local" | "remote"
  readonly conversations: ReadonlyArray<number>
}

/** Enough conversations of each kind, made through the first node. */
const openKinds = async ({ holderOf, nodes }: Nodes, socket: RpcSocket): Promise<ReadonlyArray<Kind>> => {
  const found: Record<"local" | "remote", Array<number>> = { local: [], remote: [] }
  const kinds = nodes.length === 1 ? (["local"] as const) : (["local", "remote"] as const)
  for (let at = 0; kinds.some((kind) => found[kind].length < WIDTH); at++) {
    const call = { agent: {}, requestId: `open-${at}` }
    const { conversation_id } = await socket.call<{ conversation_id: number }>("session.open", call)
    const of = await holderOf()
    found[of(conversation_id) === 0 ? "local" : "remote"].push(conversation_id)
  }
  return kinds.map((name) => ({ name, conversations: found[name].slice(0, WIDTH) }))
}

const measureNodes = async (url: string, count: number): Promise<ReadonlyArray<Row>> => {
  const system = await startNodes(url, count, script)
  const [first] = system.nodes
  if (first === undefined) throw new RangeError("a cluster has nodes")
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => RpcSocket.connect(first.url)))
  try {
    const socket = (lane: number) => sockets[lane % SOCKETS] as RpcSocket
    const kinds = await openKinds(system, socket(0))
    let turn = 0
    const asked = { state: new Map<string, Array<Measured>>(), turn: new Map<string, Array<Measured>>() }
    for (let round = 0; round <= ROUNDS; round++) {
      for (const { conversations, name } of kinds) {
        const id = (lane: number) => conversations[lane] ?? 0
        const state = await drive(CALLS, (lane) => socket(lane).call("session.state", { conversationId: id(lane) }))
        const turns = await drive(TURNS, async (lane) => {
          const call = { conversationId: id(lane), content: "ping", requestId: `turn-${turn++}` }
          const { submission_id } = await socket(lane).call<{ submission_id: number }>("session.submit", call)
          const known = { conversationId: id(lane), submissionId: submission_id }
          const { text } = await socket(lane).call<{ text: string | null }>("session.await", known)
          if (text !== "pong") throw new Error(`a turn answered ${JSON.stringify(text)}`)
        })
        // the first round warms up
        if (round === 0) continue
        asked.state.set(name, [...(asked.state.get(name) ?? []), state])
        asked.turn.set(name, [...(asked.turn.get(name) ?? []), turns])
      }
    }
    const rows: Array<Row> = []
    const nodes = count === 1 ? "1 node" : `${count} nodes`
    for (const [what, measured] of Object.entries(asked)) {
      const of = (name: string, which: keyof Measured) => median((measured.get(name) ?? []).map((one) => one[which]))
      const title = what === "state" ? "state calls" : "turns"
      for (const { name } of kinds) {
        const peer = (which: keyof Measured) => (name === "local" ? null : of("local", which))
        const rate = of(name, "rate")
        const p99 = of(name, "p99")
        const rates = { ours: rate, peer: peer("rate"), unit: "/s", ratio: ratioOf(rate, peer("rate")) }
        const times = { ours: p99, peer: peer("p99"), unit: "ms", ratio: ratioOf(peer("p99"), p99) }
        rows.push({ name: `${nodes}, ${name} ${title}`, ...rates, target: "", met: true })
        rows.push({ name: `${nodes}, ${name} ${title}, p99`, ...times, target: "", met: true })
      }
    }
    const remote = kinds.find(({ name }) => name === "remote")
    if (remote !== undefined) rows.push(...(await lateness(system, remote.conversations, nodes)))
    return rows
  } finally {
    for (const socket of sockets) socket.close()
    await system.close()
  }
}

const ratioOf = (better: number | null, worse: number | null): number | null =>
  better === null || worse === null ? null : better / worse

/** Two minutes with three rounds. */
export const rows = async (only?: string): Promise<ReadonlyArray<Row>> => {
  await buildPrograms()
  const server = await openServer()
  try {
    const all: Array<Row> = []
    for (const count of [1, 2, 3]) {
      all.push(...(await measureNodes(await createDatabase(server, "super_pi_bench_cluster"), count)))
    }
    return all.filter(({ name }) => only === undefined || name.includes(only))
  } finally {
    await server.close()
  }
}
