/**
 * `GET /cluster`: members, shards and what waits, as this node sees them. Names and addresses of nodes are for who may use the API, so it asks for
 * the same token.
 */
import { Effect } from "effect"
import type { ClusterService } from "../../actors/cluster.ts"
import { plainProblem } from "../http/problems.ts"
import type { HttpReply, Problem, RouteGroup } from "../http/route.ts"
import { clusterView } from "./view.ts"

/** How long the node may take, in ms. */
const statusLimit = 5_000

const late: Problem = {
  status: 503,
  code: "busy",
  message: `the node did not say within ${statusLimit} ms how its cluster is`,
  retryAfterMs: 1_000,
}

export const clusterRoutes = (cluster: ClusterService): RouteGroup => ({
  name: "cluster",
  prefixes: ["/cluster"],
  routes: [
    {
      method: "GET",
      path: "/cluster",
      handle: () =>
        cluster.status.pipe(
          Effect.timeoutFail({ duration: statusLimit, onTimeout: () => late }),
          Effect.map((status): HttpReply => ({ type: "json", body: clusterView(status) })),
        ),
    },
  ],
  problem: plainProblem,
})
