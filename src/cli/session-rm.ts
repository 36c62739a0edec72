/**
 * `super-pi session rm ID`: removes an idle conversation. This writes, so it goes through the owner of the database.
 */
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { idOf } from "./session-read.ts"

export const main = async (invocation: Invocation): Promise<number> => {
  const conversationId = idOf(invocation)
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const { removed } = yield* sessions.remove({ conversationId })
      if (!removed) {
        return yield* Effect.fail(
          new CommandFailure(`conversation ${conversationId} was not found; see: super-pi session list`),
        )
      }
      const said =
        invocation.get(option.json) === true
          ? JSON.stringify({ conversation_id: conversationId, removed })
          : `removed conversation ${conversationId}`
      process.stdout.write(`${said}\n`)
      return ExitCode.ok
    }),
  )
}
