/**
 * The gateway: every protocol that is spoken over HTTP on one server. A protocol adds one line to `protocolsOf`; its code is loaded when a
 * gateway starts.
 */
import { Effect, Either, Schema, type Scope } from "effect"
import type { ClusterService } from "../actors/cluster.ts"
import type { GatewaySettings } from "../domain/gateway-settings.ts"
import type { Metrics } from "../observability/metrics.ts"
import { type Authenticator, authenticatorOf } from "./auth/tokens.ts"
import { type HttpLimits, limitsOf } from "./http/limits.ts"
import { type GatewayLog, silentLog } from "./http/log.ts"
import { isLoopback } from "./http/origin.ts"
import type { RouteGroup } from "./http/route.ts"
import { type HttpServer, serveHttp } from "./http/server.ts"
import { statusRoutes } from "./http/status.ts"
import type { ProtocolService } from "./service.ts"
import type { ListenFailed } from "./socket/listen.ts"

/** What every route group of the gateway is given besides the service. */
export interface GatewayGroupOptions {
  readonly log: GatewayLog
  /** For protocols that ask for a token by themselves, on upgraded connections. */
  readonly auth: Authenticator
  readonly limits: HttpLimits
}

export interface GatewayOptions {
  /** 0 takes a free one. */
  readonly port: number
  /** Comes before the settings' and the default, 127.0.0.1. */
  readonly host?: string | undefined
  readonly settings?: GatewaySettings
  /** `SUPER_PI_GATEWAY_TOKEN`: takes the place of the settings' tokens. */
  readonly tokens?: string | undefined
  readonly log?: GatewayLog
  /** Served at `GET /metrics`, and told of every request. Default none. */
  readonly metrics?: Metrics
  /** What the node says of itself among others: `GET /cluster`, and what probes and metrics are told. Default: nothing but that it answers. */
  readonly cluster?: ClusterService
  /** How long running requests may go on once it stops, in ms, asked for then. Default: as the settings say. */
  readonly drainMs?: () => number
  /** Further route groups of an application. */
  readonly groups?: ReadonlyArray<RouteGroup>
}

/** A gateway that may not start as it is configured; one line that says what to do. */
export class GatewayRefused extends Schema.TaggedError<GatewayRefused>()("GatewayRefused", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

export interface Gateway extends HttpServer {
  /** `GET /health` and so on, for whoever starts it. */
  readonly routes: ReadonlyArray<string>
  /** Whether callers need a token. */
  readonly tokens: boolean
}

/** The protocols, one line each; their code is loaded here and nowhere before. */
const protocolsOf = (
  service: ProtocolService,
  options: GatewayGroupOptions,
): Effect.Effect<ReadonlyArray<RouteGroup>, never, Scope.Scope> =>
  Effect.all([
    Effect.flatMap(load(import("./jsonrpc/websocket.ts")), ({ rpcRoutes }) => rpcRoutes(service, options)),
    Effect.map(load(import("./openai/routes.ts")), ({ openaiRoutes }) => openaiRoutes(service, options)),
    Effect.map(load(import("./agui/routes.ts")), ({ aguiRoutes }) => aguiRoutes(service)),
  ])

const metricsOf = (
  service: ProtocolService,
  { cluster, metrics }: GatewayOptions,
): Effect.Effect<ReadonlyArray<RouteGroup>> =>
  metrics === undefined
    ? Effect.succeed([])
    : Effect.map(load(import("./metrics/routes.ts")), ({ metricsRoutes }) => [
        metricsRoutes(service, metrics, cluster ?? null),
      ])

const clusterOf = (cluster: ClusterService | undefined): Effect.Effect<ReadonlyArray<RouteGroup>> =>
  cluster === undefined
    ? Effect.succeed([])
    : Effect.map(load(import("./cluster/routes.ts")), ({ clusterRoutes }) => [clusterRoutes(cluster)])

const load = <M>(module: Promise<M>): Effect.Effect<M> => Effect.promise(() => module)

const described = (groups: ReadonlyArray<RouteGroup>): ReadonlyArray<string> =>
  groups.flatMap(({ routes, upgrades = [] }) => [
    ...routes.map(({ method, path }) => `${method} ${path}`),
    ...upgrades.map(({ path }) => `WebSocket ${path}`),
  ])

/** Serves until the scope closes; then it drains. Completes once it listens. */
export const serveGateway = (
  service: ProtocolService,
  options: GatewayOptions,
): Effect.Effect<Gateway, GatewayRefused | ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { log = silentLog, settings = {} } = options
    const auth = yield* Either.mapLeft(
      authenticatorOf(settings, options.tokens),
      (detail) => new GatewayRefused({ detail }),
    )
    const host = options.host ?? settings.host ?? "127.0.0.1"
    if (!auth.required && !isLoopback(host)) {
      const detail = `host: expected a loopback address while no token is configured, got ${JSON.stringify(host)}; set SUPER_PI_GATEWAY_TOKEN or gateway.tokens`
      return yield* new GatewayRefused({ detail })
    }
    const limits = limitsOf(settings)
    let routes: ReadonlyArray<string> = []
    const groups = [
      statusRoutes(service, () => routes, options.cluster ?? null),
      ...(yield* clusterOf(options.cluster)),
      ...(yield* protocolsOf(service, { log, auth, limits })),
      ...(yield* metricsOf(service, options)),
      ...(options.groups ?? []),
    ]
    routes = described(groups)
    const server = yield* serveHttp({
      groups,
      auth,
      log,
      port: options.port,
      // The name may stand for another address in a hosts file.
      host: host === "localhost" ? "127.0.0.1" : host,
      limits,
      ...(options.drainMs === undefined ? {} : { drainMs: options.drainMs }),
      allowedOrigins: settings.allowedOrigins ?? [],
      allowedHosts: settings.allowedHosts ?? [],
      observer: options.metrics?.observer ?? null,
    })
    return { ...server, routes, tokens: auth.required }
  })
