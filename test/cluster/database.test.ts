/**
 * PostgreSQL is restarted, and crashes, under a cluster that works: nobody ends, nothing acknowledged is lost, and work goes on.
 */
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { buildProgram } from "../cli/program.ts"
import { type PostgresServer, postgresServer } from "../support/postgres.ts"
import { brokenPromises } from "./support/busy.ts"
import { isLong, say } from "./support/figures.ts"
import { Load, loadScript } from "./support/load.ts"
import { describeLongServer } from "./support/long-form.ts"
import { System } from "./support/system.ts"
import { pause, untilTrue } from "./support/until.ts"

const conversations = 12
const rounds = isLong ? 5 : 1
/** How long the server is away in the long form, in ms; a restart at once in the short one. */
const awayMs = isLong ? [0, 500, 2_000, 4_000, 8_000] : [0]

let system: System
let server: PostgresServer
let scope: Scope.CloseableScope

beforeAll(async () => {
  await buildProgram()
  scope = await Effect.runPromise(Scope.make())
  server = await Effect.runPromise(Scope.extend(postgresServer({ durable: true }), scope))
  system = await System.start({ database: server.database, script: (log) => loadScript(conversations, log) })
}, 300_000)
afterAll(async () => {
  await system?.end()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}, 60_000)

describeLongServer("a restart of PostgreSQL under load", () => {
  it("loses nothing that was acknowledged, ends no node, and work goes on", async () => {
    const load = new Load(system, conversations)
    await load.start()
    /** Until every conversation has answered twice more. */
    const goesOn = async (): Promise<number> => {
      const start = performance.now()
      const before = [...load.done]
      await untilTrue(
        () => `every conversation goes on: ${JSON.stringify(load.done)}; ${load.faults.join("; ")}`,
        () => load.faults.length > 0 || load.done.every((now, at) => now >= (before[at] ?? 0) + 2),
      )
      return Math.round(performance.now() - start)
    }
    await goesOn()
    for (let round = 0; round < rounds; round++) {
      for (const how of ["stop", "crash"] as const) {
        await Effect.runPromise(server[how])
        await pause(awayMs[round] ?? 0)
        await Effect.runPromise(server.start)
        const took = await goesOn()
        say(`${how}, away for ${awayMs[round]} ms: two more answers everywhere after ${took} ms`)
        expect(load.faults).toEqual([])
        expect(system.accidents()).toEqual([])
      }
    }
    await load.stop()
    await system.settled()
    expect(load.faults).toEqual([])
    const works = [{ tokens: load.tokens, certain: [] }]
    expect(await brokenPromises(system, load.promises, works)).toEqual([])
    expect(system.accidents()).toEqual([])
    say(`${load.total} turns answered, ${load.repeats} calls repeated`)
  }, 1_200_000)
})
