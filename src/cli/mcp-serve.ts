/**
 * `super-pi mcp`: serves the Model Context Protocol on stdin and stdout, for the program that started it.
 */
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { harnessOf } from "./harness-choice.ts"
import { mcpNodeOf, mcpServiceOf } from "./mcp-service.ts"
import { openSessions } from "./node.ts"
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
        const service = yield* protocolServiceOf(sessions, options, "programs")
        const served = yield* mcpServiceOf(service, mcpNodeOf(options))
        yield* serveMcpStdio({ ...served, harness: harnessOf(invocation) ?? served.harness })
        return ExitCode.ok
      }),
    ExitCode.ok,
  )
}
