/**
 * Random trees of tasks on the real engine, killed at random commits and effects and aborted at random: an owner ends after what it owns, abort
 * handlers run bottom-up, no committed effect is done again, and every task ends or is parked.
 */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, it, vi } from "vitest"
import type { TaskId } from "../../../src/domain/ids.ts"
import { type MemoryDatabase, memoryDatabase } from "../../../src/storage/memory/store.ts"
import { run } from "./harness.ts"
import { type DeathPoint, Life } from "./lives.ts"
import { newWorld, type Plan, planned, type World } from "./plans.ts"

/** For a machine that does much else. */
vi.setConfig({ testTimeout: 240_000 })

const plan: fc.Arbitrary<Plan> = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.record(
    {
      effects: fc.nat(2),
      sleeps: fc.boolean(),
      children: fc.oneof({ depthSize: "small" }, fc.constant([]), fc.array(tie("plan"), { maxLength: 3 })),
      policy: fc.constantFrom("allSettled" as const, "failFast" as const),
      background: fc.boolean(),
      end: fc.constantFrom("complete" as const, "complete" as const, "fail" as const, "defect" as const),
    },
    { noNullPrototype: true },
  ),
})).plan

const death: fc.Arbitrary<DeathPoint> = fc.record({
  at: fc.constantFrom("commit" as const, "commit" as const, "effect" as const),
  n: fc.integer({ min: 1, max: 12 }),
  when: fc.constantFrom("before" as const, "after" as const),
})

/** What the database says against the rules. */
const faultsOf = (database: MemoryDatabase): ReadonlyArray<string> => {
  const rows = [...database.records.tasks.values()]
  return rows.flatMap((row) => {
    const owner = row.owner === null ? undefined : database.records.tasks.get(row.owner)
    const late =
      owner !== undefined &&
      owner.status === "terminal" &&
      !row.background &&
      (row.status !== "terminal" || row.seq > owner.seq)
        ? [`task ${owner.id} ended before its task ${row.id}`]
        : []
    return [...late, ...(row.status === "terminal" && row.outcome === null ? [`task ${row.id} has no outcome`] : [])]
  })
}

/** Tasks that an abort handler must not meet open: what the task owns, but for background work. */
const openBelow = (database: MemoryDatabase, id: TaskId): ReadonlyArray<string> =>
  [...database.records.tasks.values()].flatMap((row) =>
    row.owner === id && !row.background && row.status !== "terminal"
      ? [`${id} is undone before its task ${row.id}`]
      : [],
  )

const oneLife = (
  database: MemoryDatabase,
  world: World,
  root: Plan,
  point: DeathPoint | null,
  abort: { readonly background: boolean } | null,
) => {
  const life = new Life(point)
  const definition = planned(life, world, (id) => openBelow(database, id))
  return life.run(database, (tasks) =>
    Effect.gen(function* () {
      yield* tasks.register(definition)
      const id = yield* tasks.start(definition, root, { requestId: "root" })
      if (abort !== null) yield* tasks.abort(id, abort)
      yield* tasks.wait(id)
      // Background work is nobody's to wait for but ours; it may start more of it.
      const left = Effect.map(tasks.graphNow, (graph) => [...graph.keys()])
      for (let open = yield* left; open.length > 0; open = yield* left) {
        for (const task of open) yield* tasks.wait(task)
      }
    }),
  )
}

describe("random trees of tasks under random deaths and aborts", () => {
  it("end by the rules, every effect once for good", async () => {
    await fc.assert(
      fc.asyncProperty(
        plan,
        fc.array(death, { maxLength: 3 }),
        fc.option(fc.record({ background: fc.boolean() })),
        fc.nat(3),
        (root, deaths, abort, abortIn) =>
          run(
            Effect.gen(function* () {
              const database = memoryDatabase()
              const world = newWorld()
              const lives = [...deaths, null]
              const at = Math.min(abortIn, lives.length - 1)
              for (const [index, point] of lives.entries()) {
                yield* oneLife(database, world, root, point, abort !== null && index === at ? abort : null)
                const faults = [...world.faults, ...faultsOf(database)]
                if (faults.length > 0) return yield* Effect.dieMessage(faults.join("; "))
              }
              const open = [...database.records.tasks.values()].filter((row) => row.status !== "terminal")
              if (open.length > 0) return yield* Effect.dieMessage(`left open: ${JSON.stringify(open)}`)
              for (const [name, times] of world.effects) {
                if (times > 1 + deaths.length) return yield* Effect.dieMessage(`effect ${name} was done ${times} times`)
                if (world.keys.get(name)?.size !== 1) return yield* Effect.dieMessage(`effect ${name} had several keys`)
              }
            }),
          ),
      ),
      { numRuns: 1_000 },
    )
  })
})
