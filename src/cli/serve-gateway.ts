/**
 * The gateway of a node, as `super-pi gateway` and `super-pi node` serve it.
 */
import { Effect, type Scope } from "effect"
import type { GatewaySettings } from "../domain/gateway-settings.ts"
import { envValue } from "../models/settings.ts"
import type { Observer } from "../observability/observer.ts"
import type { Gateway, GatewayRefused } from "../protocols/gateway.ts"
import type { GatewayLog } from "../protocols/http/log.ts"
import type { ListenFailed } from "../protocols/socket/listen.ts"
import { mcpNodeOf, mcpServiceOf } from "./mcp-service.ts"
import { openNode } from "./node.ts"
import { version } from "./package.ts"
import type { NodeOptions, OpenedNode, OpenFailure } from "./ports.ts"
import { protocolServiceOf } from "./protocol-service.ts"
import { modelSettings } from "./settings.ts"

export interface ServeOptions {
  readonly port: number
  readonly host: string | undefined
  readonly settings: GatewaySettings
  readonly log: GatewayLog
  /** How long running requests may go on once it stops, in ms. Default: as the settings say. */
  readonly drainMs?: () => number
}

/** Opens a node whose doings are counted; the counts are served by {@link serveNode}. */
export const openCounted = (options: NodeOptions) =>
  Effect.gen(function* () {
    const { makeMetrics } = yield* Effect.promise(() => import("../observability/metrics.ts"))
    const metrics = makeMetrics({ version: version(), prices: modelSettings(options.settings).prices ?? {} })
    const node: OpenedNode = yield* openNode({ ...options, observer: metrics.observer satisfies Observer })
    return { node, metrics }
  })

/** Serves a node over HTTP until the scope closes. */
export const serveNode = (
  { metrics, node }: Effect.Effect.Success<ReturnType<typeof openCounted>>,
  options: NodeOptions,
  { drainMs, host, log, port, settings }: ServeOptions,
): Effect.Effect<Gateway, GatewayRefused | ListenFailed | OpenFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const [{ serveGateway }, { mcpRoutes }] = yield* Effect.promise(() =>
      Promise.all([import("../protocols/gateway.ts"), import("../protocols/mcp/server/http.ts")]),
    )
    const service = yield* protocolServiceOf(node.sessions, options, "programs")
    const mcp = yield* mcpRoutes({ ...options.settings.mcp, ...(yield* mcpServiceOf(service, mcpNodeOf(options))) })
    return yield* serveGateway(service, {
      port,
      host: host ?? envValue(options.env, "SUPER_PI_GATEWAY_BIND"),
      settings,
      metrics,
      tokens: options.env.SUPER_PI_GATEWAY_TOKEN,
      log,
      groups: [mcp],
      cluster: node.cluster,
      ...(drainMs === undefined ? {} : { drainMs }),
    })
  })
