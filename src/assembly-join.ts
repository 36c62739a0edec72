/**
 * Whether this process is to be a node among others, by the environment, and how it joins them. The cluster's code is loaded only then.
 */
import { Effect } from "effect"
import type { NodeOptions } from "./cli/ports.ts"
import { type ClusterSettings, refusedBackend } from "./domain/cluster-settings.ts"
import { postgresSettings } from "./storage/postgres/settings.ts"

/** The exit code of a process without which the cluster goes on: nothing that it still does would count. */
const lostExit = 70

const endProcess = (why: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stderr.write(`super-pi: this node is no member of the cluster any more: ${why}\n`)
    process.exit(lostExit)
  })

const backendOf = ({ SUPER_PI_STORAGE_BACKEND: backend = "" }: NodeOptions["env"]) =>
  backend.trim() === "postgres" ? "postgres" : "sqlite"

/** Joins the cluster that `cluster` describes; `guest`: see `ClusterNodeOptions`. */
export const joinCluster = (options: NodeOptions, cluster: ClusterSettings, guest: boolean) =>
  Effect.gen(function* () {
    const refused = refusedBackend(cluster, backendOf(options.env))
    if (refused !== null) return yield* refused
    const postgres = options.postgres ?? (yield* postgresSettings(options.env))
    const { openCluster } = yield* Effect.promise(() => import("./assembly-cluster.ts"))
    return yield* openCluster({ ...options, cluster, postgres, guest, onLost: endProcess })
  })
