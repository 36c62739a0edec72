/**
 * Random trees of tasks with random steps, ends, crashes, restarts and aborts, on the decision core: no rule is ever broken, and everything ends.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { TaskRow } from "../../../src/actors/task/board.ts"
import { Step } from "../../../src/actors/task/step.ts"
import { World } from "./world.ts"

const ops = [
  ...["start", "next", "next", "complete", "fail", "sleep", "wait", "wait", "waitFast", "waitOthers"],
  ...[
    "failed",
    "faulted",
    "stopped",
    "stopped",
    "undone",
    "undone",
    "crashed",
    "abort",
    "abortDeep",
    "wake",
    "kill",
    "restart",
    "retry",
  ],
] as const

interface Op {
  readonly type: (typeof ops)[number]
  readonly pick: number
  readonly children: number
  readonly background: boolean
}

const op: fc.Arbitrary<Op> = fc.record({
  type: fc.constantFrom(...ops),
  pick: fc.nat(100),
  children: fc.nat(3),
  background: fc.boolean(),
})

const statusRank = { pending: 0, running: 1, waiting: 1, sleeping: 1, completing: 2, terminal: 3 } as const

/** A world that checks every change of a row against the legal transitions. */
class Checked extends World {
  readonly faultsSeen: Array<string> = []

  check(before: ReadonlyMap<number, TaskRow>): void {
    for (const [id, row] of this.rows) {
      const was = before.get(id)
      if (was === undefined || was === row) continue
      if (was.status === "terminal") this.faultsSeen.push(`task ${id} changed after its end`)
      if (statusRank[row.status] < 2 && statusRank[was.status] === 2)
        this.faultsSeen.push(`task ${id} went from ${was.status} to ${row.status}`)
      if (was.abortRequested && !row.abortRequested) this.faultsSeen.push(`task ${id} forgot its abort`)
      if (row.status === "terminal" && row.outcome === null) this.faultsSeen.push(`task ${id} has no outcome`)
      if (row.status === "completing" && row.outcome === null)
        this.faultsSeen.push(`task ${id} completes without outcome`)
      if ((row.status === "waiting") !== (row.waitingOn !== null))
        this.faultsSeen.push(`task ${id}: waitingOn of ${row.status}`)
      if ((row.status === "sleeping") !== (row.wakeAt !== null))
        this.faultsSeen.push(`task ${id}: wakeAt of ${row.status}`)
    }
    this.faultsSeen.push(...this.faults())
  }
}

const run = (world: Checked, { background, children, pick, type }: Op): void => {
  const one = <A>(list: ReadonlyArray<A>): A | undefined => list[pick % Math.max(1, list.length)]
  const phase = one([...world.live].flatMap(([id, mode]) => (mode === "phase" ? [id] : [])))
  const spawned = () =>
    Array.from({ length: children }, (_, at) => world.row({ owner: phase ?? null, background: background && at === 0 }))
  const wait = (policy: "allSettled" | "failFast") => {
    if (phase === undefined) return
    const rows = spawned()
    const own = rows.filter((row) => !row.background || policy === "allSettled")
    world.step(phase, Step.wait({ on: own.map(({ id }) => id), policy }, world.checkpoint()), rows)
  }
  switch (type) {
    case "start":
      world.start({ background })
      return
    case "next":
      if (phase !== undefined) world.step(phase, Step.next(world.checkpoint()), spawned())
      return
    case "complete":
      if (phase !== undefined) world.step(phase, Step.complete(pick), spawned())
      return
    case "fail":
      if (phase !== undefined) world.step(phase, Step.fail("no"), spawned())
      return
    case "sleep":
      if (phase !== undefined) world.step(phase, Step.sleep({ ms: pick }, world.checkpoint()), spawned())
      return
    case "wait":
      wait("allSettled")
      return
    case "waitFast":
      wait("failFast")
      return
    case "waitOthers": {
      const other = one(world.open())
      if (phase !== undefined && other !== undefined)
        world.step(phase, Step.wait({ on: [other.id] }, world.checkpoint()))
      return
    }
    case "failed":
      if (phase !== undefined) world.apply({ type: "ended", id: phase, end: { type: "failed", error: "no" } })
      return
    case "faulted":
      if (phase !== undefined) world.apply({ type: "ended", id: phase, end: { type: "faulted", message: "bug" } })
      return
    case "stopped": {
      const id = one([...world.interrupted])
      if (id !== undefined) world.apply({ type: "ended", id, end: { type: "stopped" } })
      return
    }
    case "undone": {
      const id = one([...world.live].flatMap(([live, mode]) => (mode === "abort" ? [live] : [])))
      if (id !== undefined) world.apply({ type: "ended", id, end: { type: "undone" } })
      return
    }
    case "crashed": {
      const id = one([...world.live.keys()])
      if (id !== undefined) world.apply({ type: "ended", id, end: { type: "crashed", message: "boom" } })
      return
    }
    case "abort":
    case "abortDeep": {
      const row = one(world.open())
      if (row !== undefined)
        world.apply({ type: "abort", id: row.id, background: type === "abortDeep", reason: "enough" })
      return
    }
    case "wake": {
      world.now += pick
      world.apply({ type: "wake", ids: world.open().map(({ id }) => id) })
      return
    }
    case "kill":
      world.restart(false)
      return
    case "restart":
      world.restart(true)
      return
    case "retry": {
      const row = one(world.open().filter(({ parked }) => parked !== null))
      if (row !== undefined) world.apply({ type: "retry", id: row.id })
    }
  }
}

/** Lets everything that can end do so; gives what is left open. */
const drain = (world: Checked): ReadonlyArray<string> => {
  for (let round = 0; round < 1_000 && world.open().length > 0; round++) {
    const before = new Map(world.rows)
    const open = world.open()
    for (const id of [...world.interrupted]) world.apply({ type: "ended", id, end: { type: "stopped" } })
    for (const [id, mode] of [...world.live]) {
      if (mode === "abort") world.apply({ type: "ended", id, end: { type: "undone" } })
      else if (!world.interrupted.has(id)) world.step(id, Step.complete("drained"))
    }
    for (const row of world.open()) if (row.parked !== null) world.apply({ type: "retry", id: row.id })
    world.now += 1_000
    world.apply({ type: "wake", ids: world.open().map(({ id }) => id) })
    world.check(before)
    if (open.every((row) => world.rows.get(row.id) === row)) break
  }
  return world.open().map((row) => `task ${row.id} stays ${row.status} ${JSON.stringify(row.waitingOn)}`)
}

describe("a tree of tasks under random steps, ends, crashes and aborts", () => {
  it("keeps every rule after every event, and ends whole", () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 60 }), fc.boolean(), (list, undo) => {
        const world = new Checked()
        world.undo = undo
        world.start()
        for (const one of list) {
          const before = new Map(world.rows)
          run(world, one)
          world.check(before)
          expect(world.faultsSeen, one.type).toEqual([])
        }
        expect(drain(world)).toEqual([])
        expect(world.faultsSeen).toEqual([])
      }),
      { numRuns: 2_000 },
    )
  })

  it("is the same after a clean restart at any point, but for what ran", () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 40 }), (list) => {
        const world = new Checked()
        world.start()
        for (const one of list) run(world, one)
        const before = new Map([...world.rows].map(([id, row]) => [id, row]))
        const live = new Set(world.live.keys())
        world.restart(true)
        for (const [id, row] of before) {
          if (live.has(id)) expect(world.get(id).crashes).toBe(row.crashes)
          else if (row.status === "sleeping" || row.status === "terminal") expect(world.get(id)).toEqual(row)
        }
        expect(drain(world)).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })
})
