/**
 * The node that runs twenty busy conversations is killed, again and again: all of them go on elsewhere without being asked, nothing is lost
 * and nothing unsafe happens twice.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { buildProgram } from "../cli/program.ts"
import { describePostgres } from "../support/postgres.ts"
import { brokenPromises, openConversations, type Promises, recoveries, restingOf } from "./support/busy.ts"
import { isLong, say, summary } from "./support/figures.ts"
import { conversationsOf, finish, keepNodeBusy } from "./support/round.ts"
import { System } from "./support/system.ts"
import { type Plan, planWork } from "./support/work.ts"

const rounds = isLong ? 20 : 1
const busyAtOnce = 20
/** Enough for every node to hold twenty of them, whatever is where. */
const conversations = 180

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

describePostgres("kill -9 of the node that runs 20 busy conversations", () => {
  it(`loses nothing, repeats nothing, and all of it goes on by itself, ${rounds} times`, async () => {
    const promises: Promises = new Map()
    const all: Array<number> = []
    const opened = await openConversations(
      system,
      await Promise.all(system.nodes.map((node) => system.connect(node))),
      conversations,
    )
    for (const [round, works] of plan.rounds.entries()) {
      const victim = system.node(round)
      const clients = await Promise.all(system.others(victim).map((node) => system.connect(node)))
      const busy = await keepNodeBusy({ system, node: victim, opened, works, clients, promises })
      const here = conversationsOf(busy)
      expect(await restingOf(system, here)).toBe(0)

      const epoch = await system.epochOf(victim)
      const start = performance.now()
      await victim.kill()
      const since = await system.database.marks(here, epoch)
      const at = await recoveries(system, here, { epoch, since, start })
      // one that sleeps before a retry says nothing until its time comes
      const awake = busy.flatMap(({ conversation, work }) =>
        work.kind === "sleeps" ? [] : (at.get(conversation) ?? []),
      )
      all.push(...awake)

      await finish(system, clients[0], busy)
      say(
        `round ${round + 1}, ${victim.name} killed: recovery ${summary(awake)}; with those that sleep ${summary([...at.values()])}`,
      )
      victim.start()
      await system.settled()
    }
    expect(await brokenPromises(system, promises, plan.rounds.flat())).toEqual([])
    expect(system.accidents()).toEqual([])
    say(
      `${rounds} kills with ${busyAtOnce} busy conversations: from the kill to the next commit of those awake ${summary(all)}`,
    )
  }, 1_800_000)
})
