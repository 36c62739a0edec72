/**
 * What the gateway adds to a delta between the model and the client: many streaming clients on one node at once, beside a bare relay under
 * the same load in the same run. Clients, node and relay are processes of their own.
 */
import { type ChildProcess, fork } from "node:child_process"
import { setTimeout } from "node:timers/promises"
import { isRecord } from "../../src/domain/json.ts"
import { elapsedSeconds, type Row } from "../row.ts"
import { follow } from "./client.ts"
import { clients, deltas, startMs } from "./clock.ts"

/** What a delta may be late, in ms. */
const limitMs = 10

interface Measured {
  readonly p50: number
  readonly p99: number
  /** Deltas a second, over all clients. */
  readonly rate: number
}

const at = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN

/** A server of this bench in a process of its own, and its port. */
const serve = (name: "node" | "relay"): Promise<{ readonly child: ChildProcess; readonly port: number }> =>
  new Promise((resolve, reject) => {
    const child = fork(process.argv[1] ?? "", ["--one", "gateway", name])
    child.on("error", reject)
    child.on("exit", (code) => reject(new Error(`the ${name} ended with ${code}`)))
    child.on("message", (message) => {
      if (isRecord(message) && typeof message.port === "number") resolve({ child, port: message.port })
    })
  })

/** One answer for every client; `gapMs` is between two starts. */
const round = async (port: number, gapMs: number): Promise<Measured> => {
  const begun = elapsedSeconds()
  const all = await Promise.all(
    Array.from({ length: clients }, async (_, at) => {
      await setTimeout(at * gapMs)
      return follow(port, `client-${at}`)
    }),
  )
  const seconds = elapsedSeconds() - begun
  const ages = all.flat().sort((a, b) => a - b)
  if (ages.length !== clients * deltas) throw new Error(`expected ${clients * deltas} deltas, got ${ages.length}`)
  return { p50: at(ages, 0.5), p99: at(ages, 0.99), rate: ages.length / seconds }
}

/** Measured once the code is compiled, the connections are open and every client has its session: `burst` is with all starts at once. */
const measure = async (name: "node" | "relay"): Promise<{ readonly steady: Measured; readonly burst: Measured }> => {
  const { child, port } = await serve(name)
  await round(port, startMs)
  const burst = await round(port, 0)
  const steady = await round(port, startMs)
  child.send("stop")
  return { burst, steady }
}

const measuredRows = async (): Promise<ReadonlyArray<Row>> => {
  const peer = await measure("relay")
  const ours = await measure("node")
  const late = (name: string, mine: number, theirs: number, target: string, met: boolean): Row => ({
    name: `${name} of a delta's latency, ${clients} clients`,
    ours: mine,
    peer: theirs,
    unit: "ms",
    ratio: theirs / mine,
    target,
    met,
  })
  return [
    late("p50", ours.steady.p50, peer.steady.p50, "", true),
    late("p99", ours.steady.p99, peer.steady.p99, `≤ ${limitMs} ms`, ours.steady.p99 <= limitMs),
    late("p99, all asked at one instant,", ours.burst.p99, peer.burst.p99, "", true),
    {
      name: "deltas",
      ours: ours.steady.rate,
      peer: peer.steady.rate,
      unit: "/s",
      ratio: ours.steady.rate / peer.steady.rate,
      target: "",
      met: true,
    },
  ]
}

/** In the processes that `serve` forks, `only` names the server to be. */
export const rows = async (only?: string): Promise<ReadonlyArray<Row>> => {
  if (only === "node") await (await import("./node.ts")).runNode()
  else if (only === "relay") await (await import("./relay.ts")).runRelay()
  else return measuredRows()
  return []
}
