/**
 * `super-pi mcp`: serves the Model Context Protocol on stdin and stdout, for the program that started it.
 */
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { harnessOf } from "./harness-choice.ts"
import { mcpServiceOf } from "./mcp-service.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { protocolServiceOf } from "./protocol-service.ts"
import { runCommand } from "./runtime.ts"
import { withDefaults } from "./serve-options.ts"

export const main = async (invocation: Invocation): Promise<number> => {
  const options = withDefaults(nodeOptionsOf(invocation), invocation)
  return runCommand(
    () =>
      Effect.gen(function* () {
        const { serveMcpStdio } = yield* Effect.promise(() => import("../protocols/mcp/server/stdio.ts"))
        const sessions = yield* openSessions(options)
        const service = yield* protocolServiceOf(sessions, options)
        const mode = invocation.get(option.mode)
        // Who starts the process decides for its only client.
        const remote =
          mode === undefined ? service.remote : { ownMode: mode, remoteDefaultMode: mode, remoteMaxMode: mode }
        const served = yield* mcpServiceOf({ ...service, remote }, options)
        yield* serveMcpStdio({ ...served, harness: harnessOf(invocation) ?? served.harness })
        return ExitCode.ok
      }),
    ExitCode.ok,
  )
}
