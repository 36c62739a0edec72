/**
 * `super-pi gateway PORT`: serves every HTTP protocol of the node until a signal comes, and then drains.
 */
import { Effect } from "effect"
import { envValue } from "../models/settings.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode, usageFailure } from "./exit.ts"
import { gatewaySettingsOf } from "./gateway-settings.ts"
import { mcpNodeOf, mcpServiceOf } from "./mcp-service.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { version } from "./package.ts"
import { protocolServiceOf } from "./protocol-service.ts"
import { runCommand } from "./runtime.ts"
import { withDefaults } from "./serve-options.ts"
import { modelSettings } from "./settings.ts"

const portOf = (word: string | undefined): number => {
  const port = /^\d{1,5}$/.test(word ?? "") ? Number(word) : -1
  if (port < 0 || port > 65_535) throw usageFailure(`PORT: expected a number from 0 to 65535, got "${word}"`)
  return port
}

export const main = async (invocation: Invocation): Promise<number> => {
  const port = portOf(invocation.words[0])
  const options = withDefaults(nodeOptionsOf(invocation), invocation)
  const settings = gatewaySettingsOf(options)
  return runCommand(
    () =>
      Effect.gen(function* () {
        const [{ serveGateway }, { gatewayLog }, { mcpRoutes }, { makeMetrics }] = yield* Effect.promise(() =>
          Promise.all([
            import("../protocols/gateway.ts"),
            import("./gateway-log.ts"),
            import("../protocols/mcp/server/http.ts"),
            import("../observability/metrics.ts"),
          ]),
        )
        const metrics = makeMetrics({ version: version(), prices: modelSettings(options.settings).prices ?? {} })
        const sessions = yield* openSessions({ ...options, observer: metrics.observer })
        const service = yield* protocolServiceOf(sessions, options, "programs")
        const mcp = yield* mcpRoutes({ ...options.settings.mcp, ...(yield* mcpServiceOf(service, mcpNodeOf(options))) })
        const gateway = yield* serveGateway(service, {
          port,
          host: invocation.get(option.host) ?? envValue(options.env, "SUPER_PI_GATEWAY_BIND"),
          settings,
          metrics,
          tokens: options.env.SUPER_PI_GATEWAY_TOKEN,
          log: gatewayLog((line) => process.stderr.write(`${line}\n`), invocation.get(option.verbose) === true),
          groups: [mcp],
        })
        const who = gateway.tokens ? "with a token" : "without a token, from this machine"
        process.stderr.write(`super-pi: serving on ${gateway.url} (${who})\n`)
        for (const route of gateway.routes) process.stderr.write(`  ${route}\n`)
        return yield* Effect.never
      }),
    ExitCode.ok,
  )
}
