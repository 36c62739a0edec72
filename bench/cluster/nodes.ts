/**
 * Real nodes of a cluster on loopback, on a database of their own.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { Effect, Exit, Scope } from "effect"
import { shardCount, shardOf } from "../../src/domain/cluster.ts"
import type { Script } from "../../src/models/providers/script-file.ts"
import { freePorts } from "../../test/cluster/support/ports.ts"
import { Database } from "../../test/cluster/support/postgres-world.ts"
import { NodeProcess } from "../../test/cluster/support/process.ts"
import { untilTrue } from "../../test/cluster/support/until.ts"

export interface Nodes {
  readonly nodes: ReadonlyArray<NodeProcess>
  /** Which node holds a conversation, by its place among the nodes; -1: none. */
  readonly holderOf: () => Promise<(conversation: number) => number>
  /** Until every node that runs holds shards, and all are held. */
  readonly settled: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Starts `count` of them on the empty database at `url` and waits until they share all shards. */
export const startNodes = async (url: string, count: number, script: Script): Promise<Nodes> => {
  const directory = mkdtempSync(path.join(tmpdir(), "super-pi-bench-cluster-"))
  const scriptFile = path.join(directory, "script.json")
  writeFileSync(scriptFile, JSON.stringify(script))
  const ports = await freePorts(count * 2)
  const hosts = ports.slice(count).map((port) => `127.0.0.1:${port}`)
  const scope = await Effect.runPromise(Scope.make())
  const database = await Effect.runPromise(Scope.extend(Database.open(url), scope))
  const nodes = hosts.map((host, at) => {
    const home = path.join(directory, `n${at + 1}`)
    mkdirSync(home)
    return new NodeProcess({
      name: `n${at + 1}`,
      port: ports[at] ?? 0,
      directory: home,
      log: path.join(home, "log"),
      program: path.resolve("dist/node.js"),
      args: ["--mode", "auto", "--model", "script/test"],
      through: [],
      env: {
        HOME: home,
        SUPER_PI_CONFIG_DIR: path.join(home, "config"),
        SUPER_PI_DATA_DIR: path.join(home, "data"),
        SUPER_PI_SCRIPT: scriptFile,
        SUPER_PI_STORAGE_BACKEND: "postgres",
        DATABASE_URL: url,
        SUPER_PI_CLUSTER_STRATEGY: "static",
        SUPER_PI_CLUSTER_HOSTS: hosts.join(","),
        SUPER_PI_CLUSTER_SECRET: "a secret of this bench alone",
        SUPER_PI_CLUSTER_HOST: "127.0.0.1",
        SUPER_PI_CLUSTER_PORT: host.slice(host.indexOf(":") + 1),
        SUPER_PI_NODE_NAME: `n${at + 1}@127.0.0.1`,
      },
    })
  })
  const alive = async () => (await database.roster()).filter(({ connected }) => connected)
  const settled = () =>
    untilTrue(
      () => nodes.map(({ name, stderr }) => `${name}: ${stderr.slice(-500)}`).join("\n"),
      async () => {
        const running = nodes.filter(({ runs }) => runs)
        const roster = await alive()
        return (
          roster.length === running.length &&
          roster.every(({ shards }) => shards.length > 0) &&
          new Set(roster.flatMap(({ shards }) => shards)).size === shardCount &&
          (await Promise.all(running.map((node) => node.probe("/ready")))).every((status) => status === 200)
        )
      },
      { every: 50 },
    )
  const close = async () => {
    await Promise.all(nodes.map((node) => (node.runs ? node.kill() : node.ended)))
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    for (const node of nodes) node.start()
    await settled()
  } catch (error) {
    await close()
    throw error
  }
  return {
    nodes,
    settled,
    close,
    holderOf: async () => {
      const roster = await alive()
      return (conversation) => {
        const holder = roster.find(({ shards }) => shards.includes(shardOf(conversation)))
        return nodes.findIndex(({ name }) => holder?.name === `${name}@127.0.0.1`)
      }
    },
  }
}
