/**
 * `GET /metrics` on the gateway, with the same authentication as the API. Asks the node for what it knows; where it does not answer in time, the
 * rest is told without.
 */
import { Effect } from "effect"
import type { Metrics } from "../../observability/metrics.ts"
import type { NodeFacts } from "../../observability/node-gauges.ts"
import type { HttpReply, Problem, RouteGroup } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"

/** How long the node may take, in ms. */
const factsLimit = 2_000

const problem = ({ code, message, status }: Problem): HttpReply => ({
  type: "text",
  status,
  body: `${code}: ${message}\n`,
})

const factsOf = ({ sessions }: Pick<ProtocolService, "sessions">): Effect.Effect<NodeFacts | null> =>
  Effect.all({ queues: sessions.queues, tree: sessions.tree }).pipe(
    Effect.timeout(factsLimit),
    Effect.catchAll(() => Effect.succeed(null)),
  )

export const metricsRoutes = (service: Pick<ProtocolService, "sessions">, metrics: Metrics): RouteGroup => ({
  name: "metrics",
  prefixes: ["/metrics"],
  routes: [
    {
      method: "GET",
      path: "/metrics",
      handle: () =>
        Effect.map(
          Effect.flatMap(factsOf(service), (facts) => Effect.promise(() => metrics.render(facts))),
          (body): HttpReply => ({ type: "text", body, contentType: metrics.contentType }),
        ),
    },
  ],
  problem,
})
