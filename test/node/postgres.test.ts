/**
 * Nodes as services on one PostgreSQL: alone and as members of a cluster, seen through their gateways and from beside them.
 */
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "../cli/program.ts"
import { describePostgres, postgresDatabase } from "../support/postgres.ts"

let bench: Bench
const scope = Effect.runSync(Scope.make())
beforeAll(async () => {
  await buildProgram()
  bench = makeBench()
}, 120_000)
afterAll(async () => {
  bench.remove()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const database = () => Effect.runPromise(Scope.extend(postgresDatabase, scope))

const started = async (env: Record<string, string>) => {
  const running = bench.start(["node", "--port", "0", "--model", "mock/echo"], { env })
  let said = ""
  running.child.stderr?.on("data", (chunk: string) => {
    said += chunk
  })
  await running.until(/serving on http:\/\/\S+[\s\S]*joined as/, "stderr")
  return { running, url: /http:\/\/[\d.]+:\d+/.exec(said)?.[0] ?? "" }
}

interface View {
  readonly strategy: string
  readonly members: ReadonlyArray<{ readonly name: string; readonly state: string; readonly shards: number }>
  readonly shards: { readonly held: number; readonly unheld: number }
}

/** Asks until it is so, and gives the answer. */
const becomes = async (ask: () => Promise<View>, holds: (view: View) => boolean): Promise<View> => {
  for (;;) {
    const view = await ask()
    if (holds(view)) return view
    await new Promise((next) => setTimeout(next, 50))
  }
}

const cluster = async (url: string): Promise<View> => JSON.parse(await (await fetch(`${url}/cluster`)).text())
const names = ({ members }: View) => members.map(({ name }) => name).sort()

describePostgres("nodes as services on PostgreSQL", () => {
  it("alone: it holds everything, and is seen from beside it", async () => {
    const { env } = await database()
    const none = await bench.run(["cluster"], { env })
    expect(none.code).toBe(1)
    const node = await started({ ...env, SUPER_PI_NODE_NAME: "super_pi@alone" })
    expect((await fetch(`${node.url}/ready`)).status).toBe(200)
    expect(await cluster(node.url)).toMatchObject({ strategy: "none", members: [{ shards: 256 }] })
    const beside = await bench.run(["cluster", "--json"], { env })
    expect(JSON.parse(beside.stdout)).toMatchObject({
      strategy: "none",
      members: [{ shards: 256 }],
      shards: { held: 256 },
    })
    node.running.child.kill("SIGTERM")
    expect((await node.running.ended).code).toBe(0)
    const after = await bench.run(["cluster"], { env })
    expect(`${after.code} ${after.stderr}`).toMatch(/^1 super-pi: no node is running on postgresql:/)
  }, 90_000)

  it("two of them: each sees both, the table as well, and the shards of one that leaves are held by the other", async () => {
    const { env } = await database()
    const member = (name: string) => ({
      ...env,
      SUPER_PI_CLUSTER_STRATEGY: "static",
      SUPER_PI_CLUSTER_HOSTS: "127.0.0.1",
      SUPER_PI_CLUSTER_HOST: "127.0.0.1",
      SUPER_PI_CLUSTER_PORT: "0",
      SUPER_PI_CLUSTER_SECRET: "0123456789abcdef0123",
      SUPER_PI_NODE_NAME: name,
    })
    const first = await started(member("first@127.0.0.1"))
    const second = await started(member("second@127.0.0.1"))
    const both = (view: View) =>
      view.members.length === 2 &&
      view.members.every(({ shards, state }) => state === "up" && shards > 0) &&
      view.shards.unheld === 0
    for (const { url } of [first, second]) {
      expect(names(await becomes(() => cluster(url), both))).toEqual(["first@127.0.0.1", "second@127.0.0.1"])
      expect((await fetch(`${url}/ready`)).status).toBe(200)
    }
    const beside = await bench.run(["cluster"], { env })
    expect(beside.stdout).toMatch(/^first@127\.0\.0\.1 +up +\d+ /m)
    expect(beside.stdout).toMatch(/^second@127\.0\.0\.1 +up +\d+ /m)
    expect(beside.stdout).toContain("256 of 256 shards are held")
    first.running.child.kill("SIGTERM")
    expect((await first.running.ended).code).toBe(0)
    const left = await becomes(
      () => cluster(second.url),
      (view) => view.members.length === 1 && view.members[0]?.shards === 256,
    )
    expect(names(left)).toEqual(["second@127.0.0.1"])
    await second.running.until(/member first@127\.0\.0\.1: gone/, "stderr")
    second.running.child.kill("SIGTERM")
    expect((await second.running.ended).code).toBe(0)
  }, 90_000)
})
