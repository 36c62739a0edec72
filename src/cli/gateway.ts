/**
 * `super-pi gateway PORT`: serves every HTTP protocol of the node until a signal comes, and then drains.
 */
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode, usageFailure } from "./exit.ts"
import { gatewaySettingsOf } from "./gateway-settings.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { openCounted, serveNode } from "./serve-gateway.ts"
import { withDefaults } from "./serve-options.ts"
import { readPort } from "./service-settings.ts"

const portOf = (word: string | undefined): number => {
  const port = readPort(word ?? "")
  if (port === null) throw usageFailure(`PORT: expected a number from 0 to 65535, got "${word}"`)
  return port
}

export const main = async (invocation: Invocation): Promise<number> => {
  const port = portOf(invocation.words[0])
  const options = withDefaults(nodeOptionsOf(invocation), invocation)
  const settings = gatewaySettingsOf(options)
  return runCommand(
    () =>
      Effect.gen(function* () {
        const { gatewayLog } = yield* Effect.promise(() => import("./gateway-log.ts"))
        const gateway = yield* serveNode(yield* openCounted(options), options, {
          port,
          host: invocation.get(option.host),
          settings,
          log: gatewayLog((line) => process.stderr.write(`${line}\n`), invocation.get(option.verbose) === true),
        })
        const who = gateway.tokens ? "with a token" : "without a token, from this machine"
        process.stderr.write(`super-pi: serving on ${gateway.url} (${who})\n`)
        for (const route of gateway.routes) process.stderr.write(`  ${route}\n`)
        return yield* Effect.never
      }),
    ExitCode.ok,
  )
}
