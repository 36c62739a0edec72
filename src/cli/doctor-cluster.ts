/**
 * The check of how this machine's node would take part in a cluster.
 */
import { Either } from "effect"
import { clusterSettings, refusedBackend } from "../domain/cluster-settings.ts"
import type { Env } from "../models/settings.ts"
import { type Check, fail, ok } from "./check.ts"

/** `backend`: where the conversations are. */
export const checkCluster = (env: Env, backend: "sqlite" | "postgres"): Check => {
  const settings = clusterSettings(env)
  if (Either.isLeft(settings))
    return fail("cluster", settings.left.message, "no node starts with that; see docs/cluster.md")
  const { discovery, tls } = settings.right
  const refused = refusedBackend(settings.right, backend)
  if (refused !== null) return fail("cluster", refused.message, "no node starts with that; see docs/cluster.md")
  if (discovery.strategy === "none") return ok("cluster", `strategy none on ${backend}: a node is alone`)
  return ok(
    "cluster",
    `strategy ${discovery.strategy} on ${backend}, ${tls === null ? "without TLS" : "over TLS"} between nodes`,
  )
}
