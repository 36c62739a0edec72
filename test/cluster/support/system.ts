/**
 * A cluster of real processes on loopback with a database of their own. Whatever a test does, all of them have ended, by their process, when
 * `end` answers.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { shardCount, shardOf } from "../../../src/domain/cluster.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import { postgresDatabase, type TestDatabase } from "../../support/postgres.ts"
import { freePorts } from "./ports.ts"
import { Database } from "./postgres-world.ts"
import { NodeProcess } from "./process.ts"
import { RpcSocket } from "./rpc-socket.ts"
import { untilTrue } from "./until.ts"

/** How one node is connected; without one, directly and on loopback. */
export interface NodeRoute {
  readonly env: Readonly<Record<string, string>>
  readonly through?: ReadonlyArray<string>
}

export interface SystemOptions {
  readonly nodes?: number
  /** What the model `script/test` answers; `log` is the file that unsafe calls write to. */
  readonly script: (log: string) => Script
  readonly env?: Readonly<Record<string, string>>
  /** Where the database comes from; default the server of this run. */
  readonly database?: Effect.Effect<TestDatabase, never, Scope.Scope>
  /** Of the node `at` (from 0); `peerPort` is where it would listen for the others. */
  readonly route?: (at: number, peerPort: number, database: TestDatabase) => Promise<NodeRoute | null>
}

export class System {
  readonly directory: string
  /** Workspace of every conversation. */
  readonly workspace: string
  /** File that unsafe calls append to. */
  readonly effects: string
  readonly nodes: ReadonlyArray<NodeProcess>
  readonly database: Database
  readonly #scope: Scope.CloseableScope
  readonly #sockets = new Set<RpcSocket>()

  private constructor(
    parts: Pick<System, "database" | "directory" | "effects" | "nodes" | "workspace">,
    scope: Scope.CloseableScope,
  ) {
    this.directory = parts.directory
    this.workspace = parts.workspace
    this.effects = parts.effects
    this.nodes = parts.nodes
    this.database = parts.database
    this.#scope = scope
  }

  /** Starts all nodes at once and waits until they share all shards. */
  static async start(options: SystemOptions): Promise<System> {
    const { database = postgresDatabase, env = {}, nodes = 3, route, script } = options
    const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-cluster-")))
    const workspace = join(directory, "workspace")
    mkdirSync(workspace)
    writeFileSync(join(workspace, "notes.txt"), "one line of notes\n")
    const effects = join(workspace, "effects.log")
    const scriptFile = join(directory, "script.json")
    writeFileSync(scriptFile, JSON.stringify(script(effects)))
    const scope = await Effect.runPromise(Scope.make())
    const within = <A>(effect: Effect.Effect<A, never, Scope.Scope>) => Effect.runPromise(Scope.extend(effect, scope))
    const made = await within(database)
    const ports = await freePorts(nodes * 2)
    const hosts = ports.slice(nodes).map((port) => `127.0.0.1:${port}`)
    const routes = await Promise.all(ports.slice(nodes).map((port, at) => route?.(at, port, made) ?? null))
    const processes = hosts.map((host, at) => {
      const name = `n${at + 1}`
      const home = join(directory, name)
      mkdirSync(home)
      return new NodeProcess({
        name,
        port: ports[at] ?? 0,
        directory: workspace,
        log: join(directory, `${name}.log`),
        args: ["--mode", "auto", "--model", "script/test"],
        env: {
          HOME: home,
          SUPER_PI_CONFIG_DIR: join(home, "config"),
          SUPER_PI_DATA_DIR: join(home, "data"),
          SUPER_PI_SCRIPT: scriptFile,
          ...made.env,
          SUPER_PI_CLUSTER_STRATEGY: "static",
          SUPER_PI_CLUSTER_HOSTS: hosts.join(","),
          SUPER_PI_CLUSTER_SECRET: "a secret of this test alone",
          SUPER_PI_CLUSTER_HOST: "127.0.0.1",
          SUPER_PI_CLUSTER_PORT: host.slice(host.indexOf(":") + 1),
          SUPER_PI_NODE_NAME: `${name}@127.0.0.1`,
          ...env,
          ...routes[at]?.env,
        },
        through: routes[at]?.through ?? [],
      })
    })
    const system = new System(
      { directory, workspace, effects, nodes: processes, database: await within(Database.open(made.url)) },
      scope,
    )
    try {
      for (const node of processes) node.start()
      await system.settled()
      return system
    } catch (error) {
      await system.end()
      throw error
    }
  }

  node(at: number): NodeProcess {
    const found = this.nodes[at % this.nodes.length]
    if (found === undefined) throw new Error("a cluster has nodes")
    return found
  }

  others(node: NodeProcess): ReadonlyArray<NodeProcess> {
    return this.nodes.filter((other) => other !== node)
  }

  /** The epoch of the present life of a node, as it registered. */
  async epochOf(node: NodeProcess): Promise<number> {
    const epochs = (await this.database.roster())
      .filter(({ name }) => name === `${node.name}@127.0.0.1`)
      .map(({ epoch }) => epoch)
    return Math.max(...epochs)
  }

  /** Waits until every node that runs is ready and holds shards, and every shard is held. */
  async settled(): Promise<void> {
    let seen = ""
    await untilTrue(
      () => `${seen}\n${this.nodes.map(({ name, stderr }) => `${name}: ${stderr.slice(-1_500)}`).join("\n")}`,
      async () => {
        const running = this.nodes.filter(({ runs }) => runs)
        const ready = await Promise.all(running.map((node) => node.probe("/ready")))
        const roster = (await this.database.roster()).filter(({ connected }) => connected)
        seen = `ready ${ready.join(", ")}; ${roster.map((node) => `${node.name} holds ${node.shards.length}`).join(", ")}`
        return (
          running.length > 0 &&
          ready.every((status) => status === 200) &&
          roster.length === running.length &&
          roster.every(({ shards }) => shards.length > 0) &&
          new Set(roster.flatMap(({ shards }) => shards)).size === shardCount
        )
      },
      { every: 100 },
    )
  }

  /** Those of the conversations whose shard a node holds. */
  async heldBy(node: NodeProcess, conversations: ReadonlyArray<number>): Promise<ReadonlyArray<number>> {
    const epoch = await this.epochOf(node)
    const shards = new Set((await this.database.roster()).find((one) => one.epoch === epoch)?.shards ?? [])
    return conversations.filter((id) => shards.has(shardOf(id)))
  }

  async connect(node: NodeProcess): Promise<RpcSocket> {
    const socket = await RpcSocket.connect(node.url)
    this.#sockets.add(socket)
    return socket
  }

  /** Lives of nodes that ended without the test's doing. */
  accidents(): ReadonlyArray<string> {
    return this.nodes.flatMap(({ accidents }) => accidents)
  }

  /** Ends every process and removes every file. */
  async end(): Promise<void> {
    for (const socket of this.#sockets) socket.close()
    await Promise.all(this.nodes.map((node) => (node.runs ? node.kill() : node.ended)))
    await Effect.runPromise(Scope.close(this.#scope, Exit.void))
    if (process.env.SUPER_PI_TEST_KEEP === undefined) {
      rmSync(this.directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
    }
  }
}
