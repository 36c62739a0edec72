/**
 * The HTTP gateway inside an application: `Gateway.layer` serves the conversations of the node that it is built over, until it is released,
 * in every protocol that `super-pi gateway` speaks.
 */
import { Context, Effect, Layer, Option } from "effect"
import { Cluster } from "./actors/cluster.ts"
import { Sessions } from "./actors/sessions.ts"
import { mcpServiceOf } from "./cli/mcp-service.ts"
import { version } from "./cli/package.ts"
import type { McpServeSettings } from "./domain/mcp-serve-settings.ts"
import { Models } from "./models/model.ts"
import type { GatewayOptions, GatewayRefused, Gateway as RunningGateway } from "./protocols/gateway.ts"
import { callerRules, type RemoteRules } from "./protocols/remote.ts"
import type { ListenFailed } from "./protocols/socket/listen.ts"

export interface GatewayLayerOptions extends GatewayOptions {
  /** How far callers may choose modes. Default: up to `accept-edits`. */
  readonly remote?: RemoteRules
  /** The MCP server: its harness, its sessions; see docs/mcp-server.md. */
  readonly mcp?: McpServeSettings
}

export class Gateway extends Context.Tag("super-pi/Gateway")<Gateway, RunningGateway>() {
  /**
   * Listens when it is built. Released, it drains: what runs may end within `settings.drainSeconds`. Nothing is read from the environment:
   * tokens and settings are those of the options. A `Cluster` among the services is what probes and metrics are told.
   */
  static layer(options: GatewayLayerOptions): Layer.Layer<Gateway, GatewayRefused | ListenFailed, Sessions | Models> {
    return Layer.scoped(
      Gateway,
      Effect.gen(function* () {
        const { groups = [], mcp, remote = callerRules(undefined), ...rest } = options
        const sessions = yield* Sessions
        const { list: models } = yield* Models
        const [{ serveGateway }, { mcpRoutes }] = yield* Effect.promise(() =>
          Promise.all([import("./protocols/gateway.ts"), import("./protocols/mcp/server/http.ts")]),
        )
        const service = { sessions, models, version: version(), remote }
        const cluster = Option.getOrUndefined(yield* Effect.serviceOption(Cluster))
        const served = yield* mcpRoutes({
          ...mcp,
          ...(yield* mcpServiceOf(service, { settings: mcp, cwd: null, places: null })),
        })
        const told = cluster === undefined ? {} : { cluster }
        return yield* serveGateway(service, { ...told, ...rest, groups: [served, ...groups] })
      }),
    )
  }
}
