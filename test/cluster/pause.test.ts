/**
 * A node that is stopped (SIGSTOP) for longer than its locks live, and woken again: the others have its work, and it does nothing any more.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { buildProgram } from "../cli/program.ts"
import { describePostgres } from "../support/postgres.ts"
import { brokenPromises, openConversations, type Promises, recoveries } from "./support/busy.ts"
import { isLong, say, summary } from "./support/figures.ts"
import { conversationsOf, finish, keepNodeBusy } from "./support/round.ts"
import { System } from "./support/system.ts"
import { type Plan, planWork } from "./support/work.ts"

const rounds = isLong ? 5 : 1
const busyAtOnce = 12

let system: System
let plan: Plan

beforeAll(async () => {
  await buildProgram()
  system = await System.start({
    script: (log) => {
      plan = planWork(rounds, busyAtOnce, log)
      return plan.script
    },
  })
}, 300_000)
afterAll(() => system?.end(), 60_000)

describePostgres("SIGSTOP beyond the lease, then SIGCONT", () => {
  it("the others go on; the woken node commits nothing, does nothing, and ends with 70", async () => {
    const promises: Promises = new Map()
    const opened = await openConversations(
      system,
      await Promise.all(system.nodes.map((node) => system.connect(node))),
      120,
    )
    for (const [round, works] of plan.rounds.entries()) {
      const sleeper = system.node(round)
      const clients = await Promise.all(system.others(sleeper).map((node) => system.connect(node)))
      const busy = await keepNodeBusy({ system, node: sleeper, opened, works, clients, promises })
      const here = conversationsOf(busy)
      const epoch = await system.epochOf(sleeper)
      const start = performance.now()
      sleeper.signal("SIGSTOP")
      const since = await system.database.marks(here, epoch)
      const at = await recoveries(system, here, { epoch, since, start })
      await finish(system, clients[0], busy)

      const before = await system.database.world()
      sleeper.expectEnd()
      const woken = performance.now()
      sleeper.signal("SIGCONT")
      const end = await sleeper.ended
      expect(end, sleeper.stderr).toEqual({ code: 70, signal: null })
      const took = Math.round(performance.now() - woken)
      const after = await system.database.world()
      expect(after.entries).toEqual(before.entries)
      expect(after.submissions).toEqual(before.submissions)
      expect(after.tasks).toEqual(before.tasks)
      say(`${sleeper.name} stopped: its work went on after ${summary([...at.values()])}; woken, it ended in ${took} ms`)
      sleeper.start()
      await system.settled()
    }
    expect(await brokenPromises(system, promises, plan.rounds.flat())).toEqual([])
    expect(system.accidents()).toEqual([])
  }, 1_200_000)
})
