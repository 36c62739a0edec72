/**
 * `super-pi cluster`: members, shards and what waits, from the gateway of a node or beside it. It never joins.
 */
import { Effect } from "effect"
import { envValue } from "../models/settings.ts"
import { clusterView } from "../protocols/cluster/view.ts"
import { clusterLines } from "../protocols/terminal/cluster.ts"
import type { Invocation } from "./arguments.ts"
import { askBeside, askGateway } from "./cluster-source.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

export const main = (invocation: Invocation): Promise<number> => {
  const { env } = process
  const url = invocation.get(option.url) ?? envValue(env, "SUPER_PI_GATEWAY_URL")
  return runCommand(() =>
    Effect.gen(function* () {
      const status = yield* url === undefined ? askBeside(pathsOf(invocation)) : askGateway(url, env)
      const text =
        invocation.get(option.json) === true
          ? JSON.stringify(clusterView(status))
          : clusterLines(status, Date.now()).join("\n")
      process.stdout.write(`${text}\n`)
      return ExitCode.ok
    }),
  )
}
