/**
 * A node that is cut off from the database and from the other nodes, and comes back: the others have its work, it stops and says so, commits
 * nothing late, ends, and takes part again when it is started. Once behind proxies that swallow everything, and once in a network namespace.
 */
import { Effect, Exit, Scope } from "effect"
import { afterEach, beforeAll, describe, expect, it } from "vitest"
import { buildProgram } from "../cli/program.ts"
import { noPostgres, noPostgresServer, postgresServer } from "../support/postgres.ts"
import { BlackHole } from "./support/black-hole.ts"
import { brokenPromises, openConversations, type Promises, restingOf, submit } from "./support/busy.ts"
import { cutOff } from "./support/cut-off.ts"
import { isLong, say } from "./support/figures.ts"
import { type Cut, Network } from "./support/network.ts"
import { System } from "./support/system.ts"
import { untilTrue } from "./support/until.ts"
import { type Plan, planWork } from "./support/work.ts"

const rounds = isLong ? 4 : 1
const busyAtOnce = 12
/** The one that is cut off: the last. */
const victimAt = 2

/** Why they do not run now; null: they do. */
const short: string | null = isLong ? null : "npm run test:cluster"

const noNamespaces: string | null = (() => {
  if (short !== null) return short
  if (noPostgresServer !== null) return noPostgresServer
  const network = Network.open()
  network?.close()
  return network === null ? "network namespaces need root, and the command ip" : null
})()

beforeAll(buildProgram, 300_000)

const open: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
}, 60_000)

const planned = () => {
  let plan: Plan | null = null
  return {
    script: (log: string) => {
      plan = planWork(rounds + 1, busyAtOnce, log)
      return plan.script
    },
    plan: (): Plan => plan ?? { rounds: [], script: { rules: [] } },
  }
}

/** Cuts the last node off in each of the ways, and holds the cluster to all promises at the end. */
const isCutOff = async (
  system: System,
  plan: Plan,
  ways: ReadonlyArray<{ readonly name: string; readonly cut: () => void; readonly heal: () => void }>,
): Promise<void> => {
  const victim = system.node(victimAt)
  const promises: Promises = new Map()
  const others = await Promise.all(system.others(victim).map((node) => system.connect(node)))
  const opened = await openConversations(system, others, 120)
  const works = plan.rounds.slice(0, rounds)
  for (const [round, way] of ways.entries()) {
    const told = await cutOff({ system, victim, opened, works: works[round] ?? [], promises, others, ...way })
    say(`${way.name}: ${told}`)
  }
  // what every conversation has to say once more, wherever it is now
  const last = (plan.rounds[rounds] ?? []).filter(({ kind }) => kind === "queues")
  const asked = (await system.heldBy(victim, opened)).slice(0, last.length)
  for (const [at, work] of last.entries()) {
    if (work.followUp !== null)
      await submit(others[0] as (typeof others)[number], asked[at] ?? 0, work.followUp, promises)
  }
  await untilTrue("the node that came back answers", async () => (await restingOf(system, asked)) === asked.length)
  expect(asked.length).toBeGreaterThan(0)
  // what follows a turn without anybody waiting for it
  await untilTrue("no task is open", async () => {
    const tasks = "SELECT id FROM tasks WHERE status <> 'terminal'"
    return (await system.database.rows(tasks)).length === 0
  })
  expect(await brokenPromises(system, promises, works.flat())).toEqual([])
  expect(system.accidents()).toEqual([])
}

const describeUnless = (reason: string | null, title: string, body: () => void) =>
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (${reason})`, body)

describeUnless(short ?? noPostgres, "a node behind a network that swallows everything", () => {
  it("loses its work to the others, stops, commits nothing late, and takes part again when it is restarted", async () => {
    const { plan, script } = planned()
    const holes: Array<BlackHole> = []
    const hole = async (port: number): Promise<BlackHole> => {
      const made = await BlackHole.open({ port })
      holes.push(made)
      open.push(() => made.close())
      return made
    }
    const system = await System.start({
      script,
      route: async (at, peerPort, { url }) => {
        if (at !== victimAt) return null
        const database = new URL(url)
        database.port = String((await hole(Number(database.port || 5432))).port)
        const advertised = `127.0.0.1:${(await hole(peerPort)).port}`
        return { env: { DATABASE_URL: database.href, SUPER_PI_CLUSTER_ADVERTISE: advertised } }
      },
    })
    open.push(() => system.end())
    const way = {
      name: "black hole",
      cut: () => {
        for (const one of holes) one.cut()
      },
      heal: () => {
        for (const one of holes) one.heal()
      },
    }
    await isCutOff(
      system,
      plan(),
      Array.from({ length: rounds }, () => way),
    )
  }, 1_200_000)
})

describeUnless(short ?? noNamespaces, "a node in a network namespace of its own", () => {
  it("loses its work to the others when the link is cut, stops, commits nothing late, and takes part again when it is restarted", async () => {
    const { plan, script } = planned()
    const network = new Network()
    open.push(async () => network.close())
    const scope = await Effect.runPromise(Scope.make())
    open.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const config = [`listen_addresses=127.0.0.1,${network.host}`]
    const hba = ["host all all 127.0.0.1/32 password", `host all all ${network.guest}/32 password`]
    const server = await Effect.runPromise(Scope.extend(postgresServer({ config, hba }), scope))
    const system = await System.start({
      script,
      database: server.database,
      route: async (at, peerPort, { url }) => {
        const address = at === victimAt ? network.guest : network.host
        const env = { SUPER_PI_CLUSTER_HOST: address, SUPER_PI_CLUSTER_ADVERTISE: `${address}:${peerPort}` }
        if (at !== victimAt) return { env }
        const database = new URL(url)
        database.hostname = network.host
        return { env: { ...env, DATABASE_URL: database.href }, through: network.through }
      },
    })
    open.push(() => system.end())
    const way = (how: Cut) => ({ name: `link ${how}`, cut: () => network.cut(how), heal: () => network.heal(how) })
    const ways: ReadonlyArray<Cut> = Array.from({ length: rounds }, (_, round) => (round % 2 === 0 ? "silent" : "down"))
    await isCutOff(system, plan(), ways.map(way))
  }, 1_200_000)
})
