/**
 * `GET /`, `GET /health` and `GET /ready`: open to everybody, so they say nothing about anybody. Healthy: work is moving. Ready: it is, and this
 * node takes more of it.
 */
import { Clock, Effect } from "effect"
import type { ClusterService } from "../../actors/cluster.ts"
import type { NodeHealth } from "../../domain/cluster.ts"
import type { ProtocolService } from "../service.ts"
import { sharedHealth } from "./health.ts"
import { plainProblem } from "./problems.ts"
import type { Handler, HttpReply, RouteGroup } from "./route.ts"

/** One word for a probe. */
const wordOf = ({ draining, healthy, ready }: NodeHealth): string => {
  if (!healthy) return "unhealthy"
  if (ready) return "ready"
  return draining ? "draining" : "not_ready"
}

/** `routes` are those of the whole server, for whoever asks what there is. */
export const statusRoutes = (
  service: Pick<ProtocolService, "sessions" | "version">,
  routes: () => ReadonlyArray<string>,
  cluster: ClusterService | null = null,
): RouteGroup => {
  let startedAt: number | null = null
  const health = sharedHealth(service.sessions, cluster)

  const uptime = Effect.map(Clock.currentTimeMillis, (now) => {
    startedAt ??= now
    return Math.floor((now - startedAt) / 1000)
  })

  const reply = (ok: boolean, status: string, { faults, ...node }: NodeHealth): Effect.Effect<HttpReply> =>
    Effect.map(uptime, (seconds) => ({
      type: "json",
      status: ok ? 200 : 503,
      body: {
        status,
        version: service.version,
        uptime_seconds: seconds,
        database: node.database,
        event_loop_lag_ms: node.eventLoopLagMs,
        oldest_unserved_ms: node.oldestUnservedMs,
        draining: node.draining,
        faults,
      },
      headers: ok ? {} : { "retry-after": "1" },
    }))

  const handleHealth: Handler = () =>
    Effect.flatMap(health, (node) => reply(node.healthy, node.healthy ? "ok" : "unhealthy", node))

  const handleReady: Handler = () => Effect.flatMap(health, (node) => reply(node.ready, wordOf(node), node))

  const handleRoot: Handler = () =>
    Effect.map(uptime, (seconds) => ({
      type: "json" as const,
      body: { name: "super-pi", status: "ok", version: service.version, uptime_seconds: seconds, routes: routes() },
    }))

  return {
    name: "status",
    prefixes: ["/", "/health", "/ready"],
    routes: [
      { method: "GET", path: "/", open: true, handle: handleRoot },
      { method: "GET", path: "/health", open: true, handle: handleHealth },
      { method: "GET", path: "/ready", open: true, handle: handleReady },
    ],
    problem: plainProblem,
  }
}
