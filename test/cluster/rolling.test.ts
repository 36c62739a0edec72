/**
 * Three nodes are restarted one after the other under load. Clients stand behind a load balancer (`support/balancer.ts` says what it may try
 * again): none of their requests fails.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { readEffects } from "../../stress/database.ts"
import { buildProgram } from "../cli/program.ts"
import { Balancer } from "./support/balancer.ts"
import { isLong, say, summary } from "./support/figures.ts"
import { answerOf, keyOf, loadScript, promptOf, thinkMs, tokenOf, turnsEach } from "./support/load.ts"
import { describeLong } from "./support/long-form.ts"
import { System } from "./support/system.ts"
import { pause, untilTrue } from "./support/until.ts"

const clients = 9
const rounds = isLong ? 4 : 1

let system: System
let balancer: Balancer | null = null

beforeAll(async () => {
  await buildProgram()
  system = await System.start({ script: (log) => loadScript(clients, log) })
}, 300_000)
afterAll(async () => {
  balancer?.stop()
  await system?.end()
}, 60_000)

describeLong("a rolling restart under load", () => {
  it("fails no request", async () => {
    const clientsOf = new Balancer(system.nodes)
    balancer = clientsOf
    const { figures } = clientsOf
    const done = Array.from({ length: clients }, () => 0)
    let going = true
    const client = async (at: number): Promise<void> => {
      for (let turn = 0; going && turn < turnsEach; turn++) {
        const key = keyOf(at, turn)
        await clientsOf.ask(`client-${at}`, promptOf(key), answerOf(key), (at + turn) % 2 === 0)
        done[at] = turn + 1
        await pause(thinkMs)
      }
    }
    const all = Promise.all(done.map((_, at) => client(at)))
    /** Until every client has got two answers more. */
    const goesOn = async (): Promise<void> => {
      const before = [...done]
      await untilTrue(
        () => `every client is answered: ${JSON.stringify(done)}; ${figures.failed.join("; ")}`,
        () => figures.failed.length > 0 || done.every((now, at) => now >= (before[at] ?? 0) + 2),
      )
    }
    await goesOn()
    for (let round = 0; round < rounds; round++) {
      for (const node of system.nodes) {
        const start = performance.now()
        const end = await node.terminate()
        expect(end, node.stderr).toEqual({ code: 0, signal: null })
        const left = Math.round(performance.now() - start)
        await goesOn()
        node.start()
        await system.settled()
        await goesOn()
        say(`${node.name} left in ${left} ms and is back; ${figures.answered} answered, ${figures.passedOn} passed on`)
        expect(figures.failed).toEqual([])
      }
    }
    going = false
    await all
    expect(figures.failed).toEqual([])
    const effects = readEffects(system.effects)
    const tokens = done.flatMap((turns, at) =>
      Array.from({ length: turns }, (_, turn) => tokenOf(keyOf(at, turn), turn)).filter((token) => token !== null),
    )
    const starts = (token: string) => effects.get(token)?.starts ?? 0
    expect(tokens.filter((token) => starts(token) > 1)).toEqual([])
    say(`${tokens.filter((token) => starts(token) === 0).length} of ${tokens.length} calls were cut off by a move`)
    expect(system.accidents()).toEqual([])
    say(`${figures.answered} requests, none failed: ${summary(figures.times)}`)
  }, 1_200_000)
})
