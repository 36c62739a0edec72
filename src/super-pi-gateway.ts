/**
 * The HTTP gateway inside an application: `Gateway.layer` serves the conversations of the node that it is built over, until it is released.
 */
import { Context, Effect, Layer } from "effect"
import { Sessions } from "./actors/sessions.ts"
import { version } from "./cli/package.ts"
import { Models } from "./models/model.ts"
import type { GatewayOptions, GatewayRefused, Gateway as RunningGateway } from "./protocols/gateway.ts"
import type { RemoteRules } from "./protocols/remote.ts"
import type { ListenFailed } from "./protocols/socket/listen.ts"

export interface GatewayLayerOptions extends GatewayOptions {
  /** How far callers may choose modes. Default: any mode. */
  readonly remote?: RemoteRules
}

export class Gateway extends Context.Tag("super-pi/Gateway")<Gateway, RunningGateway>() {
  /**
   * Listens when it is built. Released, it drains: what runs may end within `settings.drainSeconds`. Nothing is read from the environment:
   * tokens and settings are those of the options.
   */
  static layer(options: GatewayLayerOptions): Layer.Layer<Gateway, GatewayRefused | ListenFailed, Sessions | Models> {
    return Layer.scoped(
      Gateway,
      Effect.gen(function* () {
        const { remote = { ownMode: "auto" as const }, ...rest } = options
        const sessions = yield* Sessions
        const { list: models } = yield* Models
        const { serveGateway } = yield* Effect.promise(() => import("./protocols/gateway.ts"))
        return yield* serveGateway({ sessions, models, version: version(), remote }, rest)
      }),
    )
  }
}
