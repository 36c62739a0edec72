/**
 * `GET /metrics` on the gateway, with the same authentication as the API. Asks the node for what it knows; where it does not answer in time, the
 * rest is told without.
 */
import { Effect, Option } from "effect"
import type { ClusterService } from "../../actors/cluster.ts"
import type { Metrics } from "../../observability/metrics.ts"
import type { NodeFacts } from "../../observability/node-gauges.ts"
import type { HttpReply, Problem, RouteGroup } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"

/** How long the node may take, in ms. */
const factsLimit = 2_000
/** How long it may take to say how its cluster is, in ms; the rest is told without. */
const clusterLimit = 1_500

const problem = ({ code, message, status }: Problem): HttpReply => ({
  type: "text",
  status,
  body: `${code}: ${message}\n`,
})

const factsOf = (
  { sessions }: Pick<ProtocolService, "sessions">,
  cluster: ClusterService | null,
): Effect.Effect<NodeFacts | null> =>
  Effect.all({
    queues: sessions.queues,
    tree: sessions.tree,
    cluster: Effect.map(Effect.timeoutOption(cluster?.status ?? Effect.succeed(null), clusterLimit), Option.getOrNull),
  }).pipe(
    Effect.timeout(factsLimit),
    Effect.catchAll(() => Effect.succeed(null)),
  )

export const metricsRoutes = (
  service: Pick<ProtocolService, "sessions">,
  metrics: Metrics,
  cluster: ClusterService | null = null,
): RouteGroup => ({
  name: "metrics",
  prefixes: ["/metrics"],
  routes: [
    {
      method: "GET",
      path: "/metrics",
      handle: () =>
        Effect.map(
          Effect.flatMap(factsOf(service, cluster), (facts) => Effect.promise(() => metrics.render(facts))),
          (body): HttpReply => ({ type: "text", body, contentType: metrics.contentType }),
        ),
    },
  ],
  problem,
})
