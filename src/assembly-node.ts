/**
 * A node that serves others for long, for `super-pi node` and `super-pi gateway`: the sessions of a database with what the node says of
 * itself. A node without a cluster strategy is a cluster of one.
 */
import { homedir, hostname } from "node:os"
import { Clock, Effect } from "effect"
import { openSessions } from "./assembly.ts"
import { joinCluster } from "./assembly-join.ts"
import { openReader } from "./cli/node.ts"
import { version } from "./cli/package.ts"
import { resolvePaths } from "./cli/paths.ts"
import type { NodeOptions, OpenNode } from "./cli/ports.ts"
import { type ClusterSettings, clusterSettings } from "./domain/cluster-settings.ts"
import { ServiceFailure } from "./domain/failure.ts"
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

/** See {@link OpenNode}. Fails with the first variable that is wrong. */
export const openNode: OpenNode = (options) =>
  Effect.flatMap(clusterSettings(options.env), (settings) =>
    settings.discovery.strategy === "none" ? alone(options, settings) : joinCluster(options, settings, false),
  )
