/**
 * One node is cut off from everything while it works, and reached again after the others have finished its work.
 */
import { expect } from "vitest"
import { type Promises, recoveries } from "./busy.ts"
import { summary } from "./figures.ts"
import type { NodeProcess } from "./process.ts"
import { conversationsOf, finish, keepNodeBusy } from "./round.ts"
import type { RpcSocket } from "./rpc-socket.ts"
import type { System } from "./system.ts"
import { untilTrue } from "./until.ts"
import type { Work } from "./work.ts"

export interface CutOff {
  readonly system: System
  readonly victim: NodeProcess
  readonly opened: ReadonlyArray<number>
  /** What keeps it busy. */
  readonly works: ReadonlyArray<Work>
  readonly promises: Promises
  /** Clients of the other nodes. */
  readonly others: ReadonlyArray<RpcSocket>
  readonly cut: () => void
  readonly heal: () => void
}

/** What happened, for people. */
export const cutOff = async ({
  cut,
  heal,
  opened,
  others,
  promises,
  system,
  victim,
  works,
}: CutOff): Promise<string> => {
  const busy = await keepNodeBusy({ system, node: victim, opened, works, clients: others, promises })
  const here = conversationsOf(busy)
  const epoch = await system.epochOf(victim)
  const start = performance.now()
  const since = () => Math.round(performance.now() - start)
  cut()
  const before = await system.database.marks(here, epoch)
  const saidSo = untilTrue("the node that is cut off says that it is ill", async () => {
    const probes = await Promise.all([victim.probe("/health"), victim.probe("/ready")])
    return probes.every((status) => status === 503)
  }).then(since)
  const at = await recoveries(system, here, { epoch, since: before, start })
  await finish(system, others[0], busy)
  const ill = await saidSo

  const world = await system.database.world()
  // fenced off meanwhile: it ends as soon as it hears of that
  victim.expectEnd()
  const healed = performance.now()
  heal()
  expect(await victim.ended, victim.stderr).toEqual({ code: 70, signal: null })
  const ended = Math.round(performance.now() - healed)
  victim.start()
  await system.settled()
  const back = Math.round(performance.now() - healed)
  const after = await system.database.world()
  expect(after.entries).toEqual(world.entries)
  expect(after.submissions).toEqual(world.submissions)
  expect(after.tasks).toEqual(world.tasks)
  const went = `its work went on after ${summary([...at.values()])}; its probes were 503 after ${ill} ms`
  return `${went}; reached again, it ended after ${ended} ms, and took part again after ${back} ms`
}
