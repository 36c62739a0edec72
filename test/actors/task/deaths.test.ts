/**
 * A tree of tasks, killed before and after each of its commits and around each of its effects. The next life finishes it: the same end, no
 * committed effect done again, and what had to be repeated was repeated under its own key.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type MemoryDatabase, memoryDatabase } from "../../../src/storage/memory/store.ts"
import { run } from "./harness.ts"
import { type DeathPoint, Life } from "./lives.ts"
import { newWorld, type Plan, planned, type World } from "./plans.ts"

const leaf: Plan = { effects: 1, sleeps: false, children: [], policy: "allSettled", background: false, end: "complete" }

/** A root with an effect of its own, three children (one of them sleeps, one has a child, one fails). */
const tree: Plan = {
  ...leaf,
  children: [
    { ...leaf, sleeps: true },
    { ...leaf, children: [leaf] },
    { ...leaf, end: "fail" },
  ],
}

const expected = {
  status: "completed",
  // Its id is the first that is not lost with a life.
  result: { effects: [expect.stringMatching(/^[123]\/0$/)], children: ["completed", "completed", "failed"] },
}

/** One life up to its death, or to the end of the tree. */
const liveOnce = (database: MemoryDatabase, world: World, plan: Plan, point: DeathPoint | null) => {
  const life = new Life(point)
  const definition = planned(life, world)
  const use = life.run(database, (tasks) =>
    Effect.gen(function* () {
      yield* tasks.register(definition)
      return yield* tasks.outcome(definition, yield* tasks.start(definition, plan, { requestId: "once" }))
    }),
  )
  return Effect.map(use, (outcome) => ({ outcome, life }))
}

const survives = (points: ReadonlyArray<DeathPoint>) =>
  Effect.gen(function* () {
    const database = memoryDatabase()
    const world = newWorld()
    let deaths = 0
    for (const point of points) if ((yield* liveOnce(database, world, tree, point)).life.dead) deaths++
    expect(deaths).toBe(points.length)
    const { outcome } = yield* liveOnce(database, world, tree, null)
    expect(outcome).toEqual(expected)
    expect(world.faults).toEqual([])
    for (const [name, keys] of world.keys) expect([name, keys.size]).toEqual([name, 1])
    // Only the effect that a death cut off from its commit was done again.
    expect([...world.effects.values()].reduce((sum, times) => sum + times - 1, 0)).toBeLessThanOrEqual(deaths * 4)
    const rows = [...database.records.tasks.values()]
    expect(rows.map(({ status }) => status)).toEqual(rows.map(() => "terminal"))
    expect(rows).toHaveLength(5)
  })

const whole = { commit: 27, effect: 5 }

const points = (["commit", "effect"] as const).flatMap((at) =>
  Array.from({ length: whole[at] }, (_, n) => n + 1).flatMap(
    (n): ReadonlyArray<DeathPoint> => [
      { at, n, when: "before" },
      { at, n, when: "after" },
    ],
  ),
)

const named = ({ at, n, when }: DeathPoint): string => `${when} ${at} ${n}`

describe("a tree of five tasks", () => {
  it("makes as many commits and effects as it is killed at below", () =>
    run(
      Effect.gen(function* () {
        const database = memoryDatabase()
        const world = newWorld()
        const { life, outcome } = yield* liveOnce(database, world, tree, null)
        expect(outcome).toEqual(expected)
        expect(life.counts).toEqual(whole)
        expect([...world.effects.values()]).toEqual([1, 1, 1, 1, 1])
      }),
    ))
})

describe("killed once, it ends the same", () => {
  it.each(points.map((point) => [named(point), point] as const))("%s", (_, point) => run(survives([point])))
})

describe("killed again while it recovers, it ends the same", () => {
  const twice = points
    .filter(({ at, n }) => at === "commit" && n < whole.commit - 2)
    .map((point, index): readonly [string, ReadonlyArray<DeathPoint>] => {
      const again: DeathPoint = { at: "commit", n: 1, when: index % 4 < 2 ? "before" : "after" }
      return [`${named(point)}, then ${named(again)}`, [point, again]]
    })
  it.each(twice)("%s", (_, both) => run(survives(both)))
})
