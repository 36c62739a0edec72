/**
 * A node that serves others for long, for `super-pi node` and `super-pi gateway`: the sessions of a database with what the node says of
 * itself. A node without a cluster strategy is a cluster of one.
 */
import { homedir, hostname } from "node:os"
import { Clock, Effect } from "effect"
import { openSessions } from "./assembly.ts"
import { openReader } from "./cli/node.ts"
import { version } from "./cli/package.ts"
import { resolvePaths } from "./cli/paths.ts"
import type { NodeOptions, OpenNode } from "./cli/ports.ts"
import { type ClusterSettings, clusterSettings, refusedBackend } from "./domain/cluster-settings.ts"
import { ServiceFailure } from "./domain/failure.ts"
import { postgresSettings } from "./storage/postgres/settings.ts"
import { readOwner } from "./storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "./storage/sqlite/paths.ts"
import { makeAlone } from "./supervisors/alone.ts"

/** Whether this process has the database, and is not attached to another one that has; on a server nobody is attached. */
const owns = ({ db, postgres }: NodeOptions) =>
  postgres === undefined ? () => readOwner(canonicalPathOf(db))?.pid === process.pid : () => true

const gone = (detail: string) => new ServiceFailure({ code: "storage", detail, reference: "open" })

/** Reads the database that the node has just opened. */
const readsOf = (options: NodeOptions) =>
  Effect.gen(function* () {
    const { cwd, db, env, postgres } = options
    if (postgres !== undefined) {
      const { makePostgresReader } = yield* Effect.promise(() => import("./storage/postgres/store.ts"))
      return yield* makePostgresReader({ settings: postgres })
    }
    const paths = resolvePaths({ cwd, env, home: homedir(), platform: process.platform }, { db })
    const reads = yield* Effect.mapError(openReader(paths), (error) => ("_tag" in error ? error : gone(error.message)))
    return reads ?? (yield* gone(`there is no database at ${db}`))
  })

const alone = (options: NodeOptions, { drainMs, name }: ClusterSettings) =>
  Effect.gen(function* () {
    const startedAt = yield* Clock.currentTimeMillis
    const sessions = yield* openSessions(options)
    return makeAlone({
      sessions,
      reads: yield* readsOf(options),
      name: name ?? `${hostname()}-${process.pid}`,
      version: version(),
      startedAt,
      drainMs,
      owns: owns(options),
    })
  })

/** What ends the process when the cluster goes on without this node: nothing that it still does would count. */
const lostExit = 70

const endProcess = (why: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stderr.write(`super-pi: this node is no member of the cluster any more: ${why}\n`)
    process.exit(lostExit)
  })

const clustered = (options: NodeOptions, cluster: ClusterSettings) =>
  Effect.gen(function* () {
    const refused = refusedBackend(cluster, backendOf(options.env))
    if (refused !== null) return yield* refused
    const postgres = yield* postgresSettings(options.env)
    const { openCluster } = yield* Effect.promise(() => import("./assembly-cluster.ts"))
    return yield* openCluster({ ...options, cluster, postgres, onLost: endProcess })
  })

const backendOf = ({ SUPER_PI_STORAGE_BACKEND: backend = "" }: NodeOptions["env"]) =>
  backend.trim() === "postgres" ? "postgres" : "sqlite"

/** See {@link OpenNode}. Fails with the first variable that is wrong. */
export const openNode: OpenNode = (options) =>
  Effect.flatMap(clusterSettings(options.env), (settings) =>
    settings.discovery.strategy === "none" ? alone(options, settings) : clustered(options, settings),
  )
