/**
 * `super-pi session compact ID`: makes the context of a conversation short and waits for it. Ctrl-C cancels the compaction where nothing else
 * goes on in the conversation.
 */
import { Effect } from "effect"
import { compactionWords } from "../protocols/terminal/format.ts"
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
  const instructions = invocation.get(option.instructions) ?? null
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      // A run of somebody else is none of ours to cancel.
      const cancelled = Effect.flatMap(sessions.state({ conversationId }), ({ queued, turn_id }) =>
        turn_id === null && queued.length === 0 ? sessions.cancel({ conversationId }) : Effect.void,
      )
      const result = yield* Effect.onInterrupt(sessions.compact({ conversationId, instructions }), () =>
        Effect.ignore(cancelled),
      )
      const asJson = invocation.get(option.json) === true
      process.stdout.write(`${asJson ? JSON.stringify(result) : compactionWords({ ...result, error: null })}\n`)
      if (result.status === "cancelled") return yield* Effect.fail(new CommandFailure("the compaction was cancelled"))
      return ExitCode.ok
    }),
  )
}
