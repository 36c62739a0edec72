/**
 * What a node makes of its looks at the database: members, holders, and who has been gone for too long.
 */
import { describe, expect, it } from "vitest"
import type { RosterNode } from "../../src/storage/postgres/roster.ts"
import { Roster } from "../../src/supervisors/cluster/roster.ts"

const node = (epoch: number, more: Partial<RosterNode> = {}): RosterNode => ({
  epoch,
  name: `node-${epoch}`,
  address: "",
  version: "1",
  startedAt: 0,
  draining: false,
  alive: true,
  connected: true,
  shards: [],
  ...more,
})
const gone = { alive: false, connected: false }

describe("the roster of a node", () => {
  it("counts the living as members, and itself also while its own lock connection comes back", () => {
    const roster = new Roster(1)
    roster.see([node(1, gone), node(2), node(3, gone)], 0)
    expect(roster.members.map(({ epoch }) => epoch)).toEqual([1, 2])
    expect(roster.includesSelf).toBe(true)
  })

  it("knows who holds a shard, and forgets who gave it away", () => {
    const roster = new Roster(1)
    roster.see([node(1, { shards: [1, 2] }), node(2, { shards: [3] })], 0)
    expect([roster.holderOf(1), roster.holderOf(3), roster.holderOf(4)]).toEqual([1, 2, null])
    expect(roster.heldCount).toBe(3)
    roster.see([node(1, { shards: [2] }), node(2, { shards: [3, 1] })], 250)
    expect(roster.holderOf(1)).toBe(2)
  })

  it("wants a node fenced off only after it was gone in every look of five seconds", () => {
    const roster = new Roster(1)
    const looks = (from: number, to: number, other: RosterNode): ReadonlyArray<number> => {
      let dead: ReadonlyArray<number> = []
      for (let at = from; at <= to; at += 250) dead = roster.see([node(1), other], at)
      return dead
    }
    expect(looks(0, 4_750, node(2, gone))).toEqual([])
    expect(looks(5_000, 5_000, node(2))).toEqual([])
    expect(looks(5_250, 10_000, node(2, gone))).toEqual([])
    expect(looks(10_250, 10_250, node(2, gone))).toEqual([2])
  })

  it("starts to count anew when it could not look itself for a while", () => {
    const roster = new Roster(1)
    roster.see([node(1), node(2, gone)], 0)
    expect(roster.see([node(1), node(2, gone)], 60_000)).toEqual([])
    expect(roster.age(60_100)).toBe(100)
  })

  it("never wants itself fenced off", () => {
    const roster = new Roster(1)
    for (let at = 0; at <= 20_000; at += 250) expect(roster.see([node(1, gone)], at)).toEqual([])
  })
})
