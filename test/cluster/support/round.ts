/**
 * What every trial of a node has in common: it is kept busy, and after what happened to it all of its work comes to an end.
 */
import { expect } from "vitest"
import { answerQuestions, type Busy, keepAllBusy, type Promises, restingOf } from "./busy.ts"
import type { NodeProcess } from "./process.ts"
import type { RpcSocket } from "./rpc-socket.ts"
import type { System } from "./system.ts"
import { untilTrue } from "./until.ts"
import type { Work } from "./work.ts"

/** Gives each of `works` to a conversation of `node`, and waits until all of them are at it. */
export const keepNodeBusy = async (options: {
  readonly system: System
  readonly node: NodeProcess
  /** Those to choose from, whoever holds them. */
  readonly opened: ReadonlyArray<number>
  readonly works: ReadonlyArray<Work>
  readonly clients: ReadonlyArray<RpcSocket>
  readonly promises: Promises
}): Promise<ReadonlyArray<Busy>> => {
  const { clients, node, opened, promises, system, works } = options
  const here = (await system.heldBy(node, opened)).slice(0, works.length)
  expect(here).toHaveLength(works.length)
  const busy = works.map((work, at): Busy => ({ work, conversation: here[at] ?? 0 }))
  await keepAllBusy(system, clients, busy, promises)
  return busy
}

export const conversationsOf = (busy: ReadonlyArray<Busy>): ReadonlyArray<number> =>
  busy.map(({ conversation }) => conversation)

/** Answers what is asked, through any node, and waits until everything is answered and nothing is open any more. */
export const finish = async (
  system: System,
  client: RpcSocket | undefined,
  busy: ReadonlyArray<Busy>,
): Promise<void> => {
  if (client === undefined) throw new Error("finish: expected a client of a node, got none")
  await answerQuestions(client, conversationsOf(busy.filter(({ work }) => work.kind === "asks")))
  const here = conversationsOf(busy)
  await untilTrue("everything is answered", async () => (await restingOf(system, here)) === here.length, { every: 100 })
  // what follows a run has its end a little later
  await untilTrue("nothing is open any more", async () => {
    const { tasks } = await system.database.world()
    return tasks.every(({ status }) => status === "terminal")
  })
}
