/**
 * The actor kernel beside nact 7, in alternating rounds of one run; medians of wall-clock rates. How it reaches them is
 * in docs/kernel.md, *How it is fast*.
 */
import { Data } from "effect"
import { median, type Row } from "../row.ts"
import * as nact from "./nact.ts"
import * as ours from "./ours.ts"

/** Rounds per case; odd. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)

class Broken extends Data.TaggedError("Broken")<{ readonly n: number }> {}

interface Case {
  readonly name: string
  readonly ours: (system: ours.Ours) => Promise<number>
  readonly peer: (system: nact.Nact) => Promise<number>
  readonly unit: "/s" | "B"
  /** The ratio to reach, or for bytes the most there may be. Null: shown for comparison. */
  readonly target: number | null
}

const cases = (gc: () => void): ReadonlyArray<Case> => [
  {
    name: "bytes per idle actor",
    ours: (system) => ours.bytesPerIdle(system, gc),
    peer: (system) => nact.bytesPerIdle(system, gc),
    unit: "B",
    target: 400,
  },
  { name: "tell, one actor", ours: ours.tellPlain, peer: nact.tell, unit: "/s", target: 4 },
  { name: "tell as an Effect, with back-pressure", ours: ours.tellEffect, peer: nact.tell, unit: "/s", target: null },
  { name: "tell, fnUntraced, service, FiberRef", ours: ours.tellServices, peer: nact.tell, unit: "/s", target: 1.2 },
  { name: "tell, inline Effect.gen", ours: ours.tellGen, peer: nact.tell, unit: "/s", target: null },
  { name: "ask, sequential", ours: ours.askSequential, peer: nact.askSequential, unit: "/s", target: 2.5 },
  { name: "spawn", ours: ours.spawnMany, peer: nact.spawnMany, unit: "/s", target: 4 },
  { name: "spawn as an Effect", ours: ours.spawnEffect, peer: nact.spawnMany, unit: "/s", target: null },
  { name: "ping-pong over 1,000 actors", ours: ours.pingPong, peer: nact.pingPong, unit: "/s", target: 5 },
  { name: "ask from inside a handler", ours: ours.askInside, peer: nact.askInside, unit: "/s", target: 1.7 },
  {
    name: "supervised restart, no stack",
    ours: (system) => ours.restarts(system, () => "broken"),
    peer: (system) => nact.restarts(system, () => "broken"),
    unit: "/s",
    target: 2,
  },
  {
    name: "supervised restart, tagged error",
    ours: (system) => ours.restarts(system, () => new Broken({ n: 1 })),
    peer: (system) => nact.restarts(system, () => new Broken({ n: 1 })),
    unit: "/s",
    target: 1,
  },
]

/** Runs every case (a minute or two with five rounds). Needs `node --expose-gc`. */
export const rows = async (only?: string): Promise<ReadonlyArray<Row>> => {
  const { gc } = globalThis
  if (gc === undefined) throw new Error("bench/actors: expected to run under node --expose-gc")
  const ourSystem = ours.open()
  const nactSystem = nact.open()
  const result: Array<Row> = []
  for (const each of cases(() => {
    gc()
    gc() // what the first one's finalizers let go
  })) {
    if (only !== undefined && !each.name.includes(only)) continue
    await each.ours(ourSystem) // one round to warm up, for both
    await each.peer(nactSystem)
    const mine: Array<number> = []
    const theirs: Array<number> = []
    for (let round = 0; round < ROUNDS; round++) {
      mine.push(await each.ours(ourSystem))
      theirs.push(await each.peer(nactSystem))
    }
    result.push(row(each, median(mine), median(theirs)))
  }
  await ourSystem.close()
  await nactSystem.close()
  return result
}

const row = ({ name, unit, target }: Case, mine: number, peer: number): Row => {
  const bytes = unit === "B"
  const ratio = bytes ? peer / mine : mine / peer
  return {
    name,
    ours: mine,
    peer,
    unit,
    ratio,
    target: target === null ? "" : bytes ? `≤ ${target} B` : `≥ ${target} × nact`,
    met: target === null || (bytes ? mine <= target : ratio >= target),
  }
}
